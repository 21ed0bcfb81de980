/* SPDX-License-Identifier: MIT */
#ifndef ES_POLICY_OPTIONS_H
#define ES_POLICY_OPTIONS_H
/* What the user asked for, read from the environment. One list, options.def, gives the parser,
 * the table of EPOCHSHIM_HELP, the effective settings in the log and the table of the README. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum es_mode { ES_MODE_OFF, ES_MODE_OBSERVE, ES_MODE_REWRITE };
enum es_defer { ES_DEFER_SAFE, ES_DEFER_NEVER };
enum es_kernels { ES_KERNELS_OPAQUE, ES_KERNELS_ARGS };
enum es_log { ES_LOG_OFF, ES_LOG_SUMMARY, ES_LOG_FULL };

struct es_options {
    enum es_mode mode;
    uint64_t min_bytes; /* bytes; 0: automatic, by direction and threads (place.h) */
    uint64_t warmup;    /* bytes that could have been staged before the first that is */
    uint64_t pool;      /* bytes of pinned staging memory, at most, in each context */
    uint64_t chunk;     /* bytes of one staging chunk */
    uint64_t threads;   /* threads that copy, the caller included; 0: automatic */
    enum es_defer defer;
    enum es_kernels kernels;
    bool side;
    bool elide;
    enum es_log log;
    char log_file[4096]; /* empty: stderr; %p, %e, %h not yet expanded */
    uint64_t limit;      /* copies that may be rewritten; UINT64_MAX: all */
    bool verify;
    bool help;
};

/* One complaint, without a newline. The text lives only during the call. */
typedef void es_complain_fn(void *ctx, const char *line);

/* Fills *out from an environment (NULL-terminated, as environ). Never fails: a bad value or an
 * unknown EPOCHSHIM_ name is one complaint, and the default stands. Does not allocate, keeps no
 * pointer into env. */
void es_options_parse(struct es_options *out, char *const *env, es_complain_fn *complain,
                      void *ctx);

/* Calls line() for each line of the option table (EPOCHSHIM_HELP). */
void es_options_help(void (*line)(void *ctx, const char *line), void *ctx);

/* The same table for the README, in Markdown. */
void es_options_markdown(void (*line)(void *ctx, const char *line), void *ctx);

/* Expands %p (pid), %e (program), %h (host) and %% in a log file name. Returns the length that was
 * needed, like snprintf. */
size_t es_log_path(const char *pattern, long pid, const char *program, const char *host, char *buf,
                   size_t size);

/* Writes the settings that differ from their default as "NAME=value ..." (without EPOCHSHIM_),
 * empty when none does. Returns the length that was needed, like snprintf. */
size_t es_options_changed(const struct es_options *o, char *buf, size_t size);

#endif

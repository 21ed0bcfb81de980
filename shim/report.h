/* SPDX-License-Identifier: MIT */
#ifndef ES_SHIM_REPORT_H
#define ES_SHIM_REPORT_H
/* The handoff log, as text for a person: at most 80 columns, the answer first. */

#include <stdbool.h>
#include <stddef.h>

#include "policy/options.h"
#include "shim/handoff.h"
#include "shim/ledger.h"
#include "shim/pool.h"

struct es_report {
    long pid;
    const char *program;  /* path, as started */
    const char *rank;     /* as the launcher names it; NULL: none */
    const char *settings; /* es_options_changed */
    const char *bypass;   /* libraries whose calls were not seen, "": none */
    enum es_log detail;
    unsigned threads;
    struct es_ledger *ledger; /* its sites are put together by caller */
    struct es_pool_totals pool;
    const struct es_handoffs *handoffs;
    bool by_args; /* EPOCHSHIM_KERNELS */

    /* Whether a code address lies in CUDA's own code, which the program's programmer cannot change.
     */
    bool (*is_cuda)(const void *address);
    /* The place of a code address, "symbol+0x1c (library)", into text[]. */
    void (*place)(const void *address, char *text, size_t size);
};

/* Writes the log into text[], cut at size, always terminated. Returns its length. The counts of
 * shim/count.h are read as they are. Allocates nothing. */
size_t es_report_print(const struct es_report *r, char *text, size_t size);

#endif

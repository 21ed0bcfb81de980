/* SPDX-License-Identifier: MIT */
#ifndef ES_SHIM_REPORT_H
#define ES_SHIM_REPORT_H
/* The handoff log, as text for a person: at most 80 columns, the answer first. */

#include <stddef.h>

#include "policy/options.h"
#include "shim/ledger.h"
#include "shim/pool.h"

struct es_report {
    long pid;
    const char *program;  /* path, as started */
    const char *rank;     /* as the launcher names it; NULL: none */
    const char *settings; /* es_options_changed */
    enum es_log detail;
    unsigned threads;
    const struct es_ledger *ledger;
    struct es_pool_totals pool;

    /* The place of a code address, "symbol+0x1c (library)", into text[]. */
    void (*place)(const void *address, char *text, size_t size);
};

/* Writes the log into text[], cut at size, always terminated. Returns its length. The counts of
 * shim/count.h are read as they are. Allocates nothing. */
size_t es_report_print(const struct es_report *r, char *text, size_t size);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef ES_SHIM_PAGES_H
#define ES_SHIM_PAGES_H
/* Questions about the program's pages. They look at the mapping, store nothing, and keep errno. */

#include <stdbool.h>
#include <stdint.h>

/* Whether every page of [p, p + bytes) is mapped: what a hole gives is the driver's to say. Walks
 * the mappings, not the pages. */
bool es_pages_are_mapped(const void *p, uint64_t bytes);

/* Faults in the pages of [p, p + bytes) for reading or writing, as a worker must before it touches
 * memory of the program: a page that faults in a special way (a write barrier by SIGSEGV, a hole)
 * has to fault in the program's own thread. False: leave this range to the caller. Always false
 * before Linux 5.14, which cannot be asked. */
bool es_pages_fault_in(const void *p, uint64_t bytes, bool for_write);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef ES_INTERCEPT_CODE_H
#define ES_INTERCEPT_CODE_H
/* What a code address is, for the log at exit. Slow (reads files), and never called from a hook. */

#include <stdbool.h>
#include <stddef.h>

/* Whether the address lies in libcuda, in a CUDA runtime (shared, or linked into the program, which
 * is told by its symbols), or in this library. */
bool es_code_is_cuda(const void *address);

/* "symbol+0x1c (file)", or "file+0x4c1c" without a symbol, into text[]. */
void es_code_place(const void *address, char *text, size_t size);

#endif

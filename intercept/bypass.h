/* SPDX-License-Identifier: MIT */
#ifndef ES_INTERCEPT_BYPASS_H
#define ES_INTERCEPT_BYPASS_H
/* Libraries whose CUDA calls went past us, for the log at exit and for copies that would overtake.
 * Slow: some microseconds a library. */

#include <stdbool.h>
#include <stddef.h>

/* Their names into text[], "libfoo.so, libbar.so"; empty if there are none. Returns how many. */
unsigned es_bypass_list(char *text, size_t size);

/* Whether there is one, or a library by which others read device memory without any CUDA call.
 * Looks anew only when the loader has loaded something since. Any thread. */
bool es_bypass_any(void);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef ES_INTERCEPT_BYPASS_H
#define ES_INTERCEPT_BYPASS_H
/* Libraries whose CUDA calls went past us, for the log at exit. Slow, and never called from a hook.
 */

#include <stddef.h>

/* Their names into text[], "libfoo.so, libbar.so"; empty if there are none. Returns how many. */
unsigned es_bypass_list(char *text, size_t size);

#endif

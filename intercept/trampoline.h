/* SPDX-License-Identifier: MIT */
#ifndef ES_INTERCEPT_TRAMPOLINE_H
#define ES_INTERCEPT_TRAMPOLINE_H
/* Functions that are followed without knowing their arguments (trampoline-*.S).
 *
 * A function of the driver that has no row in hooks.def, or an UNKNOWN one, is handed out behind a
 * spare trampoline. Its first call is told to shim/unknown.h. */

enum { ES_TRAMPOLINE_SPARES = 256 };

/* The trampoline for a driver function, always the same one for the same address. name: as it was
 * asked for, copied. When all are taken the function counts as called, and is handed out itself.
 * Any thread; no lock, no allocation. */
void *es_trampoline_for(void *function, const char *name);

#endif

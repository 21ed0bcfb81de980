/* SPDX-License-Identifier: MIT */
#ifndef ES_SHIM_UNKNOWN_H
#define ES_SHIM_UNKNOWN_H
/* Driver functions that were called though nothing is known of what they do (law 6). One may have
 * ordered streams, or made memory known to others, without our records. From the first such call on
 * the engine relies on no record of order any more: copies may be staged at their place on their
 * own stream, for which the driver is asked each time, and nothing may overtake, return early or be
 * dropped. */

#include <stdbool.h>

/* Notes a call, before it is made. name: lives until exit. Any thread; nothing blocks. */
void es_unknown_add(const char *name);

/* Whether there was one. */
bool es_unknown_any(void);

/* The names of the first ones, oldest first, into names[]. Returns how many there were in all. */
unsigned es_unknown_names(const char **names, unsigned most);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef ES_INTERCEPT_DRIVER_H
#define ES_INTERCEPT_DRIVER_H
/* The table between libcuda's functions and our hooks, by address.
 *
 * It is filled once, when libcuda is first met (a look-up that lands in it, or a direct call), from
 * the symbol table of the mapped libcuda.so.1. No lock, no allocation, no dl* call: two threads
 * that fill it at once store the same values. */

#include <stdbool.h>

#include "intercept/elf_lookup.h"
#include "intercept/hooks.h"

/* Fills the table if libcuda.so.1 is mapped. Idempotent. False: it is not mapped. */
bool es_driver_learn(void);

/* The mapped libcuda.so.1, to look up what is no hook (elf_lookup.h). False: it is not mapped. */
bool es_driver_object(struct es_object *libcuda);

/* The same as es_driver_learn, but only if this address lies in a libcuda.so.1. True: it was filled
 * just now. */
bool es_driver_learn_from(const void *address);

/* True: this address of the driver's has a row. *instead: the hook, or the address itself where it
 * is harmless. */
bool es_driver_find(void *address, void **instead);

/* Whether libcuda exports this very function under this name, as one of its API. */
bool es_driver_exports(const char *name, const void *address);

/* Whether the address lies in this library. */
bool es_driver_is_ours(const void *address);

/* Whether a hook is exported under this name. */
bool es_driver_is_hook(const char *name);

#endif

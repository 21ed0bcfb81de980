/* SPDX-License-Identifier: MIT */
#ifndef ES_SHIM_MEMORY_H
#define ES_SHIM_MEMORY_H
/* The memory that a copy may not be staged from or to: pinned, registered and managed ranges, and
 * device memory that another process can reach. The driver tells what an address is; this record
 * tells what lies *between* two addresses, and what the driver does not tell.
 *
 * All functions: any thread; nothing blocks but a short lock; errno is kept.
 * When a record is lost for want of memory, es_memory_complete() is false from then on, and nothing
 * is staged any more. */

#include <stdbool.h>
#include <stdint.h>

#include "policy/place.h"

/* Notes [start, start + bytes) as kind. handle: the physical allocation behind a mapping, else 0.
 */
void es_memory_add(uint64_t start, uint64_t bytes, enum es_memory kind, uint64_t handle);

/* Forgets the ranges that begin in [start, start + bytes). Called before the driver frees them:
 * later the address may be somebody else's. */
void es_memory_drop(uint64_t start, uint64_t bytes);

/* The kind of the first noted range that overlaps [start, start + bytes); ES_MEM_UNKNOWN if none.
 * Plain mappings (ES_MEM_DEVICE) are skipped. */
enum es_memory es_memory_find(uint64_t start, uint64_t bytes);

/* A physical allocation became reachable from outside, or is new (its handle may have been used
 * before). Mappings of a shared handle, present and future, are ES_MEM_FOREIGN. */
void es_memory_handle_shared(uint64_t handle);
void es_memory_handle_new(uint64_t handle);

bool es_memory_complete(void);

/* Whether the program ever had host memory that the device can access: then a kernel may read or
 * write it. */
bool es_memory_reached_host(void);

/* In a forked child: the lock may have been held by a thread that is not there. */
void es_memory_after_fork(void);

#endif

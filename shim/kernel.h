/* SPDX-License-Identifier: MIT */
#ifndef ES_SHIM_KERNEL_H
#define ES_SHIM_KERNEL_H
/* What a kernel may touch (EPOCHSHIM_KERNELS, design section 4).
 *
 *   opaque  every allocation that was there when it was launched
 *   args    the allocations that its arguments point into, and what no allocation of the program's
 * is (variables of modules). The user vouches for it: a kernel that follows a pointer from memory
 * touches more
 *
 * Under args a launch is opaque all the same where the driver tells no parameters (before 12.4, or
 * an `extra` buffer), where one holds what looks like an address but is none that the driver knows
 * (it may be one past an allocation), and once the process made texture or surface objects or
 * tensor maps. */

#include "policy/options.h"
#include "shim/port.h"

/* Before the first launch. port must live until exit. */
void es_kernel_configure(const struct es_port *port, enum es_kernels kernels);

/* A launch returned: notes what the kernel may touch, and ends the turn (shim/turn.h). params,
 * extra: as the program passed them; only read, and only if launched is true (else all of them may
 * be wrong). Does not block. */
void es_kernel_given(CUstream stream, bool launched, CUfunction kernel, void **params,
                     void **extra);

#endif

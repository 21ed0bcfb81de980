/* SPDX-License-Identifier: MIT */
#ifndef ES_SHIM_VERIFY_H
#define ES_SHIM_VERIFY_H

#include "shim/copy.h"

/* EPOCHSHIM_VERIFY: reads the device side of a staged copy back, natively, and compares it with the
 * host side; counts the outcome in the ledger. Blocks for the stream. A program that writes either
 * side meanwhile gives a false alarm: this is for finding faults, not for production.
 * pre: the copy is over, its context current. */
void es_verify(const struct es_port *port, const struct es_copy *c);

#endif

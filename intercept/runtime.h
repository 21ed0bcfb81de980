/* SPDX-License-Identifier: MIT */
#ifndef ES_INTERCEPT_RUNTIME_H
#define ES_INTERCEPT_RUNTIME_H
/* The CUDA runtime's functions that we export: which call the thread is in, and whose runtime it
 * goes to. A process may have several runtimes (RTLD_LOCAL, static ones), so "the next one" would
 * be wrong: each call goes to the runtime that its caller would have reached. */

#include <stdbool.h>
#include <stddef.h>

/* The outermost runtime call that this thread is in; api NULL: in none. */
struct es_call {
    const char *api;
    const void *site; /* its return address */
};
extern __attribute__((tls_model("initial-exec"))) __thread struct es_call es_call;

/* Whether we export a runtime function of this name. */
bool es_runtime_is_hook(const char *name);

/* The function of this name that code at this address would natively be bound to, by its own
 * object or by the runtime that its object was linked to. NULL: neither has it. */
void *es_runtime_own(const void *site, const char *name);

#endif

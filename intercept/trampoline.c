/* SPDX-License-Identifier: MIT */
#include "intercept/trampoline.h"

#include "intercept/hooks.h"
#include "shim/event.h"
#include "shim/unknown.h"

/* The assembler's side. */
extern char es_trampoline_spares[ES_TRAMPOLINE_SPARES][16];
void *es_trampoline_called(unsigned number);

static const unsigned char groups[ES_HOOK_COUNT] = {
#define FOLLOW(symbol, group) [ES_HOOK_##symbol] = ES_SEEN_##group,
#include "intercept/hooks.def"
};

static struct spare {
    _Atomic(void *) function; /* NULL: not taken */
    char name[56];
    atomic_bool called;
} spares[ES_TRAMPOLINE_SPARES];

void *es_trampoline_for(void *function, const char *name)
{
    for (unsigned i = 0; i < ES_TRAMPOLINE_SPARES; i++) {
        struct spare *s = &spares[i];
        void *held = NULL;

        if (atomic_compare_exchange_strong(&s->function, &held, function)) {
            for (unsigned c = 0; c + 1 < sizeof s->name && name[c]; c++)
                s->name[c] = name[c];
            held = function;
        }
        if (held == function)
            return es_trampoline_spares[i];
    }
    es_unknown_add("one beyond the first 256");
    return function;
}

/* Notes the call of a row or, from ES_HOOK_COUNT on, of a spare. Returns the real function. */
void *es_trampoline_called(unsigned number)
{
    struct spare *s;

    if (number < ES_HOOK_COUNT) {
        es_note(groups[number]);
        if (groups[number] == ES_SEEN_GRAPH || groups[number] == ES_SEEN_EXTERNAL)
            es_event_stop();
        return es_driver_real(number);
    }
    s = &spares[number - ES_HOOK_COUNT];
    es_note(ES_SEEN_UNKNOWN);
    if (!atomic_load_explicit(&s->called, memory_order_acquire) &&
        !atomic_exchange(&s->called, true))
        es_unknown_add(s->name);
    return atomic_load_explicit(&s->function, memory_order_relaxed);
}

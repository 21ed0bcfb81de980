/* SPDX-License-Identifier: MIT */
#include "shim/kernel.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shim/count.h"
#include "shim/memory.h"
#include "shim/mutant.h"
#include "shim/touch.h"
#include "shim/turn.h"

static const struct es_port *port;
static bool by_args;

void es_kernel_configure(const struct es_port *p, enum es_kernels kernels)
{
    port = p;
    atomic_fetch_add(&es_count_upheavals, 1); /* what was learnt from another driver is forgotten */
    by_args = kernels == ES_KERNELS_ARGS && p->function_parameter && p->pointer_attributes;
}

/* Where parameter i lies; false: there is none, or the driver does not tell. A handle may be a
 * function's or a kernel's (cuLaunchKernel takes both). */
static bool parameter(CUfunction kernel, size_t i, size_t *bytes)
{
    size_t offset;

    return port->function_parameter(kernel, i, &offset, bytes) == CUDA_SUCCESS ||
           (port->kernel_parameter &&
            port->kernel_parameter((CUkernel)kernel, i, &offset, bytes) == CUDA_SUCCESS);
}

/* The sizes of a kernel's parameters. They are asked for once, as long as no code is unloaded and
 * no context ends: then its handle may be another kernel's. */
enum { PARAMETERS = 128, LAYOUTS = 1024, PROBES = 4, MOST_KEPT = 8192 };
struct layout {
    CUfunction kernel;
    uint64_t upheavals;      /* that were seen when it was asked for */
    struct layout *replaced; /* the stale one here before; another thread may be reading it */
    unsigned count;          /* PARAMETERS: too many, or textures are about: not known */
    uint16_t bytes[PARAMETERS];
};
static _Atomic(struct layout *) layouts[LAYOUTS];
static atomic_uint kept;

/* Texture and surface objects and tensor maps look like any word. */
static void ask(struct layout *l, CUfunction kernel, uint64_t upheavals)
{
    size_t bytes;

    l->kernel = kernel;
    l->upheavals = upheavals;
    for (l->count = 0; l->count < PARAMETERS && parameter(kernel, l->count, &bytes); l->count++)
        l->bytes[l->count] = (uint16_t)bytes; /* 32764 at most (CUDA C++, "Function parameters") */
    if (es_count_total(ES_SEEN_TEXTURE))
        l->count = PARAMETERS;
}

static void keep(_Atomic(struct layout *) *slot, struct layout *stale, const struct layout *l)
{
    struct layout *copy = NULL;
    int saved = errno;

    if (atomic_load(&kept) < MOST_KEPT && atomic_fetch_add(&kept, 1) < MOST_KEPT)
        copy = malloc(sizeof *copy);
    if (copy) {
        *copy = *l;
        copy->replaced = stale;
        if (!atomic_compare_exchange_strong(slot, &stale, copy))
            free(copy); /* another thread was first */
    }
    errno = saved;
}

/* In *room, if it cannot be kept. */
static const struct layout *layout_of(CUfunction kernel, struct layout *room)
{
    uint64_t now = atomic_load(&es_count_upheavals);
    size_t hash = ((uintptr_t)kernel >> 4) * 0x9E3779B97F4A7C15u >> 32;
    _Atomic(struct layout *) *place = NULL;
    struct layout *stale = NULL;

    for (unsigned i = 0; i < PROBES; i++) {
        _Atomic(struct layout *) *slot = &layouts[(hash + i) % LAYOUTS];
        struct layout *l = atomic_load_explicit(slot, memory_order_acquire);

        if (l && l->upheavals == now && l->kernel == kernel)
            return l;
        if (!place && (!l || l->upheavals != now)) {
            place = slot;
            stale = l;
        }
    }
    ask(room, kernel, now);
    if (place)
        keep(place, stale, room);
    return room;
}

/* The effects of an argument that looks like an address and is in no allocation we know. Data that
 * does so by chance is rare. */
static unsigned effects_of_stranger(uint64_t value)
{
    unsigned type = 0, managed = 0;
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   CU_POINTER_ATTRIBUTE_IS_MANAGED};
    void *values[] = {&type, &managed};

    if (ES_BROKEN(STRANGER))
        return 0;
    if (port->pointer_attributes(2, which, values, value) != CUDA_SUCCESS || type == 0)
        return ES_OPAQUE;
    /* Pool, mapped or module memory is never clear; host memory others can see. */
    return managed || type == CU_MEMORYTYPE_HOST ? ES_OBSERVABLE : 0;
}

/* The addresses in a launch's arguments, as far as they were not noted yet. */
struct addresses {
    const struct es_stream *stream;
    uint64_t epoch;
    unsigned effects, count;
    uint64_t at[ES_TOUCH_MOST];
};

static void note(struct addresses *a)
{
    unsigned strangers = es_touch_all(a->stream, a->epoch, a->at, a->count);

    for (unsigned i = 0; i < strangers; i++)
        a->effects |= effects_of_stranger(a->at[i]);
    a->count = 0;
}

static void look_at(struct addresses *a, const void *parameter, size_t bytes)
{
    for (size_t at = 0; at + 8 <= bytes; at += 8) {
        uint64_t value;

        memcpy(&value, (const char *)parameter + at, sizeof value);
        if (!es_touch_may_be(value))
            continue;
        if (a->count == ES_TOUCH_MOST)
            note(a);
        a->at[a->count++] = value;
    }
}

static unsigned effects_by_args(const struct es_stream *s, CUfunction kernel, void **params,
                                void **extra)
{
    /* It was submitted: if another thread closes this epoch now, and finds its work complete, then
     * this kernel is. */
    struct addresses a = {.stream = s, .epoch = es_stream_open_epoch(s), .effects = ES_LONG};
    const struct layout *l;
    struct layout room;

    if (extra)
        return ES_LONG | ES_OPAQUE;
    l = layout_of(kernel, &room);
    /* Without parameters it should have had no list of them: then it is not known. */
    if (l->count == PARAMETERS || (l->count == 0 && params) || (l->count > 0 && !params))
        return ES_LONG | ES_OPAQUE;
    for (unsigned i = 0; i < l->count; i++)
        look_at(&a, params[i], l->bytes[i]);
    note(&a);
    return a.effects;
}

void es_kernel_given(CUstream stream, bool launched, CUfunction kernel, void **params, void **extra)
{
    struct es_stream *s = es_stream_of(stream);
    unsigned effects = es_count_effects(ES_SEEN_LAUNCH);

    if (launched && by_args)
        effects = effects_by_args(s, kernel, params, extra);
    if (effects & ES_OPAQUE)
        effects |= ES_HOST;
    es_turn_given(stream, effects);
}

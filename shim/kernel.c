/* SPDX-License-Identifier: MIT */
#include "shim/kernel.h"

#include <stdint.h>
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

/* A user address that is 8-byte data by chance is rare; no allocation lies below 4 GiB. */
static bool looks_like_address(uint64_t value)
{
    return value >= (uint64_t)1 << 32 && value < (uint64_t)1 << 47;
}

/* The effects of an argument that is in no allocation we know. */
static unsigned effects_of_stranger(uint64_t value)
{
    unsigned type = 0, managed = 0;
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   CU_POINTER_ATTRIBUTE_IS_MANAGED};
    void *values[] = {&type, &managed};

    if (!looks_like_address(value))
        return 0;
    if (ES_BROKEN(STRANGER))
        return 0;
    if (port->pointer_attributes(2, which, values, value) != CUDA_SUCCESS || type == 0)
        return ES_OPAQUE;
    /* Pool, mapped or module memory is never clear; host memory others can see. */
    return managed || type == CU_MEMORYTYPE_HOST ? ES_OBSERVABLE : 0;
}

/* Notes what the parameter's words point to. */
static unsigned look_at(const struct es_stream *s, uint64_t epoch, const void *parameter,
                        size_t bytes)
{
    unsigned effects = 0;

    for (size_t at = 0; at + 8 <= bytes; at += 8) {
        uint64_t value;

        memcpy(&value, (const char *)parameter + at, sizeof value);
        if (value && !es_touch_all(s, epoch, value))
            effects |= effects_of_stranger(value);
    }
    return effects;
}

static unsigned effects_by_args(const struct es_stream *s, uint64_t epoch, CUfunction kernel,
                                void **params, void **extra)
{
    unsigned effects = ES_LONG;
    size_t i, bytes;

    if (extra || es_count_total(ES_SEEN_TEXTURE))
        return effects | ES_OPAQUE;
    for (i = 0; params && parameter(kernel, i, &bytes); i++)
        effects |= look_at(s, epoch, params[i], bytes);
    /* Without parameters it should have had no list of them: then it is not known. */
    return i == 0 && params ? effects | ES_OPAQUE : effects;
}

void es_kernel_given(CUstream stream, bool launched, CUfunction kernel, void **params, void **extra)
{
    struct es_stream *s = es_stream_of(stream);
    unsigned effects = es_count_effects(ES_SEEN_LAUNCH);

    /* It was submitted: if another thread closes this epoch now, and finds its work complete, then
     * this kernel is. */
    if (launched && by_args)
        effects = effects_by_args(s, atomic_load(&s->closed) + 1, kernel, params, extra);
    if (effects & ES_OPAQUE)
        effects |= ES_HOST;
    es_turn_given(stream, effects);
}

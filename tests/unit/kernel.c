/* SPDX-License-Identifier: MIT */
/* What a launch may touch, from its parameters: a table of arguments. */
#include "shim/kernel.h"

#include <string.h>

#include "shim/count.h"
#include "shim/memory.h"
#include "shim/touch.h"
#include "shim/turn.h"
#include "tests/harness/test.h"

#define STREAM ((CUstream)(uintptr_t)0x1000)
enum { SIZE = 0x1000 };
static const uint64_t A = 0x7f0000000000, B = 0x7f0000001000, PINNED = 0x7f1000000000,
                      POOL = 0x302000000, NOBODYS = 0x7f2000000000;

/* A function's handle tells its parameters: 1: (pointer, int); 2: (struct {int, int; pointer}); 3:
 * a kernel's handle; 4: none; 5: two of this size; from 100: so many words. */
static size_t sizes_of_5;
static CUresult function_parameter(CUfunction f, size_t i, size_t *offset, size_t *bytes)
{
    uintptr_t which = (uintptr_t)f;

    *offset = i * 8;
    if (which == 5 || which >= 100) {
        *bytes = which == 5 ? sizes_of_5 : 8;
        return i < (which == 5 ? 2 : which) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    *bytes = which == 2 ? 16 : i == 0 ? 8 : 4;
    if (which == 3)
        return CUDA_ERROR_INVALID_HANDLE;
    return i < (which == 4 ? 0 : which == 2 ? 1u : 2u) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult kernel_parameter(CUkernel f, size_t i, size_t *offset, size_t *bytes)
{
    if ((uintptr_t)f != 3)
        return CUDA_ERROR_INVALID_HANDLE;
    return function_parameter((CUfunction)1, i, offset, bytes);
}

static CUresult pointer_attributes(unsigned n, CUpointer_attribute *which, void **values,
                                   CUdeviceptr p)
{
    *(unsigned *)values[0] = p - PINNED < SIZE ? CU_MEMORYTYPE_HOST
                             : p - POOL < SIZE ? CU_MEMORYTYPE_DEVICE
                                               : 0;
    *(unsigned *)values[1] = 0;
    return CUDA_SUCCESS;
}

static const struct es_port port = {.function_parameter = function_parameter,
                                    .kernel_parameter = kernel_parameter,
                                    .pointer_attributes = pointer_attributes};

struct seen {
    bool a, b, observable;
};

static struct seen launch(bool launched, uintptr_t function, void **params, void **extra)
{
    struct es_stream *s = es_stream_made(STREAM, CU_STREAM_NON_BLOCKING);
    struct es_tick who[ES_TOUCHERS];
    struct seen seen;

    es_touch_born(A, SIZE);
    es_touch_born(B, SIZE);
    es_turn_begin(STREAM);
    es_kernel_given(STREAM, launched, (CUfunction)function, params, extra);
    seen.a = es_touch_who(A, SIZE, true, who) == 1;
    seen.b = es_touch_who(B, SIZE, true, who) == 1;
    seen.observable = atomic_load(&s->observable) > atomic_load(&s->done);
    es_stream_done(s, es_stream_close(s), 0);
    es_touch_gone(A);
    es_touch_gone(B);
    return seen;
}

TEST(kernel, what_its_arguments_say)
{
    static const struct {
        uintptr_t function;
        uint64_t words[2];
        struct seen seen;
    } table[] = {
        {1, {A}, {.a = true}},
        {1, {B + SIZE - 1}, {.b = true}},
        {3, {A}, {.a = true}},                   /* a kernel's handle */
        {1, {0}, {.a = false}},                  /* no pointer */
        {1, {12345}, {.a = false}},              /* a count */
        {1, {0x3ff0000000000000}, {.a = false}}, /* 1.0 */
        {1, {POOL}, {.a = false}},               /* not of cuMemAlloc: never clear anyhow */
        {1, {PINNED}, {.observable = true}},
        {1, {NOBODYS}, {true, true, false}},  /* looks like an address; may be one past some end */
        {1, {B + SIZE}, {true, true, false}}, /* so does this */
        {2, {7, B}, {.b = true}},
        {2, {A, B}, {true, true, false}},
        {4, {A}, {true, true, false}}, /* parameters that the driver does not tell */
    };

    es_kernel_configure(&port, ES_KERNELS_ARGS);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        uint64_t words[2];
        int count = 3;
        struct seen seen;

        memcpy(words, table[i].words, sizeof words);
        seen = launch(true, table[i].function, (void *[]){words, &count}, NULL);
        CHECK_EQ_INT(seen.a, table[i].seen.a);
        CHECK_EQ_INT(seen.b, table[i].seen.b);
        CHECK_EQ_INT(seen.observable, table[i].seen.observable);
    }
}

TEST(kernel, otherwise_it_may_touch_anything)
{
    uint64_t word = A;
    void *params[] = {&word, &word}, *extra[] = {NULL};
    struct seen seen;

    es_kernel_configure(&port, ES_KERNELS_OPAQUE);
    seen = launch(true, 1, params, NULL);
    CHECK(seen.a && seen.b);
    es_kernel_configure(&port, ES_KERNELS_ARGS);
    seen = launch(true, 1, NULL, extra);
    CHECK(seen.a && seen.b);
    seen = launch(false, 1, (void **)8, NULL); /* refused: nothing of it is looked at */
    CHECK(seen.a && seen.b);
    seen = launch(true, 4, NULL, NULL); /* no parameters at all */
    CHECK(!seen.a && !seen.b);
    es_kernel_configure(&(struct es_port){.pointer_attributes = pointer_attributes},
                        ES_KERNELS_ARGS);
    seen = launch(true, 1, params, NULL); /* an old driver */
    CHECK(seen.a && seen.b);
}

/* A handle that comes back, when code was unloaded, may be another kernel's. */
TEST(kernel, parameters_are_asked_for_again_when_code_goes)
{
    static const uintptr_t handle = 5;
    uint64_t words[] = {7, A};
    void *params[] = {words, &words[1]};

    es_kernel_configure(&port, ES_KERNELS_ARGS);
    sizes_of_5 = 8; /* two words */
    CHECK(launch(true, handle, params, NULL).a);
    sizes_of_5 = 4; /* two halves */
    CHECK(launch(true, handle, params, NULL).a);
    es_count(ES_SEEN_UNLOAD);
    CHECK(!launch(true, handle, params, NULL).a);
    sizes_of_5 = 8;
    CHECK(!launch(true, handle, params, NULL).a);
    es_count(ES_SEEN_CONTEXT);
    CHECK(launch(true, handle, params, NULL).a);
}

/* More than fit into one look at the allocations, and more than are asked for. */
TEST(kernel, many_arguments)
{
    uint64_t words[200] = {0};
    void *params[200];

    es_kernel_configure(&port, ES_KERNELS_ARGS);
    for (int i = 0; i < 200; i++)
        params[i] = &words[i];
    for (int i = 0; i < 100; i++)
        words[i] = A + (uint64_t)i;
    words[99] = B;
    CHECK(launch(true, 100, params, NULL).a);
    CHECK(launch(true, 100, params, NULL).b);
    words[99] = A;
    CHECK(!launch(true, 100, params, NULL).b);
    CHECK(launch(true, 200, params, NULL).b); /* who knows */
}

/* Only where there is host memory that the device can access, others may see it. */
TEST(kernel, zz_what_may_touch_anything_touches_host_memory)
{
    uint64_t word = A;
    void *params[] = {&word, &word};

    es_kernel_configure(&port, ES_KERNELS_OPAQUE);
    CHECK(!launch(true, 1, params, NULL).observable);
    es_memory_add(PINNED, SIZE, ES_MEM_PINNED, 0);
    CHECK(launch(true, 1, params, NULL).observable);
    es_kernel_configure(&port, ES_KERNELS_ARGS);
    CHECK(!launch(true, 1, params, NULL).observable);
    word = NOBODYS;
    CHECK(launch(true, 1, params, NULL).observable);
}

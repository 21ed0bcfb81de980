/* SPDX-License-Identifier: MIT */
/* The kernels, by name: tests/kernels/kernels.cu in C. Parameters lie as the compiler lays them
 * out. A step runs under the driver's lock, and returns false if it cannot end yet: a gate. */
#include "tests/simgpu/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t u64(const unsigned char *params, unsigned offset)
{
    uint64_t v;

    memcpy(&v, params + offset, 8);
    return v;
}

static uint32_t u32(const unsigned char *params, unsigned offset)
{
    uint32_t v;

    memcpy(&v, params + offset, 4);
    return v;
}

static float f32(const unsigned char *params, unsigned offset)
{
    float v;

    memcpy(&v, params + offset, 4);
    return v;
}

/* The bytes behind a pointer parameter: the device reads pinned and managed memory too, but no
 * other. An address that it may not touch ends the process: a real device would end the context. */
static void *at(const unsigned char *params, unsigned offset, uint64_t bytes)
{
    void *p = sim_alias(u64(params, offset), bytes);

    if (!p)
        p = sim_pool_alias(u64(params, offset), bytes);
    if (!p && bytes) {
        fprintf(stderr, "simgpu: a kernel touches %llu bytes at 0x%llx, which it cannot\n",
                (unsigned long long)bytes, (unsigned long long)u64(params, offset));
        abort();
    }
    return p;
}

static bool empty(const unsigned char *params)
{
    return true;
}

static bool fill_u32(const unsigned char *params)
{
    uint64_t n = u64(params, 8);
    uint32_t *p = at(params, 0, n * 4), v = u32(params, 16);

    for (uint64_t i = 0; i < n; i++)
        p[i] = v;
    return true;
}

static bool fill_behind_u32(const unsigned char *params)
{
    uint64_t n = u64(params, 8);
    uint32_t *p = at(at(params, 0, 8), 0, n * 4), v = u32(params, 16);

    for (uint64_t i = 0; i < n; i++)
        p[i] = v;
    return true;
}

static bool copy_u32(const unsigned char *params)
{
    uint64_t bytes = u64(params, 16) * 4;

    memmove(at(params, 8, bytes), at(params, 0, bytes), bytes);
    return true;
}

static bool scale_f32(const unsigned char *params)
{
    uint64_t n = u64(params, 16);
    float *x = at(params, 0, n * 4), a = f32(params, 8);

    for (uint64_t i = 0; i < n; i++)
        x[i] *= a;
    return true;
}

static bool axpy_f32(const unsigned char *params)
{
    uint64_t n = u64(params, 24);
    const float *x = at(params, 8, n * 4);
    float *y = at(params, 16, n * 4), a = f32(params, 0);

    for (uint64_t i = 0; i < n; i++)
        y[i] += a * x[i];
    return true;
}

static bool checksum_u32(const unsigned char *params)
{
    uint64_t sum = 0, n = u64(params, 8);
    const uint32_t *p = at(params, 0, n * 4);

    for (uint64_t i = 0; i < n; i++)
        sum += p[i];
    memcpy(at(params, 16, 8), &sum, 8);
    return true;
}

static bool gate_wait(const unsigned char *params)
{
    return __atomic_load_n((uint32_t *)at(params, 0, 4), __ATOMIC_SEQ_CST) == u32(params, 8);
}

static bool gate_set(const unsigned char *params)
{
    __atomic_store_n((uint32_t *)at(params, 0, 4), u32(params, 8), __ATOMIC_SEQ_CST);
    return true;
}

/* A real device's text comes out at the next call that waits. */
static bool print_u32(const unsigned char *params)
{
    printf("a kernel prints %u\n", u32(params, 0));
    return true;
}

/* c = a * b, square, row by row. */
static bool matmul_f32(const unsigned char *params)
{
    uint64_t n = u32(params, 24);
    const float *a = at(params, 0, n * n * 4), *b = at(params, 8, n * n * 4);
    float *c = at(params, 16, n * n * 4);

    for (uint64_t i = 0; i < n; i++) {
        memset(c + i * n, 0, n * 4);
        for (uint64_t k = 0; k < n; k++)
            for (uint64_t j = 0; j < n; j++)
                c[i * n + j] += a[i * n + k] * b[k * n + j];
    }
    return true;
}

/* Memory-bound ones at 500 bytes a nanosecond, as copy.c has it. */
static uint64_t launch_cost(const unsigned char *params)
{
    return 3000;
}

static uint64_t spin_cost(const unsigned char *params)
{
    return u64(params, 0);
}

static uint64_t cost_of_8(const unsigned char *params)
{
    return 3000 + u64(params, 8) * 4 / 500;
}

static uint64_t cost_of_16(const unsigned char *params)
{
    return 3000 + u64(params, 16) * 8 / 500;
}

static uint64_t cost_of_24(const unsigned char *params)
{
    return 3000 + u64(params, 24) * 12 / 500;
}

#define P(offset, size)                                                                            \
    {                                                                                              \
        offset, size                                                                               \
    }
/* 5000 multiplications and additions a nanosecond. */
static uint64_t matmul_cost(const unsigned char *params)
{
    uint64_t n = u32(params, 24);

    return 3000 + n * n * n / 5000;
}

static const struct sim_kernel kernels[] = {
    {"empty", 0, {P(0, 0)}, empty, launch_cost},
    {"spin_ns", 1, {P(0, 8)}, empty, spin_cost},
    {"fill_u32", 3, {P(0, 8), P(8, 8), P(16, 4)}, fill_u32, cost_of_8},
    {"fill_behind_u32", 3, {P(0, 8), P(8, 8), P(16, 4)}, fill_behind_u32, cost_of_8},
    {"copy_u32", 3, {P(0, 8), P(8, 8), P(16, 8)}, copy_u32, cost_of_16},
    {"scale_f32", 3, {P(0, 8), P(8, 4), P(16, 8)}, scale_f32, cost_of_16},
    {"axpy_f32", 4, {P(0, 4), P(8, 8), P(16, 8), P(24, 8)}, axpy_f32, cost_of_24},
    {"checksum_u32", 3, {P(0, 8), P(8, 8), P(16, 8)}, checksum_u32, cost_of_8},
    {"matmul_f32", 4, {P(0, 8), P(8, 8), P(16, 8), P(24, 4)}, matmul_f32, matmul_cost},
    {"gate_wait", 2, {P(0, 8), P(8, 4)}, gate_wait, launch_cost},
    {"print_u32", 1, {P(0, 4)}, print_u32, launch_cost},
    {"gate_set", 2, {P(0, 8), P(8, 4)}, gate_set, launch_cost},
};

const struct sim_kernel *sim_kernel_named(const char *name)
{
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (strcmp(kernels[i].name, name) == 0)
            return &kernels[i];
    return NULL;
}

bool sim_is_kernel(const struct sim_kernel *kernel)
{
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (kernel == &kernels[i])
            return true;
    return false;
}

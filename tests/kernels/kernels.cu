// SPDX-License-Identifier: MIT
// The kernels that the end-to-end tests launch, for a real GPU. tests/simgpu/kernels.c has the same ones
// in C. All but fills, copy, scale, axpy, matmul and checksum are launched with one thread.
#include <cstdint>
#include <cstdio>

#define FOR_EACH(i, n)                                                                             \
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < (n);                     \
         i += (uint64_t)gridDim.x * blockDim.x)

extern "C" __global__ void empty(void)
{
}

extern "C" __global__ void fill_u32(uint32_t *p, uint64_t n, uint32_t v)
{
    FOR_EACH(i, n) p[i] = v;
}

// The address of the words lies in memory.
extern "C" __global__ void fill_behind_u32(uint32_t *const *where, uint64_t n, uint32_t v)
{
    FOR_EACH(i, n) (*where)[i] = v;
}

extern "C" __global__ void copy_u32(const uint32_t *src, uint32_t *dst, uint64_t n)
{
    FOR_EACH(i, n) dst[i] = src[i];
}

extern "C" __global__ void scale_f32(float *x, float a, uint64_t n)
{
    FOR_EACH(i, n) x[i] *= a;
}

extern "C" __global__ void axpy_f32(float a, const float *x, float *y, uint64_t n)
{
    FOR_EACH(i, n) y[i] += a * x[i];
}

extern "C" __global__ void checksum_u32(const uint32_t *p, uint64_t n, uint64_t *out)
{
    uint64_t sum = 0;

    if (blockIdx.x || threadIdx.x)
        return;
    for (uint64_t i = 0; i < n; i++)
        sum += p[i];
    *out = sum;
}

// c = a * b, square.
extern "C" __global__ void matmul_f32(const float *a, const float *b, float *c, uint32_t n)
{
    FOR_EACH(i, (uint64_t)n * n)
    {
        float sum = 0;

        for (uint64_t k = 0; k < n; k++)
            sum += a[i / n * n + k] * b[k * n + i % n];
        c[i] = sum;
    }
}

extern "C" __global__ void spin_ns(uint64_t ns)
{
    uint64_t start, now;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - start < ns);
}

extern "C" __global__ void gate_wait(const volatile uint32_t *flag, uint32_t value)
{
    while (*flag != value)
        ;
}

extern "C" __global__ void gate_set(volatile uint32_t *flag, uint32_t value)
{
    *flag = value;
    __threadfence_system();
}

extern "C" __global__ void print_u32(uint32_t value)
{
    printf("a kernel prints %u\n", value);
}

// SPDX-License-Identifier: MIT
#ifndef ES_TESTS_MEASURE_H
#define ES_TESTS_MEASURE_H
// What the measuring programs here share: errors end them, host time, and kernels that take time.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <time.h>

#define OK(call)                                                                                   \
    do {                                                                                           \
        int r_ = (int)(call);                                                                      \
        if (r_ != 0) {                                                                             \
            printf("%s:%d: %s gives %d\n", __FILE__, __LINE__, #call, r_);                         \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static inline double now_us()
{
    timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static inline double now_ms()
{
    return now_us() / 1e3;
}

static __global__ void spin(uint64_t ns)
{
    uint64_t start, now;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - start < ns);
}

static __global__ void gate(const volatile uint32_t *flag)
{
    while (*flag == 0)
        ;
}

static __global__ void empty()
{
}

#endif

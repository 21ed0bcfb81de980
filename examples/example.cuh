// SPDX-License-Identifier: MIT
// What the examples share: a check for each CUDA call, a clock, a checksum, and the kernels.
//
// The kernels are plain, and have C names because the simulated GPU (tests/simgpu) runs a kernel
// by looking its name up among functions written in C.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

// Every CUDA call goes through here: a failure says what and where, and ends the program.
#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t e_ = (call);                                                                   \
        if (e_ != cudaSuccess) {                                                                   \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(e_)); \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

// A launch reports bad arguments through the last error.
#define LAUNCH(kernel, stream, ...)                                                                \
    do {                                                                                           \
        kernel<<<1024, 256, 0, stream>>>(__VA_ARGS__);                                             \
        CHECK(cudaGetLastError());                                                                 \
    } while (0)

inline double now_ms()
{
    using namespace std::chrono;
    return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

// How long the host was kept in a piece of code, in milliseconds.
template <class Body> double blocked_ms(Body body)
{
    double start = now_ms();
    body();
    return now_ms() - start;
}

// One line of an example's table; examples/run sets the tables of two runs side by side.
inline void print_time(const char *what, double ms)
{
    printf("  %-33s %8.1f ms\n", what, ms);
}

inline void print_copy(const char *what, double ms, size_t bytes)
{
    printf("  %-33s %8.1f ms %5.1f GB/s\n", what, ms, bytes / ms / 1e6);
}

// FNV-1a over 32-bit words: any changed, lost or swapped word shows.
inline uint64_t checksum(const void *data, size_t bytes, uint64_t hash = 0xcbf29ce484222325u)
{
    const uint32_t *word = static_cast<const uint32_t *>(data);
    for (size_t i = 0; i < bytes / sizeof *word; i++)
        hash = (hash ^ word[i]) * 0x100000001b3u;
    return hash;
}

inline int fail(const char *what)
{
    fprintf(stderr, "wrong result: %s\n", what);
    return 1;
}

// argv[i] as a number from 1 up, or a default where it was not given.
inline uint64_t argument(int argc, char **argv, int i, uint64_t otherwise)
{
    uint64_t n = i < argc ? strtoull(argv[i], nullptr, 10) : otherwise;
    if (n == 0) {
        fprintf(stderr, "%s: argument %d: a number from 1 up is expected\n", argv[0], i);
        exit(2);
    }
    return n;
}

#define FOR_EACH_INDEX(i, n)                                                                       \
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < n;                      \
         i += (uint64_t)gridDim.x * blockDim.x)

// Some are unused in one example or the other; extern "C" gives each its name in the binary.
extern "C" __global__ void scale_f32(float *x, float a, uint64_t n)
{
    FOR_EACH_INDEX(i, n) x[i] *= a;
}

extern "C" __global__ void axpy_f32(float a, const float *x, float *y, uint64_t n)
{
    FOR_EACH_INDEX(i, n) y[i] += a * x[i];
}

extern "C" __global__ void fill_u32(uint32_t *p, uint64_t n, uint32_t v)
{
    FOR_EACH_INDEX(i, n) p[i] = v;
}

// Keeps the device busy for a time: stands for real work. One thread is enough.
extern "C" __global__ void spin_ns(uint64_t ns)
{
    uint64_t start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < ns);
}

// Queues `count` kernels of `us` microseconds each; returns at once.
inline void queue_work(cudaStream_t stream, uint64_t count, uint64_t us)
{
    for (uint64_t i = 0; i < count; i++) {
        spin_ns<<<1, 1, 0, stream>>>(us * 1000);
        CHECK(cudaGetLastError());
    }
}

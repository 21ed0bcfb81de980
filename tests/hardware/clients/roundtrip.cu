// SPDX-License-Identifier: MIT
// Copies in every form the runtime API has, checked byte for byte. Built with the static and the shared
// runtime, and with the per-thread default stream. Prints a checksum a form: the same natively and
// preloaded.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

#define OK(call)                                                                                   \
    do {                                                                                           \
        cudaError_t e_ = (call);                                                                   \
        if (e_ != cudaSuccess) {                                                                   \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(e_)); \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static const size_t sizes[] = {4,         4 << 10,        64 << 10, (64 << 10) + 1,
                               1 << 20,   (16 << 20) + 3, 64 << 20, 300 << 20};
static const size_t most = 300 << 20;
__constant__ uint32_t symbol[1024];

__global__ void delay(uint64_t cycles)
{
    for (uint64_t start = clock64(); clock64() - start < cycles;)
        ;
}

__global__ void add(uint32_t *p, size_t n, uint32_t v)
{
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        p[i] += v;
}

__global__ void sum(const uint32_t *p, size_t n, unsigned long long *out)
{
    unsigned long long s = 0;

    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        s += p[i];
    atomicAdd(out, s);
}

static void fill(void *p, size_t n, uint32_t seed)
{
    uint32_t *w = (uint32_t *)p;

    for (size_t i = 0; i < n / 4; i++)
        w[i] = (uint32_t)i * 2654435761u + seed;
    for (size_t i = n & ~(size_t)3; i < n; i++)
        ((char *)p)[i] = (char)(i + seed);
}

static uint64_t hash(const void *p, size_t n)
{
    const unsigned char *b = (const unsigned char *)p;
    uint64_t h = 14695981039346656037u;

    for (size_t i = 0; i < n; i += n > 4096 ? 61 : 1)
        h = (h ^ b[i]) * 1099511628211u;
    return h ^ n;
}

static void must_equal(const void *a, const void *b, size_t n, const char *what)
{
    if (memcmp(a, b, n) != 0) {
        printf("WRONG BYTES: %s, %zu bytes\n", what, n);
        exit(1);
    }
}

static void there_and_back(char *src, char *dst, char *d, cudaStream_t s, bool async, const char *what)
{
    uint64_t h = 0;

    for (size_t n : sizes) {
        for (int odd = 0; odd < 2; odd++) {
            fill(src, n, (uint32_t)n + odd);
            memset(dst, 0, n + 8);
            if (async) {
                OK(cudaMemcpyAsync(d + odd, src, n, cudaMemcpyHostToDevice, s));
                h += hash(src, n);
                src[0] ^= 0x55; // the source may change as soon as the call returned
                src[n - 1] ^= 0x55;
                OK(cudaMemcpyAsync(dst + odd, d + odd, n, cudaMemcpyDeviceToHost, s));
                src[n - 1] ^= 0x55;
                src[0] ^= 0x55;
            } else {
                OK(cudaMemcpy(d + odd, src, n, cudaMemcpyHostToDevice));
                OK(cudaMemcpy(dst + odd, d + odd, n, cudaMemcpyDefault));
            }
            must_equal(dst + odd, src, n, what); // without any synchronize: pageable D2H is complete
            h += hash(dst + odd, n);
        }
    }
    printf("checksum %-28s %016llx\n", what, (unsigned long long)h);
}

// Case 1: a D2H to the stack behind a delay, read at once.
static void stack_scalar(uint32_t *d, cudaStream_t s)
{
    uint32_t got = 0;

    OK(cudaMemsetAsync(d, 0, 4, s));
    delay<<<1, 1, 0, s>>>(20000000);
    add<<<1, 1, 0, s>>>(d, 1, 4711);
    OK(cudaMemcpyAsync(&got, d, 4, cudaMemcpyDeviceToHost, s));
    printf("checksum %-28s %u\n", "case 1 stack scalar", got);
}

// Case 2: D2H into pinned, registered, managed memory, then H2D from it, nothing between.
static void through(char *p, char *src, char *d, char *e, size_t n, cudaStream_t s, const char *what)
{
    char *back = (char *)malloc(n);

    fill(src, n, 99);
    OK(cudaMemcpy(d, src, n, cudaMemcpyHostToDevice));
    memset(p, 0, n);
    delay<<<1, 1, 0, s>>>(20000000);
    OK(cudaMemcpyAsync(p, d, n, cudaMemcpyDefault, s));
    OK(cudaMemcpyAsync(e, p, n, cudaMemcpyDefault, s));
    OK(cudaMemcpyAsync(back, e, n, cudaMemcpyDeviceToHost, s));
    OK(cudaStreamSynchronize(s));
    must_equal(back, src, n, what);
    printf("checksum %-28s %016llx\n", what, (unsigned long long)hash(back, n));
    free(back);
}

// Case 4: a sync copy, then a kernel on a non-blocking stream reads it.
static void seen_by_another_stream(char *src, char *d, cudaStream_t nb)
{
    unsigned long long *out, got, all = 0;

    OK(cudaMalloc(&out, 8));
    for (size_t n : {(size_t)4 << 10, (size_t)64 << 10, (size_t)(64 << 10) + 4, (size_t)64 << 20}) {
        for (int i = 0; i < (n > 1 << 20 ? 3 : 200); i++) {
            unsigned long long want = 0;

            fill(src, n, i);
            for (size_t w = 0; w < n / 4; w++)
                want += ((uint32_t *)src)[w];
            delay<<<1, 1>>>(20000);
            OK(cudaMemcpy(d, src, n, cudaMemcpyHostToDevice));
            OK(cudaMemsetAsync(out, 0, 8, nb));
            sum<<<64, 256, 0, nb>>>((uint32_t *)d, n / 4, out);
            OK(cudaMemcpyAsync(&got, out, 8, cudaMemcpyDeviceToHost, nb));
            if (got != want) {
                printf("WRONG SUM: case 4, %zu bytes\n", n);
                exit(1);
            }
            all += got;
        }
    }
    printf("checksum %-28s %016llx\n", "case 4 another stream", all);
    OK(cudaFree(out));
}

int main()
{
    char *src = (char *)malloc(most + 64), *dst = (char *)malloc(most + 64), *d, *e, *p;
    cudaStream_t blocking, nb;
    const size_t n = 8 << 20;
    uint32_t back[1024], words[1024];

    OK(cudaStreamCreate(&blocking));
    OK(cudaStreamCreateWithFlags(&nb, cudaStreamNonBlocking));
    OK(cudaMalloc(&d, most + 64));
    OK(cudaMalloc(&e, n));
    there_and_back(src, dst, d, 0, false, "sync");
    there_and_back(src, dst, d, 0, true, "async, stream 0");
    there_and_back(src, dst, d, cudaStreamPerThread, true, "async, per-thread stream");
    there_and_back(src, dst, d, blocking, true, "async, blocking stream");
    there_and_back(src, dst, d, nb, true, "async, non-blocking stream");
    stack_scalar((uint32_t *)d, nb);
    OK(cudaMallocHost(&p, n));
    through(p, src, d, e, n, nb, "case 2 pinned");
    OK(cudaFreeHost(p));
    p = (char *)aligned_alloc(4096, n);
    OK(cudaHostRegister(p, n, 0));
    through(p, src, d, e, n, nb, "case 2 registered");
    OK(cudaHostUnregister(p));
    through(p, src, d, e, n, nb, "case 2 no longer registered");
    free(p);
    OK(cudaMallocManaged(&p, n));
    through(p, src, d, e, n, nb, "case 2 managed");
    OK(cudaFree(p));
    seen_by_another_stream(src, d, nb);
    fill(words, sizeof words, 5);
    OK(cudaMemcpyToSymbol(symbol, words, sizeof words));
    OK(cudaMemcpyFromSymbol(back, symbol, sizeof back));
    must_equal(back, words, sizeof words, "symbol");
    printf("checksum %-28s %016llx\n", "symbol", (unsigned long long)hash(back, sizeof back));
    fill(src, n, 6);
    OK(cudaMemcpy2D(d, 4096, src, 2048, 2000, 1024, cudaMemcpyHostToDevice));
    OK(cudaMemcpy2D(dst, 2000, d, 4096, 2000, 1024, cudaMemcpyDeviceToHost));
    printf("checksum %-28s %016llx\n", "2D", (unsigned long long)hash(dst, 2000 * 1024));
    OK(cudaDeviceReset());
    OK(cudaMalloc(&d, n)); // case 32: everything again after a reset
    fill(src, n, 7);
    OK(cudaMemcpy(d, src, n, cudaMemcpyHostToDevice));
    OK(cudaMemcpy(dst, d, n, cudaMemcpyDeviceToHost));
    must_equal(dst, src, n, "after a reset");
    printf("checksum %-28s %016llx\n", "after a reset", (unsigned long long)hash(dst, n));
    printf("last error %s\n", cudaGetErrorString(cudaGetLastError()));
    return 0;
}

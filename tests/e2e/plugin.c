/* SPDX-License-Identifier: MIT */
/* A library that uses the CUDA runtime, for runtimes.c to load. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#define EXPORT __attribute__((visibility("default")))

/* How many calls the runtime that this library is bound to has had; only the simulated one tells.
 */
unsigned long simgpu_runtime_calls(void) __attribute__((weak));

EXPORT unsigned long plugin_runtime_calls(void);
unsigned long plugin_runtime_calls(void)
{
    return simgpu_runtime_calls ? simgpu_runtime_calls() : 0;
}

EXPORT int plugin_runtime_version(void);
int plugin_runtime_version(void)
{
    int version = 0;

    return cudaRuntimeGetVersion(&version) == cudaSuccess ? version : -1;
}

/* What a search of this library's own scope gives, called. */
EXPORT int plugin_finds_itself(void);
int plugin_finds_itself(void)
{
    cudaError_t (*record)(cudaEvent_t, cudaStream_t) =
        (cudaError_t(*)(cudaEvent_t, cudaStream_t))dlsym(RTLD_DEFAULT, "cudaEventRecord");

    return record != NULL && record(NULL, NULL) != cudaSuccess && cudaGetLastError() != cudaSuccess;
}

/* Copies there and back through another buffer; the first error, or 0. Three copies in all. */
EXPORT int plugin_round_trip(size_t bytes);
int plugin_round_trip(size_t bytes)
{
    char *source = malloc(bytes), *back = calloc(1, bytes);
    cudaStream_t stream = NULL;
    cudaEvent_t event = NULL;
    void *device = NULL;
    cudaError_t r = cudaMalloc(&device, bytes);

    for (size_t i = 0; i < bytes; i++)
        source[i] = (char)(i * 7 + 3);
    if (!r)
        r = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (!r)
        r = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    if (!r)
        r = cudaMemcpy(device, source, bytes, cudaMemcpyHostToDevice);
    if (!r)
        r = cudaEventRecord(event, NULL);
    if (!r)
        r = cudaStreamWaitEvent(stream, event, 0);
    if (!r)
        r = cudaMemcpyAsync(back, device, bytes, cudaMemcpyDeviceToHost, stream);
    if (!r)
        r = cudaStreamSynchronize(stream);
    if (!r)
        r = memcmp(source, back, bytes) ? cudaErrorUnknown : cudaSuccess;
    if (!r)
        r = cudaMemcpy(back, device, bytes, cudaMemcpyDefault);
    if (!r)
        r = memcmp(source, back, bytes) ? cudaErrorUnknown : cudaSuccess;
    cudaEventDestroy(event);
    cudaStreamDestroy(stream);
    cudaFree(device);
    free(source);
    free(back);
    return r;
}

// SPDX-License-Identifier: MIT
// Does the stand-in runtime do what nvcc's programs ask of it? Built twice: as it is, and with
// --default-stream per-thread, which calls the _ptds and _ptsz twins. Knows no simulator: it must
// pass on the real runtime as well. What the driver does with the calls is not tested here.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

static int failures;

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s (last error: %s)\n", __FILE__, __LINE__,            \
                    #condition, cudaGetErrorName(cudaPeekAtLastError()));                          \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)
#define OK(call) EXPECT((call) == cudaSuccess)

extern "C" __global__ void fill_u32(uint32_t *p, uint64_t n, uint32_t v)
{
    for (uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        p[i] = v;
}
extern "C" __global__ void empty(void)
{
}

__device__ uint32_t table[16];
__constant__ uint32_t constants[4];
__managed__ uint32_t shared_counter;

constexpr size_t words = 4096, bytes = words * sizeof(uint32_t);

static bool all(const std::vector<uint32_t> &v, uint32_t value)
{
    for (uint32_t x : v)
        if (x != value)
            return false;
    return true;
}

static void device_and_errors()
{
    int count = 0, version = 0, cc = 0;
    cudaDeviceProp prop;
    OK(cudaGetDeviceCount(&count));
    EXPECT(count > 0);
    OK(cudaRuntimeGetVersion(&version));
    EXPECT(version / 1000 == 13);
    OK(cudaDriverGetVersion(&version));
    EXPECT(version > 0);
    OK(cudaGetDeviceProperties(&prop, 0));
    EXPECT(prop.name[0] && prop.totalGlobalMem > 0);
    OK(cudaDeviceGetAttribute(&cc, cudaDevAttrComputeCapabilityMajor, 0));
    EXPECT(cc == prop.major);

    // A failure is the last error of its thread until it is read.
    uint32_t word = 0;
    EXPECT(cudaMemcpy(&word, &word, 4, (cudaMemcpyKind)77) == cudaErrorInvalidMemcpyDirection);
    OK(cudaDeviceSynchronize());
    EXPECT(cudaPeekAtLastError() == cudaErrorInvalidMemcpyDirection);
    std::thread([] { EXPECT(cudaGetLastError() == cudaSuccess); }).join();
    EXPECT(cudaGetLastError() == cudaErrorInvalidMemcpyDirection);
    EXPECT(cudaGetLastError() == cudaSuccess);
    EXPECT(!strcmp(cudaGetErrorName(cudaErrorInvalidValue), "cudaErrorInvalidValue"));
    EXPECT(!strcmp(cudaGetErrorString(cudaErrorInvalidValue), "invalid argument"));
}

static void variables()
{
    uint32_t in[4] = {1, 2, 3, 4}, out[4] = {};
    void *address = nullptr;
    size_t size = 0;
    OK(cudaMemcpyToSymbol(table, in, sizeof in, 16));
    OK(cudaMemcpyFromSymbol(out, table, sizeof out, 16));
    EXPECT(!memcmp(in, out, sizeof in));
    OK(cudaMemcpyToSymbol(constants, in, sizeof in));
    OK(cudaMemcpyFromSymbol(out, constants, 4, 12));
    EXPECT(out[0] == 4);
    OK(cudaGetSymbolAddress(&address, table));
    OK(cudaGetSymbolSize(&size, table));
    EXPECT(address && size == sizeof table);
    EXPECT(cudaMemcpyToSymbol(table, in, sizeof in, sizeof table) != cudaSuccess);
    EXPECT(cudaGetLastError() != cudaSuccess);
    shared_counter = 5;
    OK(cudaDeviceSynchronize());
    EXPECT(shared_counter == 5);
}

static void copies(uint32_t *d, cudaStream_t s)
{
    std::vector<uint32_t> h(words, 7), back(words, 0);
    OK(cudaMemcpy(d, h.data(), bytes, cudaMemcpyHostToDevice));
    OK(cudaMemcpy(back.data(), d, bytes, cudaMemcpyDefault));
    EXPECT(all(back, 7));
    OK(cudaMemset(d, 0x11, bytes));
    OK(cudaDeviceSynchronize()); // a fill is asynchronous, and a non-blocking stream would overtake
                                 // it
    OK(cudaMemcpyAsync(back.data(), d, bytes, cudaMemcpyDeviceToHost, s));
    OK(cudaStreamSynchronize(s));
    EXPECT(all(back, 0x11111111));
    OK(cudaMemsetAsync(d, 0x22, bytes, s));
    OK(cudaMemcpyAsync(back.data(), d, bytes, cudaMemcpyDeviceToHost, s));
    EXPECT(all(back, 0x22222222));

    // A 64 x 32 rectangle of 256-byte rows, out and in.
    void *pitched;
    size_t pitch = 0;
    OK(cudaMallocPitch(&pitched, &pitch, 64, 32));
    EXPECT(pitch >= 64);
    OK(cudaMemcpy2D(pitched, pitch, h.data(), 256, 64, 32, cudaMemcpyHostToDevice));
    std::vector<uint32_t> block(16 * 32, 0);
    OK(cudaMemcpy2D(block.data(), 64, pitched, pitch, 64, 32, cudaMemcpyDeviceToHost));
    EXPECT(all(block, 7));
    OK(cudaMemset2D(pitched, pitch, 0x33, 64, 32));
    OK(cudaDeviceSynchronize());
    OK(cudaMemcpy2DAsync(block.data(), 64, pitched, pitch, 64, 32, cudaMemcpyDefault, s));
    OK(cudaStreamSynchronize(s));
    EXPECT(all(block, 0x33333333));
    OK(cudaFree(pitched));
}

static void host_memory(uint32_t *d, cudaStream_t s)
{
    uint32_t *pinned, *mapped;
    void *seen = nullptr;
    cudaPointerAttributes a;
    std::vector<uint32_t> h(words, 1);
    OK(cudaMallocHost(&pinned, bytes));
    OK(cudaHostAlloc(&mapped, bytes, cudaHostAllocMapped));
    OK(cudaHostGetDevicePointer(&seen, mapped, 0));
    EXPECT(seen != nullptr);
    OK(cudaMemsetAsync(d, 0x44, bytes, s));
    OK(cudaMemcpyAsync(pinned, d, bytes, cudaMemcpyDeviceToHost, s));
    OK(cudaStreamSynchronize(s));
    EXPECT(pinned[0] == 0x44444444 && pinned[words - 1] == 0x44444444);
    OK(cudaPointerGetAttributes(&a, pinned));
    EXPECT(a.type == cudaMemoryTypeHost);
    OK(cudaPointerGetAttributes(&a, d));
    EXPECT(a.type == cudaMemoryTypeDevice && a.device == 0);
    OK(cudaPointerGetAttributes(&a, h.data()));
    EXPECT(a.type == cudaMemoryTypeUnregistered);
    OK(cudaHostRegister(h.data(), bytes, cudaHostRegisterDefault));
    OK(cudaPointerGetAttributes(&a, h.data()));
    EXPECT(a.type == cudaMemoryTypeHost);
    OK(cudaHostUnregister(h.data()));
    OK(cudaFreeHost(pinned));
    OK(cudaFreeHost(mapped));
}

static void launches(uint32_t *d, cudaStream_t s)
{
    std::vector<uint32_t> back(words, 0);
    uint64_t n = words;
    uint32_t v = 9;
    void *args[] = {&d, &n, &v};
    empty<<<1, 1, 0, s>>>();
    fill_u32<<<4, 64, 0, s>>>(d, n, 8);
    OK(cudaGetLastError());
    OK(cudaMemcpyAsync(back.data(), d, bytes, cudaMemcpyDeviceToHost, s));
    EXPECT(all(back, 8));
    OK(cudaLaunchKernel((const void *)fill_u32, dim3(4), dim3(64), args, 0, s));
    OK(cudaMemcpyAsync(back.data(), d, bytes, cudaMemcpyDeviceToHost, s));
    EXPECT(all(back, 9));
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(4);
    config.blockDim = dim3(64);
    config.stream = s;
    OK(cudaLaunchKernelEx(&config, fill_u32, d, n, 10u));
    OK(cudaMemcpyAsync(back.data(), d, bytes, cudaMemcpyDeviceToHost, s));
    EXPECT(all(back, 10));
    EXPECT(cudaLaunchKernel((const void *)&failures, dim3(1), dim3(1), args, 0, s) ==
           cudaErrorInvalidDeviceFunction);
    EXPECT(cudaGetLastError() == cudaErrorInvalidDeviceFunction);
}

static void streams_and_events(uint32_t *d, cudaStream_t s)
{
    cudaEvent_t start, end;
    float ms = -1;
    int called = 0, priority = 99;
    OK(cudaEventCreate(&start));
    OK(cudaEventCreateWithFlags(&end, cudaEventBlockingSync));
    OK(cudaEventRecord(start, s));
    fill_u32<<<4, 64, 0, s>>>(d, words, 1);
    OK(cudaEventRecordWithFlags(end, s, 0));
    OK(cudaStreamWaitEvent(0, end, 0));
    OK(cudaEventSynchronize(end));
    OK(cudaEventQuery(start));
    OK(cudaEventElapsedTime(&ms, start, end));
    EXPECT(ms >= 0);
    OK(cudaLaunchHostFunc(
        s, [](void *p) { ++*(int *)p; }, &called));
    OK(cudaStreamAddCallback(
        s, [](cudaStream_t, cudaError_t e, void *p) { *(int *)p += e == cudaSuccess; }, &called,
        0));
    OK(cudaStreamSynchronize(s));
    OK(cudaStreamQuery(s));
    EXPECT(called == 2);
    OK(cudaStreamGetPriority(s, &priority));
    EXPECT(priority != 99);
    OK(cudaEventDestroy(start));
    OK(cudaEventDestroy(end));
}

static void graphs(uint32_t *d, cudaStream_t s)
{
    std::vector<uint32_t> back(words, 0);
    cudaStreamCaptureStatus status;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    size_t nodes = 0;
    OK(cudaMemset(d, 0, bytes));
    OK(cudaDeviceSynchronize());
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    fill_u32<<<4, 64, 0, s>>>(d, words, 12);
    OK(cudaStreamIsCapturing(s, &status));
    EXPECT(status == cudaStreamCaptureStatusActive);
    OK(cudaStreamEndCapture(s, &graph));
    OK(cudaGraphGetNodes(graph, nullptr, &nodes));
    EXPECT(nodes == 1);
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaMemcpy(back.data(), d, bytes, cudaMemcpyDeviceToHost));
    EXPECT(all(back, 0));
    OK(cudaGraphLaunch(exec, s));
    OK(cudaMemcpyAsync(back.data(), d, bytes, cudaMemcpyDeviceToHost, s));
    EXPECT(all(back, 12));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
}

static void pool_and_managed(cudaStream_t s)
{
    uint32_t *p, *m;
    std::vector<uint32_t> back(words, 0);
    OK(cudaMallocAsync(&p, bytes, s));
    fill_u32<<<4, 64, 0, s>>>(p, words, 3);
    OK(cudaMemcpyAsync(back.data(), p, bytes, cudaMemcpyDeviceToHost, s));
    EXPECT(all(back, 3));
    OK(cudaFreeAsync(p, s));
    OK(cudaMallocManaged(&m, bytes));
    fill_u32<<<4, 64, 0, s>>>(m, words, 4);
    OK(cudaDeviceSynchronize());
    EXPECT(m[0] == 4 && m[words - 1] == 4);
    OK(cudaFree(m));
}

static void second_device()
{
    int count = 0, current = -1;
    OK(cudaGetDeviceCount(&count));
    if (count < 2)
        return;
    uint32_t *there;
    std::vector<uint32_t> back(words, 0);
    OK(cudaSetDevice(1));
    OK(cudaGetDevice(&current));
    EXPECT(current == 1);
    OK(cudaMalloc(&there, bytes));
    fill_u32<<<4, 64>>>(there, words, 21);
    OK(cudaMemcpy(back.data(), there, bytes, cudaMemcpyDeviceToHost));
    EXPECT(all(back, 21));
    OK(cudaFree(there));
    std::thread([] {
        int mine = -1;
        OK(cudaGetDevice(&mine));
        EXPECT(mine == 0);
    }).join();
    OK(cudaSetDevice(0));
    EXPECT(cudaSetDevice(count) == cudaErrorInvalidDevice);
    cudaGetLastError();
}

int main()
{
    uint32_t *d;
    cudaStream_t s, low;
    device_and_errors();
    variables();
    OK(cudaMalloc(&d, bytes));
    OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithPriority(&low, cudaStreamDefault, 0));
    for (cudaStream_t each : {s, low, (cudaStream_t)0}) {
        copies(d, each);
        host_memory(d, each);
        launches(d, each);
        streams_and_events(d, each);
        if (each)
            graphs(d, each);
        pool_and_managed(each);
    }
    std::thread([d] { launches(d, 0); }).join();
    second_device();
    OK(cudaStreamDestroy(s));
    OK(cudaStreamDestroy(low));
    OK(cudaFree(d));
    OK(cudaDeviceReset());
    OK(cudaFree(0));
    printf("%d failures\n", failures);
    return failures != 0;
}

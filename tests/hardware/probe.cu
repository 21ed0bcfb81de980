// SPDX-License-Identifier: MIT
// Asks the real driver what the shim assumes of it, and prints the answers. Measurements, not a test:
// README.md keeps what they were, with date and versions.
#include <cstring>
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>

#include "measure.h"

static volatile uint32_t *flag;

static void *open_after_200_ms(void *)
{
    timespec t = {0, 200000000};

    nanosleep(&t, NULL);
    *flag = 1;
    return NULL;
}

// From which size does a pageable Async H2D wait for its stream?
static void async_sizes(cudaStream_t s, char *d, char *h)
{
    printf("Async pageable H2D behind a 50 ms kernel, ms blocked:");
    for (size_t kib : {64, 512, 1024, 2048, 3072, 4096, 6144, 8192, 12288, 16384}) {
        spin<<<1, 1, 0, s>>>(50000000);
        double t = now_us();
        OK(cudaMemcpyAsync(d, h, kib << 10, cudaMemcpyHostToDevice, s));
        printf("  %zuK %.1f", kib, (now_us() - t) / 1e3);
        OK(cudaStreamSynchronize(s));
    }
    printf("\n");
}

// How many small ones go behind a closed gate before the next one waits for it?
static void async_count(cudaStream_t s, char *d, char *h, size_t bytes)
{
    pthread_t opener;
    double worst = 0;
    int at = 0;

    *flag = 0;
    gate<<<1, 1, 0, s>>>((const uint32_t *)flag);
    pthread_create(&opener, NULL, open_after_200_ms, NULL);
    for (int i = 0; i < 2000; i++) {
        double t = now_us();
        OK(cudaMemcpyAsync(d, h, bytes, cudaMemcpyHostToDevice, s));
        if (now_us() - t > worst) {
            worst = now_us() - t;
            at = i;
        }
    }
    pthread_join(opener, NULL);
    OK(cudaStreamSynchronize(s));
    printf("2000 Async pageable H2D of %zu bytes behind a gate of 200 ms: the longest took %.2f ms, number %d\n",
           bytes, worst / 1e3, at);
}

// What returns while a kernel runs that does not end by itself?
static void while_busy(cudaStream_t s)
{
    const size_t n = 32 << 20;
    char *p = (char *)mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_t opener;
    void *q;
    cudaEvent_t e;
    cudaStream_t other;
    double t[7];

    madvise(p, n, MADV_HUGEPAGE);
    *flag = 0;
    gate<<<1, 1, 0, s>>>((const uint32_t *)flag);
    pthread_create(&opener, NULL, open_after_200_ms, NULL);
    t[0] = now_us();
    OK(cuMemHostRegister(p, n, 0));
    t[1] = now_us();
    OK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    t[2] = now_us();
    OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    t[3] = now_us();
    OK(cudaMallocHost(&q, 4 << 20));
    t[4] = now_us();
    OK(cuMemHostUnregister(p));
    t[5] = now_us();
    OK(cudaFreeHost(q));
    t[6] = now_us();
    pthread_join(opener, NULL);
    printf("while a kernel runs, ms: register 32 MiB %.2f, event %.3f, stream %.3f, pinned 4 MiB %.2f, "
           "unregister %.2f, free pinned %.2f\n",
           (t[1] - t[0]) / 1e3, (t[2] - t[1]) / 1e3, (t[3] - t[2]) / 1e3, (t[4] - t[3]) / 1e3,
           (t[5] - t[4]) / 1e3, (t[6] - t[5]) / 1e3);
    OK(cudaStreamSynchronize(s));
    munmap(p, n);
}

static void describe(const char *what, const void *address)
{
    unsigned type = 0, managed = 0, sync = 0, mapped = 0;
    CUcontext context = NULL;
    CUdeviceptr start = 0;
    size_t size = 0;
    int device = -1;
    CUpointer_attribute which[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,      CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,      CU_POINTER_ATTRIBUTE_MAPPED,
        CU_POINTER_ATTRIBUTE_CONTEXT,          CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
        CU_POINTER_ATTRIBUTE_RANGE_SIZE,       CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void *values[] = {&type, &managed, &sync, &mapped, &context, &start, &size, &device};
    CUresult r = cuPointerGetAttributes(8, which, values, (CUdeviceptr)address);

    printf("  %-28s result %d type %u managed %u sync %u mapped %u context %s device %d offset %llu size %zu\n",
           what, r, type, managed, sync, mapped, context ? "yes" : "no", device,
           start ? (unsigned long long)((CUdeviceptr)address - start) : 0, size);
}

static void attributes()
{
    char *host = (char *)aligned_alloc(4096, 1 << 20), *d, *pool, *pinned, *managed;
    CUmemAllocationProp prop = {};
    CUmemAccessDesc access = {};
    CUmemGenericAllocationHandle h[2];
    CUdeviceptr mapping;
    size_t grain;
    CUresult r;

    printf("attributes:\n");
    OK(cudaMalloc(&d, 1 << 20));
    OK(cudaMallocAsync(&pool, 1 << 20, 0));
    OK(cudaMallocHost(&pinned, 1 << 20));
    OK(cudaMallocManaged(&managed, 1 << 20));
    describe("malloc", host);
    describe("cudaMalloc + 1000", d + 1000);
    describe("cudaMallocAsync + 1000", pool + 1000);
    describe("cudaMallocHost", pinned);
    describe("cudaMallocManaged", managed);
    OK(cuMemHostRegister(host + 8192, 4096, 0));
    describe("registered, its page", host + 8192);
    describe("registered, the page before", host + 4096);
    printf("  copies over a partly registered range: H2D %d, D2H %d\n",
           cudaMemcpy(d, host, 1 << 20, cudaMemcpyHostToDevice),
           cudaMemcpy(host, d, 1 << 20, cudaMemcpyDeviceToHost));
    cudaGetLastError();
    OK(cuMemHostUnregister(host + 8192));
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    OK(cuMemGetAllocationGranularity(&grain, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    OK(cuMemAddressReserve(&mapping, 2 * grain, 0, 0, 0));
    for (int i = 0; i < 2; i++) {
        OK(cuMemCreate(&h[i], grain, &prop, 0));
        OK(cuMemMap(mapping + i * grain, grain, 0, h[i], 0));
    }
    access.location = prop.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    OK(cuMemSetAccess(mapping, 2 * grain, &access, 1));
    describe("VMM, first of two handles", (void *)(mapping + 100));
    describe("VMM, second of two handles", (void *)(mapping + grain + 100));
    OK(cudaFree(d));
    describe("freed", d);
    r = cuMemcpyHtoD((CUdeviceptr)managed, host, 1 << 20);
    printf("  H2D to managed memory %d\n", r);
}

// Is every address that cuGetProcAddress gives that of a symbol which dlsym finds by name?
static void identity()
{
    static const char *const names[] = {
        "cuMemcpyHtoD", "cuMemcpyDtoH", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuMemcpy", "cuMemcpyAsync",
        "cuMemcpyDtoD", "cuMemcpyDtoDAsync", "cuMemcpy2D", "cuMemcpy2DUnaligned", "cuMemcpy2DAsync",
        "cuMemcpy3D", "cuMemcpy3DAsync", "cuMemcpyPeer", "cuMemcpyPeerAsync", "cuMemcpyBatchAsync",
        "cuMemsetD8", "cuMemsetD32Async", "cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchCooperativeKernel",
        "cuLaunchHostFunc", "cuStreamAddCallback", "cuGraphLaunch", "cuEventRecord", "cuEventRecordWithFlags",
        "cuEventCreate", "cuEventDestroy", "cuEventQuery", "cuEventSynchronize", "cuStreamWaitEvent",
        "cuStreamCreate", "cuStreamCreateWithPriority", "cuStreamDestroy", "cuStreamSynchronize",
        "cuStreamQuery", "cuStreamBeginCapture", "cuStreamEndCapture", "cuStreamBeginCaptureToGraph",
        "cuCtxSynchronize", "cuCtxDestroy", "cuMemAlloc", "cuMemAllocPitch", "cuMemAllocManaged",
        "cuMemAllocHost", "cuMemHostAlloc", "cuMemHostRegister", "cuMemHostUnregister", "cuMemFree",
        "cuMemFreeHost", "cuMemAllocAsync", "cuMemFreeAsync", "cuMemAllocFromPoolAsync", "cuMemCreate",
        "cuMemMap", "cuMemUnmap", "cuIpcGetMemHandle", "cuIpcOpenMemHandle", "cuDevicePrimaryCtxReset",
        "cuDevicePrimaryCtxRelease", "cuGetProcAddress"};
    static const char *const abis[] = {"", "_v2", "_v3", "_v4"}, *const streams[] = {"", "_ptds", "_ptsz"};
    static const int versions[] = {11030, 12000, 12090, 13000};
    void *libcuda = dlopen("libcuda.so.1", RTLD_NOW);
    int asked = 0, matched = 0;

    for (const char *name : names) {
        for (int version : versions) {
            for (int flags = 0; flags < 3; flags++) {
                CUdriverProcAddressQueryResult status;
                void *p = NULL;
                bool found = false;

                if (cuGetProcAddress(name, &p, version, flags, &status) != CUDA_SUCCESS || !p)
                    continue;
                for (const char *abi : abis) {
                    for (const char *stream : streams) {
                        char full[128];

                        snprintf(full, sizeof full, "%s%s%s", name, abi, stream);
                        found |= dlsym(libcuda, full) == p;
                    }
                }
                asked++;
                matched += found;
                if (!found)
                    printf("  %s, version %d, flags %d: no such symbol\n", name, version, flags);
            }
        }
    }
    printf("identity: %d of %d addresses are those of a named symbol\n", matched, asked);
}

// While thread A is in a synchronous copy behind a 300 ms kernel: which calls of thread B wait for it?
static char *a_device, *a_host;

static void *copy_behind_kernel(void *)
{
    spin<<<1, 1>>>(300000000);
    OK(cudaMemcpy(a_host, a_device, 1 << 20, cudaMemcpyDeviceToHost));
    return NULL;
}

template <typename Call> static void held(const char *what, Call call)
{
    timespec pause = {0, 60000000};
    pthread_t a;
    double t;

    pthread_create(&a, NULL, copy_behind_kernel, NULL);
    nanosleep(&pause, NULL); // A is in its copy by then: a measurement, not a test
    t = now_us();
    call();
    t = now_us() - t;
    pthread_join(a, NULL);
    OK(cudaDeviceSynchronize());
    printf("  %s %.2f", what, t / 1e3);
}

static void stalls(cudaStream_t s, char *d)
{
    char *pageable = (char *)malloc(4 << 20), *pinned, *region;
    CUstreamCaptureStatus status;
    cudaEvent_t e, made;
    CUevent done;
    unsigned type;

    memset(pageable, 1, 4 << 20);
    OK(cudaMalloc(&a_device, 1 << 20));
    a_host = (char *)malloc(1 << 20);
    OK(cudaMallocHost(&pinned, 1 << 20));
    OK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    OK(cuEventCreate(&done, CU_EVENT_DISABLE_TIMING));
    region = (char *)mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("thread A in a synchronous copy for 300 ms; thread B's calls, ms:");
    held("launch", [&] { empty<<<1, 1, 0, s>>>(); });
    held("pinned Async H2D", [&] { OK(cudaMemcpyAsync(d, pinned, 1 << 20, cudaMemcpyHostToDevice, s)); });
    held("pageable Async H2D 64K", [&] { OK(cudaMemcpyAsync(d, pageable, 64 << 10, cudaMemcpyHostToDevice, s)); });
    held("pageable Async H2D 2M", [&] { OK(cudaMemcpyAsync(d, pageable, 2 << 20, cudaMemcpyHostToDevice, s)); });
    held("pageable Async D2H 64K", [&] { OK(cudaMemcpyAsync(pageable, d, 64 << 10, cudaMemcpyDeviceToHost, s)); });
    held("event record", [&] { OK(cudaEventRecord(e, s)); });
    held("event query", [&] { cudaEventQuery(e); });
    held("event synchronize", [&] { OK(cudaEventSynchronize(e)); });
    held("event create", [&] { OK(cudaEventCreateWithFlags(&made, cudaEventDisableTiming)); });
    held("stream wait", [&] { OK(cudaStreamWaitEvent(s, e, 0)); });
    held("stream query", [&] { cudaStreamQuery(s); });
    held("stream synchronize", [&] { OK(cudaStreamSynchronize(s)); });
    held("memset", [&] { OK(cudaMemsetAsync(d, 0, 4096, s)); });
    held("is capturing", [&] { OK(cuStreamIsCapturing(s, &status)); });
    held("pointer attribute", [&] {
        OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)d));
    });
    held("host register", [&] { OK(cuMemHostRegister(region, 4 << 20, 0)); });
    printf("\n");
}

// Is a pageable Async copy one operation to another thread on the same stream? Thread A writes one value
// after another into all words; thread B sums them up in between.
__global__ void add_up(const uint32_t *p, size_t n, unsigned long long *sum)
{
    unsigned long long mine = 0;

    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        mine += p[i];
    atomicAdd(sum, mine);
}

static struct {
    cudaStream_t stream;
    uint32_t *device;
    size_t words;
    volatile int done;
} torn;

static void *write_values(void *)
{
    uint32_t *values = (uint32_t *)malloc(torn.words * 4);

    for (uint32_t round = 1; round <= 200; round++) {
        for (size_t i = 0; i < torn.words; i++)
            values[i] = round;
        OK(cudaMemcpyAsync(torn.device, values, torn.words * 4, cudaMemcpyHostToDevice, torn.stream));
    }
    OK(cudaStreamSynchronize(torn.stream));
    free(values);
    torn.done = 1;
    return NULL;
}

static void mixed(cudaStream_t s, size_t bytes)
{
    unsigned long long *sum, *host;
    pthread_t writer;
    int sums = 0, bad = 0;

    torn = {s, NULL, bytes / 4, 0};
    OK(cudaMalloc(&torn.device, bytes));
    OK(cudaMalloc(&sum, 8));
    OK(cudaMallocHost(&host, 8));
    OK(cudaMemsetAsync(torn.device, 0, bytes, s));
    add_up<<<1, 1, 0, s>>>(torn.device, 0, sum);
    OK(cudaStreamSynchronize(s));
    pthread_create(&writer, NULL, write_values, NULL);
    while (!torn.done) {
        cudaEvent_t e;

        OK(cudaMemsetAsync(sum, 0, 8, s));
        add_up<<<64, 256, 0, s>>>(torn.device, torn.words, sum);
        OK(cudaMemcpyAsync(host, sum, 8, cudaMemcpyDeviceToHost, s));
        OK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
        OK(cudaEventRecord(e, s));
        OK(cudaEventSynchronize(e));
        OK(cudaEventDestroy(e));
        sums++;
        bad += *host % torn.words != 0;
    }
    pthread_join(writer, NULL);
    printf("two threads on one stream, 200 pageable Async H2D of %zu KiB: %d of %d sums saw a mix\n",
           bytes >> 10, bad, sums);
    OK(cudaFree(torn.device));
    OK(cudaFree(sum));
    OK(cudaFreeHost(host));
}

static void costs(cudaStream_t s)
{
    enum { N = 20000 };
    CUstreamCaptureStatus status;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    unsigned long long id;
    unsigned flags;
    CUcontext context;
    CUevent e;
    double t;

    OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    OK(cuCtxGetCurrent(&context));
#define COST(what, call)                                                                           \
    t = now_us();                                                                                  \
    for (int i = 0; i < N; i++)                                                                    \
        call;                                                                                      \
    printf("  %s %.0f", what, (now_us() - t) / N * 1e3)
    printf("cost, ns:");
    COST("capture mode exchange", cuThreadExchangeStreamCaptureMode(&mode));
    COST("is capturing", cuStreamIsCapturing(s, &status));
    COST("stream context", cuStreamGetCtx(s, &context));
    COST("context id", cuCtxGetId(context, &id));
    COST("context flags", cuCtxGetFlags(&flags));
    COST("event record", cuEventRecord(e, s));
    OK(cudaStreamSynchronize(s));
    COST("event query", cuEventQuery(e));
    COST("event synchronize", cuEventSynchronize(e));
    printf("\n");
    OK(cuEventDestroy(e));
}

static void reset()
{
    unsigned long long id[2];
    CUcontext context[2];
    char *p = (char *)mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int again;

    for (int i = 0; i < 2; i++) {
        OK(cudaFree(0));
        OK(cuCtxGetCurrent(&context[i]));
        OK(cuCtxGetId(context[i], &id[i]));
        again = cuMemHostRegister(p, 1 << 20, 0);
        if (i == 0)
            OK(cudaDeviceReset());
    }
    printf("cudaDeviceReset: the context's handle %s, its id goes from %llu to %llu; registering the same "
           "memory again gives %d\n",
           context[0] == context[1] ? "stays" : "changes", id[0], id[1], again);
}

int main()
{
    char *d, *h = (char *)malloc(64 << 20);
    cudaStream_t s;
    void *p;

    OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    OK(cudaMalloc(&d, 64 << 20));
    OK(cudaHostAlloc(&p, 4, cudaHostAllocMapped));
    memset(h, 1, 64 << 20);
    flag = (volatile uint32_t *)p;
    *flag = 1; // the first launch of a kernel waits for the device: do it while nothing runs
    spin<<<1, 1, 0, s>>>(1000);
    gate<<<1, 1, 0, s>>>((const uint32_t *)flag);
    OK(cudaDeviceSynchronize());
    async_sizes(s, d, h);
    async_count(s, d, h, 4 << 10);
    async_count(s, d, h, 64 << 10);
    while_busy(s);
    attributes();
    identity();
    stalls(s, d);
    for (size_t kib : {512, 2048, 4096, 16384})
        mixed(s, kib << 10);
    costs(s);
    reset();
    return 0;
}

/* SPDX-License-Identifier: MIT */
/* How the runtime reaches the driver, and which context a thread works in.
 *
 * The driver is found as the real runtime finds it: dlopen libcuda.so.1, dlsym one name,
 * cuGetProcAddress, and ask that for everything else by plain name, version and flags. Nothing
 * here is linked against libcuda, so whoever stands between (a preloaded library) is met.
 *
 * A function that the driver does not have is filled with a stub that answers
 * cudaErrorCallRequiresNewerDriver: so a runtime of CUDA 13 works, as far as it goes, on a
 * simulated driver that plays an old version. The real one would refuse such a driver at once.
 *
 * Contexts are taken lazily: a thread that has none when it calls gets the primary context of its
 * device (0 unless cudaSetDevice said otherwise). A context that the program made current through
 * the driver API is left in place. */

#include "cudart.h"

#include <dlfcn.h>
#include <pthread.h>

struct rt_driver rt_driver[2];

static pthread_once_t load_once = PTHREAD_ONCE_INIT;
static CUresult load_result;

static pthread_mutex_t primary_lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext primary[RT_DEVICES]; /* primary_lock; NULL: not retained */

static __thread int thread_device;
static __thread cudaError_t last_error;

/* Stands for each function that the driver lacks. Its callers pass the arguments of the real
 * one, which x86-64 and aarch64 let it ignore. */
static CUresult absent(void)
{
    return (CUresult)cudaErrorCallRequiresNewerDriver;
}

bool rt_has_address(void (*fn)(void))
{
    return fn != (void (*)(void))absent;
}

static struct {
    PFN_cuGetProcAddress_v12000 v2;
    PFN_cuGetProcAddress_v11030 v1; /* before CUDA 12 */
} ask;

static void *resolve(const char *name, int version, bool per_thread)
{
    cuuint64_t flags = CU_GET_PROC_ADDRESS_LEGACY_STREAM;
    void *address = NULL;
    CUresult r;

    if (per_thread) {
        flags = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
        version = version < 7000 ? 7000 : version;
    }
    if (ask.v2)
        r = ask.v2(name, &address, version, flags, NULL);
    else
        r = ask.v1(name, &address, version, flags);
    return r == CUDA_SUCCESS && address ? address : (void *)absent;
}

static void load(void)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW);

    load_result = (CUresult)cudaErrorInsufficientDriver;
    if (!lib)
        return;
    ask.v2 = (PFN_cuGetProcAddress_v12000)dlsym(lib, "cuGetProcAddress_v2");
    ask.v1 = (PFN_cuGetProcAddress_v11030)dlsym(lib, "cuGetProcAddress");
    if (!ask.v2 && !ask.v1)
        return;
    for (int per_thread = 0; per_thread < 2; per_thread++) {
        struct rt_driver *d = &rt_driver[per_thread];
#define X(name, version) d->name = (PFN_##name##_v##version)resolve(#name, version, per_thread);
        RT_DRIVER_FUNCTIONS(X)
#undef X
    }
    load_result = rt_driver[0].cuInit(0);
}

CUresult rt_load(void)
{
    pthread_once(&load_once, load);
    return load_result;
}

CUresult rt_use_device(int device)
{
    const struct rt_driver *d = &rt_driver[0];
    CUcontext ctx = NULL;
    CUdevice dev;
    CUresult r = rt_load();

    if (r == CUDA_SUCCESS && (device < 0 || device >= RT_DEVICES))
        r = CUDA_ERROR_INVALID_DEVICE;
    if (r == CUDA_SUCCESS)
        r = d->cuDeviceGet(&dev, device);
    if (r != CUDA_SUCCESS)
        return r;

    pthread_mutex_lock(&primary_lock);
    if (!primary[device])
        r = d->cuDevicePrimaryCtxRetain(&primary[device], dev);
    ctx = primary[device];
    pthread_mutex_unlock(&primary_lock);

    if (r == CUDA_SUCCESS)
        r = d->cuCtxSetCurrent(ctx);
    if (r == CUDA_SUCCESS)
        thread_device = device;
    return r;
}

/* How many calls came here, and not to another runtime in the process: for tests. */
static _Atomic unsigned long calls;

RT_API unsigned long simgpu_runtime_calls(void);
unsigned long simgpu_runtime_calls(void)
{
    return calls;
}

CUresult rt_enter(void)
{
    CUcontext ctx = NULL;
    CUresult r = rt_load();

    calls++;
    if (r == CUDA_SUCCESS)
        r = rt_driver[0].cuCtxGetCurrent(&ctx);
    if (r == CUDA_SUCCESS && !ctx)
        r = rt_use_device(thread_device);
    return r;
}

int rt_device(void)
{
    CUcontext ctx = NULL;
    CUdevice dev = thread_device;

    if (rt_load() == CUDA_SUCCESS && rt_driver[0].cuCtxGetCurrent(&ctx) == CUDA_SUCCESS && ctx)
        rt_driver[0].cuCtxGetDevice(&dev);
    return dev;
}

cudaError_t rt_done(CUresult result)
{
    if (result != CUDA_SUCCESS)
        last_error = (cudaError_t)result;
    return (cudaError_t)result;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t e = last_error;
    last_error = cudaSuccess;
    return e;
}

cudaError_t cudaPeekAtLastError(void)
{
    return last_error;
}

/* Destroys what the thread's device holds. The next call of any thread takes the primary context
 * anew; a thread that has the old one current keeps a handle that the driver renews. */
cudaError_t cudaDeviceReset(void)
{
    const struct rt_driver *d = &rt_driver[0];
    int device = rt_device();
    CUresult r = rt_load();

    if (r != CUDA_SUCCESS)
        return rt_done(r);
    pthread_mutex_lock(&primary_lock);
    if (device < RT_DEVICES && primary[device]) {
        r = d->cuCtxSetCurrent(NULL);
        if (r == CUDA_SUCCESS)
            r = d->cuDevicePrimaryCtxReset(device);
        if (r == CUDA_SUCCESS)
            r = d->cuDevicePrimaryCtxRelease(device);
        primary[device] = NULL;
    }
    pthread_mutex_unlock(&primary_lock);
    return rt_done(r);
}

/* A program may ask the runtime for driver functions, and then calls them itself. */
static cudaError_t entry_point(const char *symbol, void **fn, unsigned version,
                               unsigned long long flags, bool per_thread,
                               enum cudaDriverEntryPointQueryResult *status)
{
    void *address;

    if (rt_load() == (CUresult)cudaErrorInsufficientDriver)
        return rt_done(load_result);
    if (flags == cudaEnablePerThreadDefaultStream)
        per_thread = true;
    else if (flags == cudaEnableLegacyStream)
        per_thread = false;
    address = resolve(symbol, (int)version, per_thread);
    *fn = address == (void *)absent ? NULL : address;
    if (status)
        *status = *fn ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}

#define ENTRY_POINT(suffix, per_thread)                                                            \
    RT_API cudaError_t cudaGetDriverEntryPoint##suffix(const char *symbol, void **fn,              \
                                                       unsigned long long flags,                   \
                                                       enum cudaDriverEntryPointQueryResult *q);   \
    cudaError_t cudaGetDriverEntryPoint##suffix(const char *symbol, void **fn,                     \
                                                unsigned long long flags,                          \
                                                enum cudaDriverEntryPointQueryResult *q)           \
    {                                                                                              \
        return entry_point(symbol, fn, CUDART_VERSION, flags, per_thread, q);                      \
    }                                                                                              \
    RT_API cudaError_t cudaGetDriverEntryPointByVersion##suffix(                                   \
        const char *symbol, void **fn, unsigned version, unsigned long long flags,                 \
        enum cudaDriverEntryPointQueryResult *q);                                                  \
    cudaError_t cudaGetDriverEntryPointByVersion##suffix(                                          \
        const char *symbol, void **fn, unsigned version, unsigned long long flags,                 \
        enum cudaDriverEntryPointQueryResult *q)                                                   \
    {                                                                                              \
        return entry_point(symbol, fn, version, flags, per_thread, q);                             \
    }
ENTRY_POINT(, false)
ENTRY_POINT(_ptsz, true)

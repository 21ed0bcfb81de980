/* SPDX-License-Identifier: MIT */
/* What nvcc's generated code calls: registration by the program's constructors, and launches.
 *
 * Before main, each translation unit hands over its fat binary and then, for each kernel and each
 * variable, a pair of names: the address of the host's shadow (a stub function, a dummy variable)
 * and the device name. Nothing is loaded then; a fat binary goes to the driver when something of it
 * is first used. `kernel<<<...>>>(...)` becomes
 *
 *     __cudaPushCallConfiguration(grid, block, shared, stream)    at the call site
 *     stub: __cudaGetKernel(&handle, stub), once                  the driver's CUkernel
 *           __cudaPopCallConfiguration(&grid, ...)
 *           __cudaLaunchKernel(handle, grid, block, args, ...)
 *
 * A driver from before CUDA 12 has no libraries and kernels, but modules and functions, one of
 * each a device; there the handle that __cudaGetKernel gives out is our own entry.
 *
 * Variables. Their size is the registered one: the simulated driver does not look into a fat
 * binary. Managed ones are allocated here, so that the driver knows them for managed memory. All
 * begin as zeros: initial values are not carried over.
 */

#include "cudart.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct entry { /* a kernel or a variable */
    struct entry *next;
    struct binary *from;
    const void *host;                /* its shadow's address: the key */
    const char *name;                /* on the device; lives in the program */
    size_t size;                     /* of a variable */
    void **managed;                  /* of a managed variable: where the host reads its address */
    CUkernel kernel;                 /* lock; NULL: not asked yet */
    CUfunction function[RT_DEVICES]; /* lock; without libraries */
    CUdeviceptr address[RT_DEVICES]; /* lock */
};

struct binary {
    const void *wrapper;         /* struct __fatBinC_Wrapper_t of the program */
    CUlibrary library;           /* lock; NULL: not loaded */
    CUmodule module[RT_DEVICES]; /* lock; without libraries */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *kernels, *variables; /* lock */

static struct entry *find(struct entry *list, const void *host)
{
    while (list && list->host != host)
        list = list->next;
    return list;
}

static struct entry *add(struct entry **list, void **binary, const void *host, const char *name)
{
    struct entry *e = calloc(1, sizeof(*e));

    if (!e)
        abort();
    e->from = (struct binary *)(void *)binary;
    e->host = host;
    e->name = name;
    pthread_mutex_lock(&lock);
    e->next = *list;
    *list = e;
    pthread_mutex_unlock(&lock);
    return e;
}

static bool have_libraries(void)
{
    return rt_has(rt_driver[0].cuLibraryLoadData) && rt_has(rt_driver[0].cuLibraryGetKernel);
}

/* Under lock, like all that follows up to rt_kernel. */
static CUresult load_library(struct binary *b)
{
    if (b->library)
        return CUDA_SUCCESS;
    return rt_driver[0].cuLibraryLoadData(&b->library, b->wrapper, NULL, NULL, 0, NULL, NULL, 0);
}

static CUresult load_module(struct binary *b, int device)
{
    if (b->module[device])
        return CUDA_SUCCESS;
    return rt_driver[0].cuModuleLoadData(&b->module[device], b->wrapper);
}

static CUresult load_kernel(struct entry *e)
{
    CUresult r;

    if (e->kernel)
        return CUDA_SUCCESS;
    r = load_library(e->from);
    if (r == CUDA_SUCCESS)
        r = rt_driver[0].cuLibraryGetKernel(&e->kernel, e->from->library, e->name);
    return r;
}

static CUresult load_function(struct entry *e, int device)
{
    CUresult r;

    if (e->function[device])
        return CUDA_SUCCESS;
    r = load_module(e->from, device);
    if (r == CUDA_SUCCESS)
        r = rt_driver[0].cuModuleGetFunction(&e->function[device], e->from->module[device],
                                             e->name);
    return r;
}

static CUresult load_variable(struct entry *e, int device)
{
    const struct rt_driver *d = &rt_driver[0];
    CUdeviceptr *at = &e->address[device];
    size_t size;
    CUresult r;

    if (*at)
        return CUDA_SUCCESS;
    if (e->managed) {
        r = d->cuMemAllocManaged(at, e->size, CU_MEM_ATTACH_GLOBAL);
        if (r ==
            CUDA_SUCCESS) /* by the host: a fill by the device might come after its first use */
            memset((void *)(size_t)*at, 0, e->size);
        return r;
    }
    if (have_libraries()) {
        r = load_library(e->from);
        if (r == CUDA_SUCCESS)
            r = d->cuLibraryGetGlobal(at, &size, e->from->library, e->name);
    } else {
        r = load_module(e->from, device);
        if (r == CUDA_SUCCESS)
            r = d->cuModuleGetGlobal(at, &size, e->from->module[device], e->name);
    }
    if (r == CUDA_SUCCESS && size < e->size) {
        *at = 0;
        r = CUDA_ERROR_NOT_SUPPORTED;
    }
    return r;
}

static int slot(void)
{
    int device = rt_device();
    return device < RT_DEVICES ? device : 0;
}

CUresult rt_symbol(const void *host, CUdeviceptr *address, size_t *size)
{
    CUresult r = (CUresult)cudaErrorInvalidSymbol;
    int device = slot();
    struct entry *e;

    pthread_mutex_lock(&lock);
    e = find(variables, host);
    if (e) {
        device = e->managed ? 0 : device; /* one address for all devices */
        r = load_variable(e, device);
        *address = e->address[device];
        *size = e->size;
    }
    pthread_mutex_unlock(&lock);
    return r;
}

static CUresult handle_of(const void *host, cudaKernel_t *out)
{
    CUresult r = (CUresult)cudaErrorInvalidDeviceFunction;
    struct entry *e;

    pthread_mutex_lock(&lock);
    e = find(kernels, host);
    if (e && have_libraries()) {
        r = load_kernel(e);
        *out = e->kernel;
    } else if (e) {
        r = CUDA_SUCCESS;
        *out = (cudaKernel_t)(void *)e;
    }
    pthread_mutex_unlock(&lock);
    return r;
}

CUresult rt_kernel_function(cudaKernel_t handle, CUfunction *fn)
{
    CUresult r = (CUresult)cudaErrorInvalidDeviceFunction;
    bool libraries = have_libraries();
    int device = slot();
    struct entry *e;

    pthread_mutex_lock(&lock);
    for (e = kernels; e; e = e->next)
        if (handle && handle == (libraries ? e->kernel : (cudaKernel_t)(void *)e))
            break;
    if (e && libraries) {
        r = CUDA_SUCCESS;
        *fn = (CUfunction)(void *)handle; /* a launch takes a CUkernel, too */
    } else if (e) {
        r = load_function(e, device);
        *fn = e->function[device];
    }
    pthread_mutex_unlock(&lock);
    return r;
}

CUresult rt_kernel(const void *host, CUfunction *fn)
{
    cudaKernel_t handle = NULL;
    CUresult r = handle_of(host, &handle);

    return r == CUDA_SUCCESS ? rt_kernel_function(handle, fn) : r;
}

/* ---- what the generated code calls; the prototypes are those of crt/host_runtime.h ---- */

RT_API void **__cudaRegisterFatBinary(void *wrapper);
RT_API void __cudaRegisterFatBinaryEnd(void **binary);
RT_API void __cudaUnregisterFatBinary(void **binary);
RT_API char __cudaInitModule(void **binary);
RT_API void __cudaRegisterFunction(void **binary, const char *host, char *device, const char *name,
                                   int thread_limit, void *tid, void *bid, void *bdim, void *gdim,
                                   int *warp);
RT_API void __cudaRegisterVar(void **binary, char *host, char *device, const char *name, int ext,
                              size_t size, int constant, int global);
RT_API void __cudaRegisterManagedVar(void **binary, void **host, char *device, const char *name,
                                     int ext, size_t size, int constant, int global);

void **__cudaRegisterFatBinary(void *wrapper)
{
    struct binary *b = calloc(1, sizeof(*b));

    if (!b)
        abort();
    b->wrapper = wrapper;
    return (void **)(void *)b;
}

void __cudaRegisterFatBinaryEnd(void **binary)
{
    (void)binary;
}

/* Runs at exit, after which no kernel of the binary is launched. What was loaded stays: other
 * exit handlers may still use the driver. */
void __cudaUnregisterFatBinary(void **binary)
{
    (void)binary;
}

void __cudaRegisterFunction(void **binary, const char *host, char *device, const char *name,
                            int thread_limit, void *tid, void *bid, void *bdim, void *gdim,
                            int *warp)
{
    add(&kernels, binary, host, name);
}

void __cudaRegisterVar(void **binary, char *host, char *device, const char *name, int ext,
                       size_t size, int constant, int global)
{
    add(&variables, binary, host, name)->size = size;
}

void __cudaRegisterManagedVar(void **binary, void **host, char *device, const char *name, int ext,
                              size_t size, int constant, int global)
{
    struct entry *e = add(&variables, binary, host, name);

    e->size = size;
    e->managed = host;
}

/* The host is about to use a managed variable of the binary: give all of them their memory. */
char __cudaInitModule(void **binary)
{
    CUresult r = rt_enter();

    pthread_mutex_lock(&lock);
    for (struct entry *e = variables; e && r == CUDA_SUCCESS; e = e->next) {
        if (!e->managed || (void *)e->from != (void *)binary)
            continue;
        r = load_variable(e, 0);
        *e->managed = (void *)(size_t)e->address[0];
    }
    pthread_mutex_unlock(&lock);
    return rt_done(r) == cudaSuccess;
}

static CUresult function_of(const void *host, cudaFunction_t *fn)
{
    return rt_kernel(host, fn);
}

static CUresult address_of(const void *symbol, void **p)
{
    CUdeviceptr at = 0;
    size_t size;
    CUresult r = rt_symbol(symbol, &at, &size);

    *p = (void *)(size_t)at;
    return r;
}

static CUresult size_of(const void *symbol, size_t *size)
{
    CUdeviceptr at;
    return rt_symbol(symbol, &at, size);
}

RT_CALL(__cudaGetKernel, (cudaKernel_t * out, const void *host), ((void)d, handle_of(host, out)))
RT_CALL(cudaGetKernel, (cudaKernel_t * out, const void *host), ((void)d, handle_of(host, out)))
RT_CALL(cudaGetFuncBySymbol, (cudaFunction_t * fn, const void *host),
        ((void)d, function_of(host, fn)))
RT_CALL(cudaGetSymbolAddress, (void **p, const void *symbol), ((void)d, address_of(symbol, p)))
RT_CALL(cudaGetSymbolSize, (size_t * size, const void *symbol), ((void)d, size_of(symbol, size)))

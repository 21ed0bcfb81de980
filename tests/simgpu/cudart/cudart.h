/* SPDX-License-Identifier: MIT */
#ifndef SIM_CUDART_H
#define SIM_CUDART_H
/* A stand-in for libcudart.so.13, so that binaries built with `nvcc -cudart shared` run on the
 * simulated driver, or on any other libcuda.so.1. This header is what its own files share.
 *
 * The way of a call. The runtime is a thin layer: each entry point
 *     1. makes sure that the driver is loaded and that the thread has a context (rt_enter),
 *     2. calls the driver through a table of pointers (rt_driver), and
 *     3. remembers a failure as the thread's last error (rt_done).
 * So most entry points are one row: RT_CALL or RT_TWINS, a signature, and the driver call.
 *
 * Two tables, because a program compiled with --default-stream per-thread calls cudaX_ptds or
 * cudaX_ptsz, for which stream 0 is the thread's own: rt_driver[1] was asked for with
 * CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, rt_driver[0] without.
 *
 * Errors. CUresult and cudaError_t agree in every value that is used here, so a cast converts.
 * pre: (everywhere) callable from any thread, never from a signal handler. */

#include <stdbool.h>
#include <stddef.h>

#pragma GCC visibility push(default)
#include <cuda_runtime_api.h>
#pragma GCC visibility pop
#include <cuda.h>
#include <cudaTypedefs.h>

#include "driver_list.h"

#define RT_API     __attribute__((visibility("default")))
#ifndef RT_VERSION /* another stand-in may play another version */
#define RT_VERSION CUDART_VERSION
#endif
#define RT_DEVICES 8 /* devices this stand-in keeps per-device state for */

/* The members carry the plain names of the list: cuda.h turns some of them into macros
 * (cuMemAlloc is cuMemAlloc_v2), here and at each use alike. */
struct rt_driver {
#define X(name, version) PFN_##name##_v##version name;
    RT_DRIVER_FUNCTIONS(X)
#undef X
};
extern struct rt_driver rt_driver[2];

/* Loads the driver once a process. Needs no device; blocks while another thread loads. */
CUresult rt_load(void);

/* rt_load, and a current context for this thread: its own, or else its device's primary one. */
CUresult rt_enter(void);

/* Makes the primary context of a device current and the device the thread's own. */
CUresult rt_use_device(int device);

/* The device of the thread's current context, or the one that it would get. */
int rt_device(void);

/* False where the driver at hand is too old for a function; calling it then gives
 * cudaErrorCallRequiresNewerDriver. */
bool rt_has_address(void (*fn)(void));
#define rt_has(fn) rt_has_address((void (*)(void))(fn))

/* Remembers a failure as the thread's last error and returns it as the runtime's. */
cudaError_t rt_done(CUresult result);

/* An entry point that needs a context: `call` is the driver call, `d` its table. */
#define RT_DEFINE(name, params, table, call)                                                       \
    RT_API cudaError_t name params;                                                                \
    cudaError_t name params                                                                        \
    {                                                                                              \
        const struct rt_driver *d = &rt_driver[table];                                             \
        CUresult r = rt_enter();                                                                   \
        return rt_done(r != CUDA_SUCCESS ? r : (call));                                            \
    }
#define RT_CALL(name, params, call) RT_DEFINE(name, params, 0, call)

/* The same for an entry point that also exists for the per-thread default stream. */
#define RT_TWINS(name, suffix, params, call)                                                       \
    RT_DEFINE(name, params, 0, call)                                                               \
    RT_DEFINE(name##suffix, params, 1, call)

/* register.c: what a program's constructors registered, by the address of its host shadow.
 * pre: rt_enter succeeded; the answer holds for the current context. */
CUresult rt_symbol(const void *host, CUdeviceptr *address, size_t *size);
CUresult rt_kernel(const void *host, CUfunction *fn);

/* The function to launch for a handle that __cudaGetKernel gave out. */
CUresult rt_kernel_function(cudaKernel_t handle, CUfunction *fn);

#endif

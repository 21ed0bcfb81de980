/* SPDX-License-Identifier: MIT */
/* Every driver function that the stand-in runtime uses, with the CUDA version whose signature it
 * expects: what cuGetProcAddress is asked for, as the real runtime asks. One row gives the typed
 * pointer (cudart.h) and the look-up (driver.c).
 *
 * A row names the signature that is newest up to CUDA 7.0, or the function's first: so that the
 * per-thread table, for which no version below 7.0 exists, gets the same signature. */
#define RT_DRIVER_FUNCTIONS(X)                                                                     \
    /* the driver, devices, contexts */                                                            \
    X(cuInit, 2000)                                                                                \
    X(cuDriverGetVersion, 2020)                                                                    \
    X(cuDeviceGet, 2000)                                                                           \
    X(cuDeviceGetCount, 2000)                                                                      \
    X(cuDeviceGetName, 2000)                                                                       \
    X(cuDeviceTotalMem, 3020)                                                                      \
    X(cuDeviceGetAttribute, 2000)                                                                  \
    X(cuDeviceCanAccessPeer, 4000)                                                                 \
    X(cuDeviceGetDefaultMemPool, 11020)                                                            \
    X(cuDevicePrimaryCtxRetain, 7000)                                                              \
    X(cuDevicePrimaryCtxRelease, 11000)                                                            \
    X(cuDevicePrimaryCtxReset, 11000)                                                              \
    X(cuCtxGetCurrent, 4000)                                                                       \
    X(cuCtxSetCurrent, 4000)                                                                       \
    X(cuCtxGetDevice, 2000)                                                                        \
    X(cuCtxSynchronize, 2000)                                                                      \
    X(cuCtxGetStreamPriorityRange, 5050)                                                           \
    X(cuCtxEnablePeerAccess, 4000)                                                                 \
    /* code */                                                                                     \
    X(cuLibraryLoadData, 12000)                                                                    \
    X(cuLibraryUnload, 12000)                                                                      \
    X(cuLibraryGetKernel, 12000)                                                                   \
    X(cuLibraryGetGlobal, 12000)                                                                   \
    X(cuLibraryGetManaged, 12000)                                                                  \
    X(cuModuleLoadData, 2000)                                                                      \
    X(cuModuleUnload, 2000)                                                                        \
    X(cuModuleGetFunction, 2000)                                                                   \
    X(cuModuleGetGlobal, 3020)                                                                     \
    X(cuLaunchKernel, 4000)                                                                        \
    X(cuLaunchKernelEx, 11060)                                                                     \
    X(cuLaunchCooperativeKernel, 9000)                                                             \
    X(cuLaunchHostFunc, 10000)                                                                     \
    /* memory */                                                                                   \
    X(cuMemGetInfo, 3020)                                                                          \
    X(cuMemAlloc, 3020)                                                                            \
    X(cuMemAllocPitch, 3020)                                                                       \
    X(cuMemAllocManaged, 6000)                                                                     \
    X(cuMemAllocAsync, 11020)                                                                      \
    X(cuMemFree, 3020)                                                                             \
    X(cuMemFreeAsync, 11020)                                                                       \
    X(cuMemHostAlloc, 2020)                                                                        \
    X(cuMemFreeHost, 2000)                                                                         \
    X(cuMemHostRegister, 6050)                                                                     \
    X(cuMemHostUnregister, 4000)                                                                   \
    X(cuMemHostGetDevicePointer, 3020)                                                             \
    X(cuMemHostGetFlags, 2030)                                                                     \
    X(cuPointerGetAttributes, 7000)                                                                \
    /* copies and fills */                                                                         \
    X(cuMemcpy, 4000)                                                                              \
    X(cuMemcpyAsync, 4000)                                                                         \
    X(cuMemcpyHtoD, 3020)                                                                          \
    X(cuMemcpyHtoDAsync, 3020)                                                                     \
    X(cuMemcpyDtoH, 3020)                                                                          \
    X(cuMemcpyDtoHAsync, 3020)                                                                     \
    X(cuMemcpyDtoD, 3020)                                                                          \
    X(cuMemcpyDtoDAsync, 3020)                                                                     \
    X(cuMemcpy2DUnaligned, 3020)                                                                   \
    X(cuMemcpy2DAsync, 3020)                                                                       \
    X(cuMemcpyPeer, 4000)                                                                          \
    X(cuMemcpyPeerAsync, 4000)                                                                     \
    X(cuMemsetD8, 3020)                                                                            \
    X(cuMemsetD8Async, 3020)                                                                       \
    X(cuMemsetD2D8, 3020)                                                                          \
    X(cuMemsetD2D8Async, 3020)                                                                     \
    /* streams */                                                                                  \
    X(cuStreamCreate, 2000)                                                                        \
    X(cuStreamCreateWithPriority, 5050)                                                            \
    X(cuStreamDestroy, 4000)                                                                       \
    X(cuStreamSynchronize, 2000)                                                                   \
    X(cuStreamQuery, 2000)                                                                         \
    X(cuStreamWaitEvent, 3020)                                                                     \
    X(cuStreamAddCallback, 5000)                                                                   \
    X(cuStreamGetFlags, 5050)                                                                      \
    X(cuStreamGetPriority, 5050)                                                                   \
    X(cuStreamGetId, 12000)                                                                        \
    X(cuStreamBeginCapture, 10010)                                                                 \
    X(cuStreamEndCapture, 10000)                                                                   \
    X(cuStreamIsCapturing, 10000)                                                                  \
    X(cuStreamGetCaptureInfo, 12030)                                                               \
    X(cuThreadExchangeStreamCaptureMode, 10010)                                                    \
    /* events */                                                                                   \
    X(cuEventCreate, 2000)                                                                         \
    X(cuEventRecord, 2000)                                                                         \
    X(cuEventRecordWithFlags, 11010)                                                               \
    X(cuEventQuery, 2000)                                                                          \
    X(cuEventSynchronize, 2000)                                                                    \
    X(cuEventElapsedTime, 2000)                                                                    \
    X(cuEventDestroy, 4000)                                                                        \
    /* graphs */                                                                                   \
    X(cuGraphInstantiateWithFlags, 11040)                                                          \
    X(cuGraphLaunch, 10000)                                                                        \
    X(cuGraphGetNodes, 10000)                                                                      \
    X(cuGraphDestroy, 10000)                                                                       \
    X(cuGraphExecDestroy, 10000)

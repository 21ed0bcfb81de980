/* SPDX-License-Identifier: MIT */
/* Programs that the simulated driver must end; driver.c runs them.
 *
 *     ends hang     a wait that nothing can end: status 99
 *     ends touch    a kernel that touches plain host memory: SIGABRT */
#include <cuda.h>
#include <stdint.h>
#include <string.h>

int main(int argc, char **argv)
{
    static uint32_t word;
    uint64_t n = 1;
    uint32_t one = 1;
    CUdeviceptr p = (CUdeviceptr)(uintptr_t)&word, pinned;
    void *params[] = {&p, &n, &one}, *gate_params[] = {&pinned, &one}, *memory;
    CUcontext context;
    CUmodule module;
    CUfunction f;

    if (argc != 2 || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) ||
        cuCtxSetCurrent(context) || cuModuleLoadData(&module, "") ||
        cuMemHostAlloc(&memory, 4096, 0))
        return 1;
    pinned = (CUdeviceptr)(uintptr_t)memory;
    if (strcmp(argv[1], "hang") == 0) {
        if (cuModuleGetFunction(&f, module, "gate_wait") ||
            cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, gate_params, NULL))
            return 1;
    } else if (cuModuleGetFunction(&f, module, "fill_u32") ||
               cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL)) {
        return 1;
    }
    cuCtxSynchronize();
    return 0;
}

/* SPDX-License-Identifier: MIT */
/* Devices: what there is, and what each can do. SIMGPU_DEVICES says how many, up to eight. */
#include "tests/simgpu/sim.h"

#include <stdio.h>
#include <string.h>

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    CUresult r = sim_enter("cuDeviceGet");

    if (r)
        return r;
    if (!device || ordinal < 0 || ordinal >= sim.devices)
        return sim_leave(CUDA_ERROR_INVALID_DEVICE);
    *device = ordinal;
    return sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuDeviceGetCount(int *count)
{
    CUresult r = sim_enter("cuDeviceGetCount");

    if (r)
        return r;
    *count = sim.devices;
    return sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
    CUresult r = sim_enter("cuDeviceGetName");

    if (r)
        return r;
    snprintf(name, (size_t)length, "Simulated GPU %d", device);
    return sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    CUresult r = sim_enter("cuDeviceTotalMem_v2");

    if (r)
        return r;
    *bytes = (size_t)16 << 30;
    return sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    CUresult r = sim_enter("cuDeviceGetUuid_v2");

    if (r)
        return r;
    memset(uuid, device + 1, sizeof *uuid);
    return sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    CUresult r = sim_enter("cuDeviceCanAccessPeer");

    if (r)
        return r;
    *can = device != peer;
    return sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
    CUresult r = sim_enter("cuCtxEnablePeerAccess");

    return r ? r : sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
    static char pools[SIM_MOST_DEVICES];
    CUresult r = sim_enter("cuDeviceGetDefaultMemPool");

    if (r)
        return r;
    *pool = (CUmemoryPool)&pools[device];
    return sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice device)
{
    CUresult r = sim_enter("cuDeviceGetAttribute");

    if (r)
        return r;
    switch (which) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = 9;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
        *value = 1024;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
        *value = 64;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
        *value = 2147483647;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
        *value = 65535;
        break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
        *value = 32;
        break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = 132;
        break;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
        *value = 3;
        break;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
        *value = 1;
        break;
    default:
        *value = 0;
    }
    return sim_leave(CUDA_SUCCESS);
}

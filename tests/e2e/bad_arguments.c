/* SPDX-License-Identifier: MIT */
/* Case 14: wrong arguments to what the shim hooks. Prints each answer; natively and preloaded the
 * output must be the same (same_output.py here, tests/hardware/run on a real GPU). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda.h>

#define SHOW(call) printf("%-58s %d\n", #call, call)

int main(void)
{
    enum { N = 8 << 20 };
    CUdeviceptr d = 0, none = 0;
    CUcontext context;
    CUevent event, never;
    CUstream s, nowhere = NULL;
    char *host = malloc(N);
    void *pinned, *missing = host + 100;
    float ms;

    memset(host, 1, N);
    SHOW(cuMemcpyHtoD(d, host, N)); /* before cuInit */
    SHOW(cuInit(0));
    SHOW(cuMemcpyHtoD(d, host, N)); /* no context */
    SHOW(cuMemcpyHtoDAsync(d, host, N, NULL));
    SHOW(cuMemcpyDtoH(host, d, N));
    SHOW(cuDevicePrimaryCtxRetain(&context, 0));
    SHOW(cuCtxSetCurrent(context));
    SHOW(cuMemAlloc(&d, N));
    SHOW(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    SHOW(cuEventCreate(&event, CU_EVENT_DEFAULT));
    SHOW(cuEventCreate(&never, CU_EVENT_DEFAULT));
    SHOW(cuMemcpyHtoD(none, host, N));
    SHOW(cuMemcpyHtoD(d, NULL, N));
    SHOW(cuMemcpyHtoD(d, host, 0));
    SHOW(cuMemcpyHtoD(none, NULL, 0));
    SHOW(cuMemcpyDtoH(NULL, d, N));
    SHOW(cuMemcpyDtoH(host, none, N));
    SHOW(cuMemcpyDtoH(host, d, 0));
    SHOW(cuMemcpyHtoDAsync(none, host, N, s));
    SHOW(cuMemcpyHtoDAsync(d, host, 0, s));
    SHOW(cuMemcpyDtoHAsync(host, none, N, s));
    SHOW(cuMemcpyHtoD(d + N / 2, host, N)); /* beyond the end */
    SHOW(cuMemcpy(none, d, N));
    SHOW(cuMemcpy(d, none, N));
    SHOW(cuMemcpy(d, d, 0));
    SHOW(cuMemsetD8(none, 0, N));
    SHOW(cuMemFree(none));
    SHOW(cuMemFree(d + 4096));
    SHOW(cuMemFreeHost(NULL));
    SHOW(cuMemHostUnregister(missing));
    SHOW(cuMemHostRegister(host, 0, 0));
    SHOW(cuMemAlloc(&none, 0));
    SHOW(cuMemHostAlloc(&pinned, 0, 0));
    SHOW(cuEventRecord(NULL, s));
    SHOW(cuEventQuery(never));
    SHOW(cuEventSynchronize(never));
    SHOW(cuEventElapsedTime(&ms, never, event));
    SHOW(cuStreamWaitEvent(s, NULL, 0));
    SHOW(cuStreamWaitEvent(s, never, 0));
    SHOW(cuStreamDestroy(nowhere));
    SHOW(cuStreamBeginCapture(nowhere, CU_STREAM_CAPTURE_MODE_GLOBAL)); /* the legacy stream */
    SHOW(cuStreamEndCapture(s, &(CUgraph){NULL}));
    SHOW(cuMemcpyHtoD(d, host, N)); /* and the call after all that */
    SHOW(cuMemcpyDtoH(host, d, N));
    printf("%d\n", host[0] + host[N - 1]);
    return 0;
}

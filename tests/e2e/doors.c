/* SPDX-License-Identifier: MIT */
/* A program that makes known numbers of calls through one door, for log.py to compare with the log.
 *
 *   doors direct|dlsym|resolve|per-thread COPIES LAUNCHES
 *       [fork|exec|thread-exit|destructor|unknown|unknown-thread]
 *
 * Then one more thing, if it is named: a child that makes no CUDA call, one that is replaced, an
 * end in another thread, one more copy in a destructor, or calls of a function that no header
 * knows; the last one first, and in another thread. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Every variant's type, and direct references to the plain ones. */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

enum { BYTES = 1 << 20 };

static struct {
    CUresult (*copy)(CUdeviceptr, const void *, size_t);
    CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                       unsigned, CUstream, void **, void **);
    CUresult (*record)(CUevent, CUstream);
    CUresult (*wait)(CUstream, CUevent, unsigned);
} door;

static CUdeviceptr device;
static char *host;

static void must(CUresult r, const char *what)
{
    if (r != CUDA_SUCCESS) {
        printf("%s gives %d\n", what, r);
        fflush(stdout);
        _exit(3);
    }
}

static void *named(const char *name)
{
    static void *libcuda;

    if (!libcuda)
        libcuda = dlopen("libcuda.so.1", RTLD_NOW);
    return dlsym(libcuda, name);
}

static void *resolved(const char *name, cuuint64_t flags)
{
    static CUresult (*resolve)(const char *, void **, int, cuuint64_t, void *);
    void *p = NULL;

    if (!resolve)
        *(void **)&resolve = named("cuGetProcAddress_v2");
    must(resolve(name, &p, 13000, flags, NULL), name);
    return p;
}

static void open_door(const char *which)
{
    cuuint64_t flags = strcmp(which, "per-thread") == 0
                           ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
                           : CU_GET_PROC_ADDRESS_LEGACY_STREAM;

    if (strcmp(which, "direct") == 0) {
        door.copy = cuMemcpyHtoD_v2;
        door.launch = cuLaunchKernel;
        door.record = cuEventRecord;
        door.wait = cuStreamWaitEvent;
    } else if (strcmp(which, "dlsym") == 0) {
        *(void **)&door.copy = named("cuMemcpyHtoD_v2");
        *(void **)&door.launch = named("cuLaunchKernel");
        *(void **)&door.record = named("cuEventRecord");
        *(void **)&door.wait = named("cuStreamWaitEvent");
    } else {
        *(void **)&door.copy = resolved("cuMemcpyHtoD", flags);
        *(void **)&door.launch = resolved("cuLaunchKernel", flags);
        *(void **)&door.record = resolved("cuEventRecord", flags);
        *(void **)&door.wait = resolved("cuStreamWaitEvent", flags);
    }
}

/* Through every door, each twice. */
static void *call_unknown(void *unused)
{
    CUresult (*unknown[3])(CUstream);

    *(void **)&unknown[0] = named("cuSimUnheardOf");
    *(void **)&unknown[1] = resolved("cuSimUnheardOf", 0);
    *(void **)&unknown[2] = dlsym(RTLD_DEFAULT, "cuSimUnheardOf");
    for (int i = 0; i < 6; i++)
        must(unknown[i % 3](NULL), "cuSimUnheardOf");
    return unused;
}

int main(int argc, char **argv)
{
    int copies = argc > 2 ? atoi(argv[2]) : 1, launches = argc > 3 ? atoi(argv[3]) : 1;
    const char *more = argc > 4 ? argv[4] : "";
    CUcontext context;
    CUmodule module;
    CUfunction empty;
    CUevent event;
    pthread_t thread;

    must(cuInit(0), "cuInit");
    must(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    must(cuModuleLoadData(&module, ""), "cuModuleLoadData");
    must(cuModuleGetFunction(&empty, module, "empty"), "cuModuleGetFunction");
    must(cuEventCreate(&event, CU_EVENT_DEFAULT), "cuEventCreate");
    must(cuMemAlloc_v2(&device, BYTES), "cuMemAlloc");
    host = malloc(BYTES);
    memset(host, 7, BYTES);
    open_door(argc > 1 ? argv[1] : "direct");
    if (strcmp(more, "unknown-thread") == 0) {
        pthread_create(&thread, NULL, call_unknown, NULL);
        pthread_join(thread, NULL);
    }
    for (int i = 0; i < copies; i++)
        must(door.copy(device, host, BYTES), "copy");
    for (int i = 0; i < launches; i++) {
        must(door.launch(empty, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), "launch");
        must(door.record(event, NULL), "record");
        must(door.wait(NULL, event, 0), "wait");
    }
    printf("done\n");
    fflush(stdout);
    if (strcmp(more, "unknown") == 0)
        call_unknown(NULL);
    return 0;
}

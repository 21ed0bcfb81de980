/* SPDX-License-Identifier: MIT */
/* Doors, versions, contexts; and what tests ask of a stand-in: counts, failures on demand, an end
 * to what hangs. */
#include "tests/simgpu/selftest/self.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Before the driver reads them. */
__attribute__((constructor)) static void settings(void)
{
    setenv("SIMGPU_PIN_LIMIT", "67108864", 1);
    setenv("SIMGPU_FAIL", "cuMemGetInfo_v2:2,cuMemGetInfo_v2:4+:100", 1);
}

static void *address(const char *name, int version, int flags, CUdriverProcAddressQueryResult want)
{
    CUdriverProcAddressQueryResult status;
    void *p = NULL;

    cuGetProcAddress(name, &p, version, (cuuint64_t)flags, &status);
    CHECK_EQ_INT(status, want);
    return p;
}

static void *symbol(const char *name)
{
    void *p = dlsym(RTLD_DEFAULT, name);

    CHECK(p != NULL);
    return p;
}

TEST(driver, cuGetProcAddress_gives_the_symbol_of_the_version)
{
    enum { OF_THREAD = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM };
    static const struct {
        const char *name;
        int version, flags;
        const char *symbol;
    } rows[] = {
        {"cuMemcpyHtoD", 13000, 0, "cuMemcpyHtoD_v2"},
        {"cuMemcpyHtoD", 13000, OF_THREAD, "cuMemcpyHtoD_v2_ptds"},
        {"cuMemcpyHtoDAsync", 13000, OF_THREAD, "cuMemcpyHtoDAsync_v2_ptsz"},
        {"cuLaunchKernel", 12000, OF_THREAD, "cuLaunchKernel_ptsz"},
        {"cuMemAlloc", 12000, OF_THREAD, "cuMemAlloc_v2"},
        {"cuCtxCreate", 11000, 0, "cuCtxCreate_v2"},
        {"cuCtxCreate", 12000, 0, "cuCtxCreate_v3"},
        {"cuCtxCreate", 13000, 0, "cuCtxCreate_v4"},
        {"cuGraphInstantiate", 11000, 0, "cuGraphInstantiate_v2"},
        {"cuGraphInstantiate", 12000, 0, "cuGraphInstantiateWithFlags"},
        {"cuStreamGetCaptureInfo", 12000, 0, "cuStreamGetCaptureInfo_v2"},
        {"cuStreamGetCaptureInfo", 12030, 0, "cuStreamGetCaptureInfo_v3"},
        {"cuGetProcAddress", 11030, 0, "cuGetProcAddress"},
        {"cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2"},
        {"cuSimUnheardOf", 13000, 0, "cuSimUnheardOf"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK(address(rows[i].name, rows[i].version, rows[i].flags, CU_GET_PROC_ADDRESS_SUCCESS) ==
              symbol(rows[i].symbol));
    CHECK(!address("cuStreamGetId", 11080, 0, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT));
    CHECK(!address("cuNoSuchThing", 13000, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND));
}

TEST(driver, a_kernel_tells_its_parameters)
{
    size_t offset, size;
    CUfunction f;

    self_setup();
    f = self_kernel("fill_u32");
    OK(cuFuncGetParamInfo(f, 2, &offset, &size));
    CHECK(offset == 16 && size == 4);
    CHECK_EQ_INT(cuFuncGetParamInfo(f, 3, &offset, &size), CUDA_ERROR_INVALID_VALUE);
}

TEST(driver, calls_are_counted_and_fail_on_demand)
{
    unsigned long before;
    size_t a, b;

    self_setup();
    simgpu_reset_counts();
    CHECK_EQ_U64(simgpu_count("cuMemGetInfo_v2"), 0);
    OK(cuMemGetInfo(&a, &b)); /* settings() says which of them fail */
    CHECK_EQ_INT(cuMemGetInfo(&a, &b), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemGetInfo(&a, &b));
    CHECK_EQ_INT(cuMemGetInfo(&a, &b), CUDA_ERROR_NO_DEVICE);
    CHECK_EQ_INT(cuMemGetInfo(&a, &b), CUDA_ERROR_NO_DEVICE);
    CHECK_EQ_U64(simgpu_count("cuMemGetInfo_v2"), 5);
    before = simgpu_count("cuStreamQuery");
    OK(cuStreamQuery(CU_STREAM_LEGACY));
    CHECK_EQ_U64(simgpu_count("cuStreamQuery"), before + 1);
    CHECK_EQ_U64(simgpu_count("cuNoSuchThing"), 0);
}

TEST(driver, errors_have_names)
{
    const char *text = "";

    OK(cuGetErrorName(CUDA_ERROR_NOT_READY, &text));
    CHECK_EQ_STR(text, "CUDA_ERROR_NOT_READY");
    CHECK_EQ_INT(cuGetErrorString((CUresult)123456, &text), CUDA_ERROR_INVALID_VALUE);
    CHECK(text == NULL);
}

TEST(driver, two_devices_with_contexts_of_their_own)
{
    CUcontext first, second, now;
    CUstream s;
    CUdeviceptr a, b;
    int count;

    self_setup();
    OK(cuDeviceGetCount(&count));
    CHECK_EQ_INT(count, 2);
    OK(cuCtxGetCurrent(&first));
    a = self_device(4);
    OK(cuDevicePrimaryCtxRetain(&second, 1));
    OK(cuCtxPushCurrent(second));
    b = self_device(4);
    s = self_stream(CU_STREAM_NON_BLOCKING);
    OK(cuCtxPopCurrent(&now));
    CHECK(now == second);
    OK(cuCtxGetCurrent(&now));
    CHECK(now == first);
    OK(cuMemsetD32(a, 17, 1)); /* on the first one's stream */
    OK(cuCtxSynchronize());
    OK(cuMemcpyPeerAsync(b, second, a, first, 4, s)); /* on the second one's */
    OK(cuStreamSynchronize(s));
    CHECK_EQ_U64(self_word(b), 17);
    OK(cuMemFree(a));
    OK(cuMemFree(b));
    OK(cuStreamDestroy(s));
    OK(cuDevicePrimaryCtxRelease(1));
}

/* On the second device: the first one's context is every test's. */
TEST(driver, a_reset_ends_streams_events_and_memory_but_not_the_handle)
{
    unsigned long long id, id_after;
    CUcontext context, again;
    CUdeviceptr d;
    unsigned type;
    CUstream s;
    CUevent e;

    self_setup();
    OK(cuDevicePrimaryCtxRetain(&context, 1));
    OK(cuCtxPushCurrent(context));
    OK(cuCtxGetId(context, &id));
    s = self_stream(CU_STREAM_DEFAULT);
    d = self_device(4);
    OK(cuEventCreate(&e, CU_EVENT_DEFAULT));
    OK(cuEventRecord(e, s));
    self_fill(s, d, 1);
    OK(cuDevicePrimaryCtxReset(1));
    CHECK_EQ_INT(cuStreamSynchronize(CU_STREAM_LEGACY), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    OK(cuDevicePrimaryCtxRetain(&again, 1));
    CHECK(again == context);
    OK(cuCtxGetId(again, &id_after));
    CHECK(id != id_after);
    CHECK_EQ_INT(cuStreamQuery(s), CUDA_ERROR_INVALID_HANDLE);
    CHECK_EQ_INT(cuEventQuery(e), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CHECK_EQ_INT(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, d),
                 CUDA_ERROR_INVALID_VALUE);
    OK(cuCtxPopCurrent(&again));
    OK(cuDevicePrimaryCtxRelease(1));
    OK(cuDevicePrimaryCtxRelease(1));
}

static int status_of(const char *way)
{
    char program[] = ENDS, argument[16], *args[] = {program, argument, NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status;

    snprintf(argument, sizeof argument, "%s", way);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    setenv("SIMGPU_HANG_S", "0.2", 1);
    CHECK_EQ_INT(posix_spawn(&child, program, &actions, NULL, args, environ), 0);
    unsetenv("SIMGPU_HANG_S");
    posix_spawn_file_actions_destroy(&actions);
    CHECK_EQ_INT(waitpid(child, &status, 0), child);
    return status;
}

TEST(driver, a_hang_ends_the_process)
{
    int status = status_of("hang");

    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 99);
}

TEST(driver, a_kernel_that_touches_what_it_cannot_ends_the_process)
{
    int status = status_of("touch");

    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

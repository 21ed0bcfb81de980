/* SPDX-License-Identifier: MIT */
#include "tests/simgpu/selftest/self.h"

#include <sched.h>
#include <stdlib.h>

static CUmodule module;
static CUcontext context;
static uint32_t *gate;
static CUstream reader;

bool self_scheduler_is(const char *name)
{
    const char *now = getenv("SIMGPU_SCHED");

    return now && strcmp(now, name) == 0;
}

void self_setup(void)
{
    void *p;

    if (module) {
        OK(cuCtxSetCurrent(context));
        return;
    }
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    OK(cuModuleLoadData(&module, ""));
    OK(cuMemHostAlloc(&p, 4096, 0));
    gate = p;
    reader = self_stream(CU_STREAM_NON_BLOCKING);
}

CUfunction self_kernel(const char *name)
{
    CUfunction f;

    OK(cuModuleGetFunction(&f, module, name));
    return f;
}

void self_close_gate(CUstream stream)
{
    uint32_t open = 1;

    __atomic_store_n(gate, 0, __ATOMIC_SEQ_CST);
    LAUNCH(stream, "gate_wait", &gate, &open);
}

void self_open_gate(void)
{
    __atomic_store_n(gate, 1, __ATOMIC_SEQ_CST);
}

bool self_gate_is_open(void)
{
    return __atomic_load_n(gate, __ATOMIC_SEQ_CST) == 1;
}

CUstream self_stream(unsigned flags)
{
    CUstream s;

    OK(cuStreamCreate(&s, flags));
    return s;
}

CUdeviceptr self_device(size_t bytes)
{
    CUdeviceptr p = 0;

    OK(cuMemAlloc(&p, bytes));
    return p;
}

void *self_pinned(size_t bytes)
{
    void *p = NULL;

    OK(cuMemHostAlloc(&p, bytes, 0));
    return p;
}

uint32_t self_word(CUdeviceptr p)
{
    uint32_t word = 0;

    OK(cuMemcpyDtoHAsync(&word, p, sizeof word, reader));
    return word;
}

void self_fill(CUstream stream, CUdeviceptr p, uint32_t value)
{
    uint64_t n = 1;

    LAUNCH(stream, "fill_u32", &p, &n, &value);
}

struct caller {
    self_call *call;
    void *arg;
    CUresult result;
    bool saw_open;
};

static void *make_call(void *arg)
{
    struct caller *c = arg;

    c->result = cuCtxSetCurrent(context);
    if (c->result == CUDA_SUCCESS)
        c->result = c->call(c->arg);
    c->saw_open = self_gate_is_open();
    return NULL;
}

bool self_waits(const char *function, self_call *call, void *arg)
{
    struct caller c = {call, arg, CUDA_SUCCESS, false};
    unsigned long before = simgpu_count(function);
    pthread_t thread;

    CHECK_EQ_INT(pthread_create(&thread, NULL, make_call, &c), 0);
    while (simgpu_count(function) == before)
        sched_yield();
    for (int i = 0; i < 1000; i++) /* time for one that does not wait to come back */
        sched_yield();
    self_open_gate();
    pthread_join(thread, NULL);
    OK(c.result);
    return c.saw_open;
}

/* SPDX-License-Identifier: MIT */
#include "tests/e2e/e2e.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static CUmodule module;
static void *pinned; /* kept: to free it would wait for the device */
enum { PINNED = 48 << 20 };

/* The kernels' PTX; the simulated driver knows them by name and ignores the image. */
static char *kernel_image(void)
{
    const char *path = getenv("ES_KERNELS_PTX");
    char *image = calloc(1, 1 << 20);
    FILE *f = path ? fopen(path, "r") : NULL;

    if (f) {
        if (fread(image, 1, (1 << 20) - 1, f) == 0)
            fprintf(stderr, "e2e: %s is empty\n", path);
        fclose(f);
    }
    return image;
}

void e2e_setup_without_pinned(void)
{
    CUcontext context;
    char *image;

    if (module)
        return;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    image = kernel_image();
    OK(cuModuleLoadData(&module, image));
    free(image);
}

void e2e_setup(void)
{
    e2e_setup_without_pinned();
    if (!pinned)
        OK(cuMemHostAlloc(&pinned, PINNED, CU_MEMHOSTALLOC_PORTABLE));
}

CUfunction e2e_kernel(const char *name)
{
    CUfunction f = NULL;

    OK(cuModuleGetFunction(&f, module, name));
    return f;
}

void e2e_gate_make(struct e2e_gate *gate)
{
    void *p;

    OK(cuMemHostAlloc(&p, sizeof(uint32_t), CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE));
    gate->flag = p;
    *gate->flag = 0;
    OK(cuMemHostGetDevicePointer(&gate->on_device, p, 0));
    /* The first launch of a kernel loads it, and that waits for the device. */
    uint32_t now = 0;

    LAUNCH(CU_STREAM_LEGACY, "gate_wait", &gate->on_device, &now);
    OK(cuStreamSynchronize(CU_STREAM_LEGACY));
}

void e2e_gate_close(struct e2e_gate *gate, CUstream stream)
{
    uint32_t open = 1;

    __atomic_store_n(gate->flag, 0, __ATOMIC_SEQ_CST);
    LAUNCH(stream, "gate_wait", &gate->on_device, &open);
}

void e2e_gate_open(struct e2e_gate *gate)
{
    __atomic_store_n(gate->flag, 1, __ATOMIC_SEQ_CST);
}

void e2e_gate_free(struct e2e_gate *gate)
{
    OK(cuMemFreeHost((void *)(uintptr_t)gate->flag));
}

static uint32_t word_at(size_t i, uint32_t seed)
{
    return (uint32_t)(i * 2654435761u) ^ (seed * 0x9E3779B9u);
}

void e2e_fill(void *p, size_t bytes, uint32_t seed)
{
    unsigned char *b = p;

    for (size_t i = 0; i < bytes / 4; i++) {
        uint32_t w = word_at(i, seed);

        memcpy(b + i * 4, &w, 4);
    }
    for (size_t i = bytes & ~(size_t)3; i < bytes; i++)
        b[i] = (unsigned char)(seed + i);
}

bool e2e_is_filled(const void *p, size_t bytes, uint32_t seed)
{
    const unsigned char *b = p;

    for (size_t i = 0; i < bytes / 4; i++) {
        uint32_t w = word_at(i, seed);

        if (memcmp(b + i * 4, &w, 4) != 0)
            return false;
    }
    for (size_t i = bytes & ~(size_t)3; i < bytes; i++)
        if (b[i] != (unsigned char)(seed + i))
            return false;
    return true;
}

void *e2e_filled(size_t bytes, uint32_t seed)
{
    void *p = malloc(bytes);

    CHECK(p != NULL);
    e2e_fill(p, bytes, seed);
    return p;
}

bool e2e_device_is_filled(CUdeviceptr p, size_t bytes, uint32_t seed)
{
    CUstream s;

    CHECK(bytes <= PINNED);
    OK(cuStreamCreate(&s, CU_STREAM_DEFAULT)); /* ordered after the legacy stream's copies */
    OK(cuMemcpyDtoHAsync(pinned, p, bytes, s));
    OK(cuStreamSynchronize(s));
    OK(cuStreamDestroy(s));
    return e2e_is_filled(pinned, bytes, seed);
}

CUdeviceptr e2e_device_alloc(size_t bytes)
{
    CUdeviceptr p = 0;

    OK(cuMemAlloc(&p, bytes));
    return p;
}

static bool is_set_to(const char *variable, const char *value)
{
    const char *now = getenv(variable);

    return now && strcmp(now, value) == 0;
}

bool e2e_is_native(void)
{
    const char *preload = getenv("LD_PRELOAD");

    return !preload || !strstr(preload, "libepochshim") || is_set_to("EPOCHSHIM_MODE", "off") ||
           is_set_to("EPOCHSHIM_MODE", "observe");
}

bool e2e_is_rewritten(void)
{
    return !e2e_is_native() && is_set_to("EPOCHSHIM_MIN_BYTES", "1") &&
           is_set_to("EPOCHSHIM_WARMUP", "0") && !getenv("SIMGPU_PIN_LIMIT");
}

bool e2e_is_followed(void)
{
    return e2e_is_rewritten() && !getenv("SIMGPU_DRIVER_VERSION");
}

bool e2e_runs_only_what_it_must(void)
{
    return e2e_is_followed() && is_set_to("SIMGPU_SCHED", "lazy");
}

void e2e_queue_later_work(CUstream stream, CUdeviceptr memory, uint64_t words)
{
    float one = 1;

    for (int i = 0; i < E2E_LATER; i++)
        LAUNCH(stream, "scale_f32", &memory, &one, &words);
}

long e2e_later_work_done(void)
{
    return e2e_driver_calls("scale_f32");
}

void e2e_fill_words(CUstream stream, CUdeviceptr p, uint64_t words, uint32_t value)
{
    LAUNCH(stream, "fill_u32", &p, &words, &value);
}

bool e2e_is_by_args(void)
{
    return is_set_to("EPOCHSHIM_KERNELS", "args");
}

long e2e_driver_calls(const char *function)
{
    unsigned long (*count)(const char *) =
        (unsigned long (*)(const char *))dlsym(RTLD_DEFAULT, "simgpu_count");

    return count ? (long)count(function) : -1;
}

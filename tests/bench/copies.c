/* SPDX-License-Identifier: MIT */
/* copies [--most BYTES] [--pinned] [--one-core] [ROW ...]: how long copies take, one row a line,
 * for tests/bench/copies.py:
 *
 *   row NAME BYTES until-return-us until-done-us cpu-ms
 *
 * Medians; the device is idle when a copy begins. --pinned: host memory that the driver allocated.
 * --one-core: the calling thread is bound to one. It is a plain CUDA program, and knows no shim. */
#include <cuda.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#define KiB ((size_t)1 << 10)
#define MiB ((size_t)1 << 20)
#define GiB ((size_t)1 << 30)

static bool pinned;
static CUcontext context;

static void must(CUresult r, const char *call)
{
    if (r != CUDA_SUCCESS) {
        printf("%s gives %d\n", call, r);
        exit(1);
    }
}
#define OK(call) must((call), #call)

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static double cpu_ms(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
}

/* --- memory --- */

enum pages { TOUCHED, FRESH, FRESH_HUGE };

/* Fresh: pages that nobody has touched. */
static char *host_alloc(size_t bytes, enum pages pages)
{
    void *p;

    if (pinned) {
        OK(cuMemHostAlloc(&p, bytes, 0));
        return p;
    }
    p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        must(CUDA_ERROR_OUT_OF_MEMORY, "mmap");
    madvise(p, bytes, pages == FRESH_HUGE ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    if (pages == TOUCHED)
        memset(p, 1, bytes);
    return p;
}

static void host_free(char *p, size_t bytes)
{
    if (pinned)
        OK(cuMemFreeHost(p));
    else
        munmap(p, bytes);
}

/* --- measurements: each fills in one sample --- */

struct sample {
    double until_return, until_done, cpu; /* us, us, ms */
};

struct row {
    const char *name;
    size_t bytes;
    struct sample (*measure)(const struct row *row);
    int direction; /* 0: to the device */
    enum pages pages;
    unsigned calls, threads;
};

static CUdeviceptr device;
static char *touched;

static void copy(int direction, char *host, size_t bytes)
{
    if (direction == 0)
        OK(cuMemcpyHtoD(device, host, bytes));
    else
        OK(cuMemcpyDtoH(host, device, bytes));
}

static struct sample one_call(const struct row *row)
{
    char *host = row->pages == TOUCHED ? touched : host_alloc(row->bytes, row->pages);
    double cpu = cpu_ms(), begun = now_us();
    struct sample s;

    copy(row->direction, host, row->bytes);
    s.until_return = now_us() - begun;
    OK(cuCtxSynchronize());
    s.until_done = now_us() - begun;
    s.cpu = cpu_ms() - cpu;
    if (host != touched)
        host_free(host, row->bytes);
    return s;
}

/* A call of many. */
static struct sample back_to_back(const struct row *row)
{
    double cpu = cpu_ms(), begun = now_us();
    struct sample s;

    for (unsigned i = 0; i < row->calls; i++)
        copy(row->direction, touched, row->bytes);
    s.until_return = (now_us() - begun) / row->calls;
    OK(cuCtxSynchronize());
    s.until_done = (now_us() - begun) / row->calls;
    s.cpu = (cpu_ms() - cpu) / row->calls;
    return s;
}

/* All of them. */
static struct sample async_of_1_to_3_kb(const struct row *row)
{
    double cpu = cpu_ms(), begun = now_us();
    struct sample s;

    for (unsigned i = 0; i < row->calls; i++)
        OK(cuMemcpyHtoDAsync(device + i * row->bytes, touched + i * row->bytes,
                             KiB + i * 37 % (2 * KiB), NULL));
    s.until_return = now_us() - begun;
    OK(cuCtxSynchronize());
    s.until_done = now_us() - begun;
    s.cpu = cpu_ms() - cpu;
    return s;
}

/* Rows of 4 KiB that lie 8 KiB apart. */
static struct sample two_dimensions(const struct row *row)
{
    enum { WIDTH = 4096, PITCH = 8192 };
    CUDA_MEMCPY2D m = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                       .srcHost = touched,
                       .srcPitch = PITCH,
                       .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                       .dstDevice = device,
                       .dstPitch = WIDTH,
                       .WidthInBytes = WIDTH,
                       .Height = row->bytes / WIDTH};
    double cpu, begun;
    struct sample s;

    if (row->direction) {
        m.dstMemoryType = CU_MEMORYTYPE_HOST;
        m.dstHost = touched;
        m.dstPitch = PITCH;
        m.srcMemoryType = CU_MEMORYTYPE_DEVICE;
        m.srcDevice = device;
        m.srcPitch = WIDTH;
    }
    cpu = cpu_ms();
    begun = now_us();
    OK(cuMemcpy2DUnaligned(&m));
    s.until_return = now_us() - begun;
    OK(cuCtxSynchronize());
    s.until_done = now_us() - begun;
    s.cpu = cpu_ms() - cpu;
    return s;
}

struct part {
    const struct row *row;
    unsigned number;
    CUstream stream;
};

static void *copy_part(void *arg)
{
    const struct part *p = arg;
    size_t at = p->number * p->row->bytes;

    OK(cuCtxSetCurrent(context));
    if (p->row->direction == 0)
        OK(cuMemcpyHtoDAsync(device + at, touched + at, p->row->bytes, p->stream));
    else
        OK(cuMemcpyDtoHAsync(touched + at, device + at, p->row->bytes, p->stream));
    OK(cuStreamSynchronize(p->stream));
    return NULL;
}

/* Each thread its own part, on a stream of its own. */
static struct sample several_threads(const struct row *row)
{
    pthread_t threads[8];
    struct part parts[8];
    double cpu, begun;
    struct sample s;

    for (unsigned i = 0; i < row->threads; i++) {
        parts[i] = (struct part){row, i, NULL};
        OK(cuStreamCreate(&parts[i].stream, CU_STREAM_NON_BLOCKING));
    }
    cpu = cpu_ms();
    begun = now_us();
    for (unsigned i = 0; i < row->threads; i++)
        pthread_create(&threads[i], NULL, copy_part, &parts[i]);
    for (unsigned i = 0; i < row->threads; i++)
        pthread_join(threads[i], NULL);
    s.until_return = s.until_done = now_us() - begun;
    s.cpu = cpu_ms() - cpu;
    for (unsigned i = 0; i < row->threads; i++)
        OK(cuStreamDestroy(parts[i].stream));
    return s;
}

/* clang-format off */
static const struct row rows[] = {
    {"H2D", 4, one_call, 0, TOUCHED, 0, 0},
    {"H2D", 4 * KiB, one_call, 0, TOUCHED, 0, 0},
    {"H2D", 64 * KiB, one_call, 0, TOUCHED, 0, 0},
    {"H2D", 1 * MiB, one_call, 0, TOUCHED, 0, 0},
    {"H2D", 4 * MiB, one_call, 0, TOUCHED, 0, 0},
    {"H2D", 16 * MiB, one_call, 0, TOUCHED, 0, 0},
    {"H2D", 64 * MiB, one_call, 0, TOUCHED, 0, 0},
    {"H2D", 256 * MiB, one_call, 0, TOUCHED, 0, 0},
    {"H2D", 1 * GiB, one_call, 0, TOUCHED, 0, 0},
    {"H2D", 4 * GiB, one_call, 0, TOUCHED, 0, 0},
    {"D2H", 4, one_call, 1, TOUCHED, 0, 0},
    {"D2H", 4 * KiB, one_call, 1, TOUCHED, 0, 0},
    {"D2H", 64 * KiB, one_call, 1, TOUCHED, 0, 0},
    {"D2H", 1 * MiB, one_call, 1, TOUCHED, 0, 0},
    {"D2H", 4 * MiB, one_call, 1, TOUCHED, 0, 0},
    {"D2H", 16 * MiB, one_call, 1, TOUCHED, 0, 0},
    {"D2H", 64 * MiB, one_call, 1, TOUCHED, 0, 0},
    {"D2H", 256 * MiB, one_call, 1, TOUCHED, 0, 0},
    {"D2H", 1 * GiB, one_call, 1, TOUCHED, 0, 0},
    {"D2H", 4 * GiB, one_call, 1, TOUCHED, 0, 0},
    {"D2H-fresh", 4 * MiB, one_call, 1, FRESH, 0, 0},
    {"D2H-fresh", 64 * MiB, one_call, 1, FRESH, 0, 0},
    {"D2H-fresh", 1 * GiB, one_call, 1, FRESH, 0, 0},
    {"D2H-fresh-huge", 64 * MiB, one_call, 1, FRESH_HUGE, 0, 0},
    {"D2H-fresh-huge", 800000000, one_call, 1, FRESH_HUGE, 0, 0},
    {"H2D-back-to-back", 4 * KiB, back_to_back, 0, TOUCHED, 2000, 0},
    {"H2D-back-to-back", 64 * KiB, back_to_back, 0, TOUCHED, 1000, 0},
    {"H2D-async-3000", 4 * KiB, async_of_1_to_3_kb, 0, TOUCHED, 3000, 0},
    {"H2D-2D", 4 * MiB, two_dimensions, 0, TOUCHED, 0, 0},
    {"H2D-2D", 64 * MiB, two_dimensions, 0, TOUCHED, 0, 0},
    {"D2H-2D", 4 * MiB, two_dimensions, 1, TOUCHED, 0, 0},
    {"H2D-2-threads", 256 * MiB, several_threads, 0, TOUCHED, 0, 2},
    {"H2D-4-threads", 256 * MiB, several_threads, 0, TOUCHED, 0, 4},
    {"D2H-4-threads", 256 * MiB, several_threads, 1, TOUCHED, 0, 4},
    {"H2D-8-threads", 64 * MiB, several_threads, 0, TOUCHED, 0, 8},
};
/* clang-format on */

static size_t memory_of(const struct row *row)
{
    if (row->measure == several_threads)
        return row->threads * row->bytes;
    if (row->measure == async_of_1_to_3_kb)
        return row->calls * row->bytes;
    return row->measure == two_dimensions ? 2 * row->bytes : row->bytes;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, by_value);
    return values[n / 2];
}

/* As often as fits into a tenth of a second, three times at least. */
static void show(const struct row *row)
{
    enum { MOST = 201 };
    double until_return[MOST], until_done[MOST], cpu[MOST], begun;
    int n = 0;

    row->measure(row);
    begun = now_us();
    while (n < 3 || (n < MOST && now_us() - begun < 1e5)) {
        struct sample s = row->measure(row);

        until_return[n] = s.until_return;
        until_done[n] = s.until_done;
        cpu[n++] = s.cpu;
    }
    printf("row %s %zu %.2f %.2f %.3f\n", row->name, row->bytes, median(until_return, n),
           median(until_done, n), median(cpu, n));
    fflush(stdout);
}

/* To one of the cores that it may use now. */
static void bind_to_one_core(void)
{
    cpu_set_t all, one;

    sched_getaffinity(0, sizeof all, &all);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &all)) {
            CPU_ZERO(&one);
            CPU_SET(i, &one);
            sched_setaffinity(0, sizeof one, &one);
            return;
        }
}

static bool is_chosen(const struct row *row, int argc, char **argv)
{
    bool any = false;

    for (int i = 0; i < argc; i++) {
        any = true;
        if (strcmp(argv[i], row->name) == 0)
            return true;
    }
    return !any;
}

int main(int argc, char **argv)
{
    size_t most = GiB, memory = 0;
    bool one_core = false;
    int i = 1;

    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "--pinned") == 0)
            pinned = true;
        else if (strcmp(argv[i], "--one-core") == 0)
            one_core = true;
        else if (strcmp(argv[i], "--most") == 0 && i + 1 < argc)
            most = strtoull(argv[++i], NULL, 0);
        else
            return fprintf(stderr, "copies [--most BYTES] [--pinned] [--one-core] [ROW ...]\n"), 2;
    }
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        if (rows[r].bytes <= most && memory_of(&rows[r]) > memory)
            memory = memory_of(&rows[r]);
    OK(cuMemAlloc(&device, memory));
    touched = host_alloc(memory, TOUCHED);
    if (one_core)
        bind_to_one_core();
    for (size_t at = 0; at + 8 * MiB <= memory && at < 128 * MiB; at += 8 * MiB) {
        copy(0, touched + at, 8 * MiB); /* whatever is set up by the first copies */
        copy(1, touched + at, 8 * MiB);
    }
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        if (rows[r].bytes <= most && is_chosen(&rows[r], argc - i, argv + i))
            show(&rows[r]);
    return 0;
}

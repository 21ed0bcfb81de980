/* SPDX-License-Identifier: MIT */
/* The composition root: wires the driver to the engine at the process's first CUDA call, and prints
 * the log at exit. Until that first call the library has run one line of code. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "intercept/bypass.h"
#include "intercept/code.h"
#include "intercept/driver.h"
#include "policy/options.h"
#include "shim/capture.h"
#include "shim/copy.h"
#include "shim/debt.h"
#include "shim/event.h"
#include "shim/handoff.h"
#include "shim/kernel.h"
#include "shim/memory.h"
#include "shim/report.h"
#include "shim/stream.h"
#include "shim/touch.h"
#include "shim/turn.h"
#include "shim/workers.h"

struct es_port es_port;
static struct es_options options;
static unsigned copy_threads;
static pid_t owner; /* whose counts these are */

static void write_all(int fd, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t n = write(fd, text, length);

        if (n < 0 && errno != EINTR)
            return;
        if (n > 0) {
            text += n;
            length -= (size_t)n;
        }
    }
}

/* One line on stderr, in one write. prefix: a string that comes first. */
static void say(void *prefix, const char *line)
{
    char text[4608];
    int n = snprintf(text, sizeof text, "%s%s\n", (const char *)prefix, line);

    write_all(STDERR_FILENO, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

static char us[] = "epochshim: ", nobody[] = "";

/* The newest ABI of each; stream 0 is the legacy stream in all of them. */
static void fill_port(void)
{
    struct es_object libcuda;

    if (!es_driver_object(&libcuda))
        return;
#define ES_PORT(member, symbol)                                                                    \
    es_port.member = (__typeof__(es_port.member))es_elf_symbol(&libcuda, #symbol);                 \
    _Static_assert(__builtin_types_compatible_p(__typeof__(es_port.member), __typeof__(&symbol)),  \
                   #symbol)
    ES_PORT(copy_h2d, cuMemcpyHtoDAsync_v2);
    ES_PORT(copy_d2h, cuMemcpyDtoHAsync_v2);
    ES_PORT(event_create, cuEventCreate);
    ES_PORT(event_destroy, cuEventDestroy_v2);
    ES_PORT(event_record, cuEventRecord);
    ES_PORT(event_query, cuEventQuery);
    ES_PORT(event_wait, cuEventSynchronize);
    ES_PORT(host_register, cuMemHostRegister_v2);
    ES_PORT(pointer_attributes, cuPointerGetAttributes);
    ES_PORT(stream_create, cuStreamCreate);
    ES_PORT(stream_flags, cuStreamGetFlags);
    ES_PORT(stream_wait_event, cuStreamWaitEvent);
    ES_PORT(stream_query, cuStreamQuery);
    ES_PORT(stream_wait, cuStreamSynchronize);
    ES_PORT(stream_is_capturing, cuStreamIsCapturing);
    ES_PORT(stream_context, cuStreamGetCtx);
    ES_PORT(context_current, cuCtxGetCurrent);
    ES_PORT(context_push, cuCtxPushCurrent_v2);
    ES_PORT(context_pop, cuCtxPopCurrent_v2);
    ES_PORT(context_device, cuCtxGetDevice);
    ES_PORT(context_flags, cuCtxGetFlags);
    ES_PORT(context_id, cuCtxGetId);
    ES_PORT(capture_mode, cuThreadExchangeStreamCaptureMode);
    ES_PORT(device_attribute, cuDeviceGetAttribute);
    ES_PORT(function_parameter, cuFuncGetParamInfo);
    ES_PORT(kernel_parameter, cuKernelGetParamInfo);
#undef ES_PORT
    es_port.past_us = es_bypass_any;
}

/* In a forked child: CUDA does not work there if the parent used it, so the child stays native;
 * what it does is not the parent's. */
static void after_fork(void)
{
    owner = getpid();
    options.mode = ES_MODE_OBSERVE;
    es_event_after_fork();
    es_stream_after_fork();
    es_touch_after_fork();
    es_count_reset();
    es_ledger_reset();
    es_handoff_reset();
    es_memory_after_fork();
    es_capture_after_fork();
    es_pool_after_fork();
    es_debt_after_fork();
    es_turn_after_fork();
    es_workers_after_fork();
}

static void begin(void)
{
    int saved = errno;

    es_driver_learn();
    fill_port();
    es_options_parse(&options, environ, say, us);
    if (options.help)
        es_options_help(say, nobody);
    copy_threads = options.threads ? (unsigned)options.threads : es_workers_default();
    es_copy_configure(&es_port, &options, copy_threads);
    es_handoff_configure(options.log != ES_LOG_OFF);
    es_kernel_configure(&es_port, options.kernels);
    es_event_configure(options.mode == ES_MODE_REWRITE, options.elide);
    owner = getpid();
    pthread_atfork(NULL, NULL, after_fork);
    atomic_store_explicit(&es_count_is_begun, true, memory_order_release);
    errno = saved;
}

void es_root_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, begin);
}

static const char *rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                        "SLURM_PROCID", "RANK"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]))
            return getenv(names[i]);
    return NULL;
}

static int open_log(void)
{
    char path[4096], host[256] = "";
    int fd;

    if (!options.log_file[0])
        return STDERR_FILENO;
    gethostname(host, sizeof host - 1);
    es_log_path(options.log_file, owner, program_invocation_short_name, host, path, sizeof path);
    /* Appending: several processes may share one file, and none may lose its log. */
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0) {
        char line[4400];

        snprintf(line, sizeof line,
                 "EPOCHSHIM_LOG_FILE: cannot open %.4000s (%s); the log goes to stderr", path,
                 strerror(errno));
        say(us, line);
        return STDERR_FILENO;
    }
    return fd;
}

static void print_log(void)
{
    static struct es_ledger ledger;
    static struct es_handoffs handoffs;
    static char text[96 << 10], settings[1024], bypass[512];
    struct es_report r = {.pid = owner,
                          .program = program_invocation_name,
                          .rank = rank(),
                          .settings = settings,
                          .bypass = bypass,
                          .detail = options.log,
                          .threads = copy_threads,
                          .ledger = &ledger,
                          .pool = es_pool_totals(),
                          .handoffs = &handoffs,
                          .by_args = options.kernels == ES_KERNELS_ARGS,
                          .is_cuda = es_code_is_cuda,
                          .place = es_code_place};
    int fd = open_log();

    es_ledger_read(&ledger);
    es_handoff_read(&handoffs);
    es_bypass_list(bypass, sizeof bypass);
    es_options_changed(&options, settings, sizeof settings);
    write_all(fd, text, es_report_print(&r, text, sizeof text));
    if (fd != STDERR_FILENO)
        close(fd);
}

/* CUDA was used, and none of it was seen: then the log is about that. */
static bool went_past(void)
{
    struct es_object libcuda;
    char names[64];

    if (!es_driver_object(&libcuda) || es_bypass_list(names, sizeof names) == 0)
        return false;
    es_root_begin();
    return true;
}

/* No CUDA call from here: the driver may be gone. */
static void at_exit(void *unused)
{
    (void)unused;
    bool past = !es_count_begun() && went_past();

    if (!es_count_begun() || options.log == ES_LOG_OFF || options.mode == ES_MODE_OFF)
        return;
    if (past || es_count_total(ES_SEEN_COPY) || es_count_total(ES_SEEN_COPY_OTHER) ||
        es_count_total(ES_SEEN_LAUNCH) || es_count_total(ES_SEEN_GRAPH_LAUNCH))
        print_log();
}

/* Exit handlers run in reverse order, and the loader's finalisation is registered after the
 * libraries' constructors ran. So this one, tied to no library, runs after every destructor: a copy
 * made in one is still counted. */
extern int __cxa_atexit(void (*function)(void *), void *arg, void *dso);

__attribute__((constructor)) static void load(void)
{
    es_elf_begin();
    __cxa_atexit(at_exit, NULL, NULL);
}

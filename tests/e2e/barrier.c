/* SPDX-License-Identifier: MIT */
/* Case 50: host memory with a barrier, as garbage collectors have it: protected pages, and a
 * handler of SIGSEGV that knows only its own threads. Whoever copies must let the calling thread
 * fault. */
#include "tests/e2e/e2e.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, N = 8 << 20 };

static char *guarded;
static pthread_t caller;
static volatile int faults, strangers; /* threads other than the caller that faulted */

static void on_fault(int signal, siginfo_t *info, void *context)
{
    char *page = guarded + ((char *)info->si_addr - guarded) / PAGE * PAGE;

    (void)context;
    if ((char *)info->si_addr < guarded || page >= guarded + N)
        _exit(signal);
    faults++;
    strangers += !pthread_equal(pthread_self(), caller);
    mprotect(page, PAGE, PROT_READ | PROT_WRITE);
}

static void begin(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};

    e2e_setup();
    caller = pthread_self();
    faults = strangers = 0;
    sigaction(SIGSEGV, &action, NULL);
    guarded = mmap(NULL, N, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(guarded != MAP_FAILED);
}

/* Some of the pages only: the first, the last, and here and there. */
static int protect(int how)
{
    int pages = 0;

    for (size_t at = 0; at < N; at += (at % 7 + 90) * (size_t)PAGE, pages++)
        mprotect(guarded + at, PAGE, how);
    mprotect(guarded + N - PAGE, PAGE, how);
    return pages + 1;
}

/* Natively that is the driver's affair, which may copy in a thread of its own. */
static void check_who_faulted(int pages)
{
    if (!e2e_is_rewritten())
        return;
    CHECK_EQ_INT(strangers, 0);
    CHECK_EQ_INT(faults, pages);
}

TEST(barrier, case_50_a_destination_that_may_not_be_written_yet)
{
    void *source = e2e_filled(N, 1);
    CUdeviceptr d;
    int pages;

    begin();
    d = e2e_device_alloc(N);
    OK(cuMemcpyHtoD(d, source, N));
    memset(guarded, 0, N);
    pages = protect(PROT_READ);
    OK(cuMemcpyDtoH(guarded, d, N));
    CHECK(e2e_is_filled(guarded, N, 1));
    check_who_faulted(pages);
    OK(cuMemFree(d));
    munmap(guarded, N);
    free(source);
}

TEST(barrier, case_50_a_source_that_may_not_be_read_yet)
{
    CUdeviceptr d;
    int pages;

    begin();
    d = e2e_device_alloc(N);
    e2e_fill(guarded, N, 2);
    pages = protect(PROT_NONE);
    OK(cuMemcpyHtoD(d, guarded, N));
    CHECK(e2e_device_is_filled(d, N, 2));
    check_who_faulted(pages);
    OK(cuMemFree(d));
    munmap(guarded, N);
}

/* SPDX-License-Identifier: MIT */
/* The look-ups: what a program gets from dlsym and cuGetProcAddress, whoever asks and however.
 * These hold natively too. The number in a name is the case's. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#include "tests/harness/test.h"

#ifndef FAKE_CUDNN
#error "the build names the helper libraries"
#endif

static void *libcuda(void)
{
    void *h = dlopen("libcuda.so.1", RTLD_NOW);

    CHECK(h != NULL);
    return h;
}

static bool is_preloaded(void)
{
    const char *preload = getenv("LD_PRELOAD");

    return preload && strstr(preload, "libepochshim");
}

static bool comes_from(const void *address, const char *library)
{
    Dl_info info;

    return dladdr(address, &info) && strstr(info.dli_fname, library);
}

/* forwarder.c, linked in before the library behind it is loaded. */
extern int chain(void);
extern void *weak_next(void);

typedef CUresult init_fn(unsigned);
typedef CUresult resolve_fn(const char *, void **, int, cuuint64_t,
                            CUdriverProcAddressQueryResult *);
typedef unsigned long count_fn(const char *);

static count_fn *simulated(void)
{
    return (count_fn *)dlsym(libcuda(), "simgpu_count");
}

TEST(preload, case_11_the_driver_is_found_and_works)
{
    init_fn *init = (init_fn *)dlsym(libcuda(), "cuInit");

    CHECK(init != NULL);
    CHECK(comes_from((void *)init, is_preloaded() ? "libepochshim" : "libcuda"));
    CHECK_EQ_INT(init(0), CUDA_SUCCESS);
}

TEST(preload, case_11_names_like_the_drivers_are_left_alone)
{
    void *fake = dlopen(FAKE_CUDNN, RTLD_NOW | RTLD_LOCAL);
    int (*own)(void);
    void *(*find_self)(const char *);

    CHECK(fake != NULL);
    libcuda();
    own = (int (*)(void))dlsym(fake, "cudnnCreate");
    CHECK_EQ_INT(own(), 42);
    own = (int (*)(void))dlsym(fake, "cuMemAlloc_v2");
    CHECK_EQ_INT(own(), 43);
    own = (int (*)(void))dlsym(fake, "cuMyOwn");
    CHECK_EQ_INT(own(), 44);
    find_self = (void *(*)(const char *))dlsym(fake, "cudnn_find_self");
    CHECK(find_self("cudnnCreate") == dlsym(fake, "cudnnCreate"));
    CHECK(find_self("cuMyOwn") == dlsym(fake, "cuMyOwn"));
}

TEST(preload, case_12_next_is_the_callers_next)
{
    void *last = dlopen(LAST_LIBRARY, RTLD_NOW | RTLD_GLOBAL);

    CHECK(last != NULL);
    CHECK_EQ_INT(chain(), 2); /* ours, linked in, then the last */
    CHECK(weak_next() == NULL);
}

static void *look_open_up(void *unused)
{
    static void *wrong = &wrong;
    void *first = dlsym(RTLD_DEFAULT, "open"), *second = dlsym(RTLD_DEFAULT, "open");
    void *next = dlsym(RTLD_NEXT, "open");

    (void)unused;
    return first && first == second && next ? first : wrong;
}

TEST(preload, case_12_every_thread_gets_the_same)
{
    pthread_t threads[8];

    for (int i = 0; i < 8; i++)
        CHECK_EQ_INT(pthread_create(&threads[i], NULL, look_open_up, NULL), 0);
    for (int i = 0; i < 8; i++) {
        void *got;

        pthread_join(threads[i], &got);
        CHECK(got == dlsym(RTLD_DEFAULT, "open"));
    }
}

TEST(preload, case_13_resolver_asked_for_itself)
{
    resolve_fn *resolve = (resolve_fn *)dlsym(libcuda(), "cuGetProcAddress_v2"), *again = NULL;
    init_fn *init = NULL;

    if (!resolve)
        SKIP("this driver has no cuGetProcAddress_v2");
    CHECK_EQ_INT(resolve("cuGetProcAddress", (void **)&again, 12000, 0, NULL), CUDA_SUCCESS);
    CHECK(again != NULL);
    CHECK_EQ_INT(again("cuInit", (void **)&init, 12000, 0, NULL), CUDA_SUCCESS);
    CHECK(comes_from((void *)init, is_preloaded() ? "libepochshim" : "libcuda"));
    CHECK_EQ_INT(init(0), CUDA_SUCCESS);
}

/* Which of the driver's own functions a resolved address ends in, for every version and flag. */
TEST(preload, case_13_the_very_variant_is_called)
{
    static const int versions[] = {11030, 12000, 12090, 13000};
    count_fn *count = simulated();
    resolve_fn *resolve = (resolve_fn *)dlsym(libcuda(), "cuGetProcAddress_v2");
    init_fn *init = (init_fn *)dlsym(libcuda(), "cuInit");

    if (!count || !resolve)
        SKIP("needs the simulated driver's call counts");
    CHECK_EQ_INT(init(0), CUDA_SUCCESS);
    for (int v = 0; v < 4; v++) {
        for (int per_thread = 0; per_thread < 2; per_thread++) {
            const char *end = per_thread ? "cuStreamQuery_ptsz" : "cuStreamQuery";
            CUresult (*query)(CUstream) = NULL;
            unsigned long before = count(end);

            CHECK_EQ_INT(resolve("cuStreamQuery", (void **)&query, versions[v],
                                 per_thread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
                                            : CU_GET_PROC_ADDRESS_LEGACY_STREAM,
                                 NULL),
                         CUDA_SUCCESS);
            query((CUstream)0);
            CHECK_EQ_U64(count(end) - before, 1);
        }
    }
}

TEST(preload, case_13_what_the_driver_lacks_stays_lacking)
{
    CUdriverProcAddressQueryResult status = 0;
    resolve_fn *resolve = (resolve_fn *)dlsym(libcuda(), "cuGetProcAddress_v2");
    void *p = &status;

    CHECK(dlsym(libcuda(), "cuNoSuchFunction") == NULL);
    if (!resolve)
        SKIP("this driver has no cuGetProcAddress_v2");
    CHECK_EQ_INT(resolve("cuNoSuchFunction", &p, 13000, 0, &status), CUDA_ERROR_NOT_FOUND);
    CHECK_EQ_INT(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

/* A function that no header knows is handed out behind a trampoline, which keeps its arguments. */
TEST(preload, an_unknown_function_is_called_with_all_its_arguments)
{
    typedef CUresult arguments_fn(long, long, long, long, long, long, long, long, long, double,
                                  double, double, double, double, double, double, double, double);
    resolve_fn *resolve = (resolve_fn *)dlsym(libcuda(), "cuGetProcAddress_v2");
    arguments_fn *by_name = (arguments_fn *)dlsym(libcuda(), "cuSimArguments"), *resolved = NULL;

    if (!by_name || !resolve)
        SKIP("needs the simulated driver's unknown functions");
    CHECK(comes_from((void *)by_name, is_preloaded() ? "libepochshim" : "libcuda"));
    CHECK_EQ_INT(resolve("cuSimArguments", (void **)&resolved, 13000, 0, NULL), CUDA_SUCCESS);
    CHECK(resolved == by_name);
    CHECK(dlsym(libcuda(), "cuSimUnheardOf") != (void *)by_name);
    for (int i = 0; i < 2; i++)
        CHECK_EQ_INT(
            by_name(1, 2, 3, 4, 5, 6, 7, 8, 9, 0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5),
            CUDA_SUCCESS);
    CHECK_EQ_INT(by_name(1, 2, 3, 4, 5, 6, 7, 8, 9, 0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8),
                 CUDA_ERROR_INVALID_VALUE);
}

/* What only reads is handed out as it is. */
TEST(preload, a_harmless_function_is_the_drivers_own)
{
    CHECK(comes_from(dlsym(libcuda(), "cuDriverGetVersion"), "libcuda"));
    CHECK(comes_from(dlsym(libcuda(), "simgpu_count"), "libcuda"));
}

TEST(preload, case_15_dlerror_is_as_natively)
{
    void *h = libcuda();
    const char *error;

    dlerror();
    CHECK(dlsym(h, "cuInit") != NULL);
    CHECK(dlerror() == NULL);
    CHECK(dlsym(h, "cuNoSuchFunction") == NULL);
    error = dlerror();
    CHECK(error != NULL && strstr(error, "cuNoSuchFunction") != NULL);
    CHECK(dlerror() == NULL);
    CHECK(dlsym(RTLD_DEFAULT, "no_such_function") == NULL);
    error = dlerror();
    CHECK(error != NULL && strstr(error, "no_such_function") != NULL);
}

/* A pending error must survive a CUDA call: the program has yet to ask for it. */
TEST(preload, case_15_a_cuda_call_keeps_a_pending_error)
{
    init_fn *init = (init_fn *)dlsym(libcuda(), "cuInit");

    CHECK(dlsym(RTLD_DEFAULT, "no_such_function") == NULL);
    CHECK_EQ_INT(init(0), CUDA_SUCCESS);
    CHECK(dlerror() != NULL);
}

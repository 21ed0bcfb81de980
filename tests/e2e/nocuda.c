/* SPDX-License-Identifier: MIT */
/* A process without CUDA: looking for the driver must find what it finds natively, nothing. */
#include <dlfcn.h>
#include <stdlib.h>

#include "tests/harness/test.h"

/* Natively NULL; never with the library, whose function then says that there is no driver. */
extern int cudaMemcpy(void *, const void *, size_t, int) __attribute__((weak));

TEST(nocuda, case_11_a_weak_reference_to_the_runtime)
{
    dlerror();
    CHECK(dlsym(RTLD_DEFAULT, "cudaMemcpy") == NULL);
    CHECK(dlerror() != NULL);
    if (cudaMemcpy)
        CHECK_EQ_INT(cudaMemcpy(NULL, NULL, 0, 0), 35); /* cudaErrorInsufficientDriver */
}

TEST(nocuda, case_11_no_driver_no_symbol)
{
    dlerror();
    CHECK(dlsym(RTLD_DEFAULT, "cuInit") == NULL);
    CHECK(dlerror() != NULL);
    CHECK(dlsym(dlopen(NULL, RTLD_NOW), "cuMemcpyHtoD_v2") == NULL);
    CHECK(dlerror() != NULL);
    CHECK(dlsym(RTLD_DEFAULT, "cuda_is_no_hook") == NULL);
    CHECK(dlsym(RTLD_DEFAULT, "malloc") == (void *)malloc);
}

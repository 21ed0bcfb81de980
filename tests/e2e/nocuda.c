/* SPDX-License-Identifier: MIT */
/* A process without CUDA: looking for the driver must find what it finds natively, nothing. */
#include <dlfcn.h>
#include <stdlib.h>

#include "tests/harness/test.h"

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

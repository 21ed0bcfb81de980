/* SPDX-License-Identifier: MIT */
/* Case 40: what a kernel prints is printed, though only a plain copy to new memory has waited for
 * it before the end: the same output natively and preloaded (same_output.py here,
 * tests/hardware/run on a real GPU). */
#include "tests/e2e/e2e.h"

#include <stdlib.h>

TEST(print, case_40_text_of_a_kernel_before_a_plain_copy)
{
    char bytes[4096] = {0};

    e2e_setup_without_pinned();
    for (uint32_t i = 0; i < 3; i++)
        LAUNCH(CU_STREAM_LEGACY, "print_u32", &i);
    OK(cuMemcpyHtoD(e2e_device_alloc(sizeof bytes), bytes, sizeof bytes));
    exit(0); /* no line of the runner's, which may come before the text under the shim (law 5) */
}

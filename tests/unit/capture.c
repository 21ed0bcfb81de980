/* SPDX-License-Identifier: MIT */
#include "shim/capture.h"

#include <stdint.h>

#include "tests/harness/test.h"

static CUstream stream(uintptr_t n)
{
    return (CUstream)n;
}

TEST(capture, open_from_begin_to_end)
{
    CHECK(!es_capture_open());
    es_capture_begin(stream(16));
    CHECK(es_capture_open());
    es_capture_end(stream(32)); /* another stream's */
    CHECK(es_capture_open());
    es_capture_end(stream(16));
    CHECK(!es_capture_open());
    es_capture_end(stream(16));
    CHECK(!es_capture_open());
}

TEST(capture, the_per_thread_stream_in_two_threads)
{
    es_capture_begin(CU_STREAM_PER_THREAD);
    es_capture_begin(CU_STREAM_PER_THREAD);
    es_capture_end(CU_STREAM_PER_THREAD);
    CHECK(es_capture_open());
    es_capture_end(CU_STREAM_PER_THREAD);
    CHECK(!es_capture_open());
}

/* SPDX-License-Identifier: MIT */
#include "shim/memory.h"

#include "tests/harness/test.h"

TEST(memory, overlap_is_found_wherever_it_lies)
{
    es_memory_add(0x10000, 0x1000, ES_MEM_PINNED, 0);
    CHECK_EQ_INT(es_memory_find(0x10000, 1), ES_MEM_PINNED);
    CHECK_EQ_INT(es_memory_find(0x10fff, 1), ES_MEM_PINNED);
    CHECK_EQ_INT(es_memory_find(0x11000, 1), ES_MEM_UNKNOWN);
    CHECK_EQ_INT(es_memory_find(0xffff, 1), ES_MEM_UNKNOWN);
    CHECK_EQ_INT(es_memory_find(0x8000, 0x100000), ES_MEM_PINNED); /* only in the middle */
    CHECK_EQ_INT(es_memory_find(0x10800, 0x100000), ES_MEM_PINNED);
    es_memory_drop(0x10000, 1);
    CHECK_EQ_INT(es_memory_find(0x8000, 0x100000), ES_MEM_UNKNOWN);
}

TEST(memory, a_long_range_before_many_short_ones)
{
    es_memory_add(0x100000, 0x100000, ES_MEM_MANAGED, 0);
    for (uint64_t i = 0; i < 100; i++)
        es_memory_add(0x110000 + i * 0x1000, 0x10, ES_MEM_DEVICE, 0);
    CHECK_EQ_INT(es_memory_find(0x1ffff0, 4), ES_MEM_MANAGED);
    es_memory_drop(0x100000, 1);
    CHECK_EQ_INT(es_memory_find(0x1ffff0, 4), ES_MEM_UNKNOWN);
    es_memory_drop(0x100000, 0x100000);
}

TEST(memory, many_ranges_in_any_order)
{
    enum { N = 5000 };

    for (uint64_t i = 0; i < N; i++)
        es_memory_add(0x40000000 + (i * 7919 % N) * 0x100, 0x80, ES_MEM_PINNED, 0);
    for (uint64_t i = 0; i < N; i++) {
        CHECK_EQ_INT(es_memory_find(0x40000000 + i * 0x100 + 0x7f, 1), ES_MEM_PINNED);
        CHECK_EQ_INT(es_memory_find(0x40000000 + i * 0x100 + 0x80, 0x80), ES_MEM_UNKNOWN);
    }
    es_memory_drop(0x40000000, (uint64_t)N * 0x100);
    CHECK_EQ_INT(es_memory_find(0x40000000, (uint64_t)N * 0x100), ES_MEM_UNKNOWN);
}

TEST(memory, mappings_of_a_shared_handle_are_foreign)
{
    es_memory_add(0x900000, 0x1000, ES_MEM_DEVICE, 55);
    CHECK_EQ_INT(es_memory_find(0x900000, 1), ES_MEM_UNKNOWN); /* a plain mapping says nothing */
    es_memory_handle_shared(55);
    CHECK_EQ_INT(es_memory_find(0x900000, 1), ES_MEM_FOREIGN); /* mapped before */
    es_memory_add(0xa00000, 0x1000, ES_MEM_DEVICE, 55);
    CHECK_EQ_INT(es_memory_find(0xa00000, 1), ES_MEM_FOREIGN); /* and after */
    es_memory_handle_new(55); /* the number came back for another allocation */
    es_memory_add(0xb00000, 0x1000, ES_MEM_DEVICE, 55);
    CHECK_EQ_INT(es_memory_find(0xb00000, 1), ES_MEM_UNKNOWN);
    es_memory_drop(0x900000, 0x300000);
}

TEST(memory, nothing_is_no_range)
{
    es_memory_add(0, 100, ES_MEM_PINNED, 0);
    es_memory_add(100, 0, ES_MEM_PINNED, 0);
    CHECK_EQ_INT(es_memory_find(0, 200), ES_MEM_UNKNOWN);
    CHECK(es_memory_complete());
}

/* SPDX-License-Identifier: MIT */
#ifndef ES_TESTS_TEST_H
#define ES_TESTS_TEST_H
/* One way to write a test, two ways to run it: under Criterion (each test in a process of its own),
 * or under the small runner in runner.c, in one process: for ThreadSanitizer, under which Criterion
 * does not start, for leak checks, which it swallows, and for machines without it.
 *
 *     TEST(suite, name)
 *     {
 *         CHECK(condition);
 *         CHECK_EQ_INT(got, want);
 *     }
 *
 * A failed check ends its test. Both print TAP. */

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef ES_WITH_CRITERION

#include <criterion/criterion.h>
#define TEST(suite, name) Test(suite, name, .timeout = 60)
#define CHECK(condition)  cr_assert(condition)
#define ES_CHECK_EQ(a, b, type, f)                                                                 \
    cr_assert((type)(a) == (type)(b), f " is not " f, (type)(a), (type)(b))
#define SKIP(...) cr_skip_test(__VA_ARGS__)

#else

struct es_test {
    const char *suite, *name;
    void (*run)(void);
    struct es_test *next;
};
void es_test_register(struct es_test *test);
__attribute__((noreturn, format(printf, 3, 4))) void es_test_fail(const char *file, int line,
                                                                  const char *format, ...);
__attribute__((noreturn, format(printf, 1, 2))) void es_test_skip(const char *format, ...);

#define TEST(suite_, name_)                                                                        \
    static void test_##suite_##_##name_(void);                                                     \
    __attribute__((constructor)) static void register_##suite_##_##name_(void)                     \
    {                                                                                              \
        static struct es_test test = {#suite_, #name_, test_##suite_##_##name_, NULL};             \
        es_test_register(&test);                                                                   \
    }                                                                                              \
    static void test_##suite_##_##name_(void)
#define CHECK(condition)                                                                           \
    ((condition) ? (void)0 : es_test_fail(__FILE__, __LINE__, "%s", #condition))
#define ES_CHECK_EQ(a, b, type, f)                                                                 \
    do {                                                                                           \
        type es_a = (type)(a), es_b = (type)(b);                                                   \
        if (es_a != es_b)                                                                          \
            es_test_fail(__FILE__, __LINE__, "%s is " f ", not " f, #a, es_a, es_b);               \
    } while (0)
#define SKIP(...) es_test_skip(__VA_ARGS__)

#endif

#define CHECK_EQ_INT(a, b)    ES_CHECK_EQ(a, b, long long, "%lld")
#define CHECK_EQ_U64(a, b)    ES_CHECK_EQ(a, b, unsigned long long, "%llu")
#define CHECK_EQ_STR(a, b)    CHECK(strcmp(a, b) == 0)
#define CHECK_EQ_MEM(a, b, n) CHECK(memcmp(a, b, n) == 0)

#endif

/* SPDX-License-Identifier: MIT */
#include "policy/options.h"

#include <errno.h>
#include <stdio.h>

#include "tests/harness/test.h"

static char complaints[4][512];
static int complaint_count;

static void complain(void *ctx, const char *line)
{
    (void)ctx;
    if (complaint_count < 4)
        snprintf(complaints[complaint_count], sizeof complaints[0], "%s", line);
    complaint_count++;
}

static struct es_options parse(const char *one, const char *two)
{
    char home[] = "HOME=/", *env[] = {home, (char *)(uintptr_t)one, (char *)(uintptr_t)two, NULL};
    struct es_options o;

    complaint_count = 0;
    es_options_parse(&o, env, complain, NULL);
    return o;
}

TEST(options, defaults)
{
    struct es_options o = parse(NULL, NULL);

    CHECK_EQ_INT(complaint_count, 0);
    CHECK_EQ_INT(o.mode, ES_MODE_REWRITE);
    CHECK_EQ_INT(o.log, ES_LOG_SUMMARY);
    CHECK_EQ_U64(o.pool, 256 << 20);
    CHECK_EQ_U64(o.chunk, 2 << 20);
    CHECK_EQ_U64(o.limit, UINT64_MAX);
    CHECK_EQ_STR(o.log_file, "");
}

TEST(options, each_is_read)
{
    CHECK_EQ_INT(parse("EPOCHSHIM_MODE=observe", NULL).mode, ES_MODE_OBSERVE);
    CHECK_EQ_INT(parse("EPOCHSHIM_MODE=OFF", NULL).mode, ES_MODE_OFF);
    CHECK_EQ_INT(parse("EPOCHSHIM_LOG=full", NULL).log, ES_LOG_FULL);
    CHECK_EQ_U64(parse("EPOCHSHIM_MIN_BYTES=64K", NULL).min_bytes, 64 << 10);
    CHECK_EQ_U64(parse("EPOCHSHIM_POOL=1G", NULL).pool, 1 << 30);
    CHECK_EQ_U64(parse("EPOCHSHIM_CHUNK=1m", NULL).chunk, 1 << 20);
    CHECK_EQ_U64(parse("EPOCHSHIM_THREADS=12", NULL).threads, 12);
    CHECK_EQ_U64(parse("EPOCHSHIM_LIMIT=0", NULL).limit, 0);
    CHECK(parse("EPOCHSHIM_VERIFY=1", NULL).verify);
    CHECK(parse("EPOCHSHIM_HELP=1", NULL).help);
    CHECK(!parse("EPOCHSHIM_ELIDE=0", NULL).elide);
    CHECK_EQ_INT(parse("EPOCHSHIM_DEFER=never", NULL).defer, ES_DEFER_NEVER);
    CHECK_EQ_INT(parse("EPOCHSHIM_KERNELS=args", NULL).kernels, ES_KERNELS_ARGS);
    CHECK(!parse("EPOCHSHIM_SIDE=0", NULL).side);
    CHECK_EQ_STR(parse("EPOCHSHIM_LOG_FILE=/tmp/x.%p", NULL).log_file, "/tmp/x.%p");
    CHECK_EQ_STR(parse("EPOCHSHIM_LOG_FILE=stderr", NULL).log_file, "");
    CHECK_EQ_U64(parse("EPOCHSHIM_LIMIT=all", NULL).limit, UINT64_MAX);
    CHECK_EQ_INT(complaint_count, 0);
}

TEST(options, a_bad_value_is_one_line_and_the_default)
{
    static const char *const bad[] = {
        "EPOCHSHIM_MODE=fast",         "EPOCHSHIM_POOL=10X",
        "EPOCHSHIM_POOL=-1",           "EPOCHSHIM_POOL=12345678901234567890123",
        "EPOCHSHIM_POOL=99999999999G", "EPOCHSHIM_CHUNK=1G",
        "EPOCHSHIM_THREADS=65",        "EPOCHSHIM_VERIFY=yes",
        "EPOCHSHIM_LIMIT=K",           "EPOCHSHIM_MIN_BYTES= 1",
        "EPOCHSHIM_LOG_FILE=/tmp/%z",  "EPOCHSHIM_LOG_FILE=/tmp/x%"};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct es_options o = parse(bad[i], NULL), d = parse(NULL, NULL);
        char changed[64];

        parse(bad[i], NULL);
        CHECK_EQ_INT(complaint_count, 1);
        CHECK(strstr(complaints[0], bad[i]) != NULL);
        CHECK(strstr(complaints[0], "accepted is") != NULL);
        CHECK(strstr(complaints[0], "; using ") != NULL);
        CHECK_EQ_U64(es_options_changed(&o, changed, sizeof changed), 0);
        CHECK_EQ_U64(o.pool, d.pool);
    }
}

TEST(options, an_empty_value_is_the_default)
{
    CHECK_EQ_INT(parse("EPOCHSHIM_MODE=", NULL).mode, ES_MODE_REWRITE);
    CHECK_EQ_INT(complaint_count, 0);
}

TEST(options, an_unknown_name_names_the_nearest)
{
    parse("EPOCHSHIM_THREDS=4", "EPOCHSHIM_LOGFILE=x");
    CHECK_EQ_INT(complaint_count, 2);
    CHECK(strstr(complaints[0], "the nearest is EPOCHSHIM_THREADS") != NULL);
    CHECK(strstr(complaints[1], "the nearest is EPOCHSHIM_LOG_FILE") != NULL);
    parse("EPOCHSHIM_FOO=1", NULL);
    CHECK(strstr(complaints[0], "EPOCHSHIM_HELP=1") != NULL);
    parse("EPOCHSHIM_A_NAME_THAT_IS_LONGER_THAN_ANY_OTHER_NAME_THAT_ONE_COULD_THINK_OF=1", NULL);
    CHECK_EQ_INT(complaint_count, 1);
}

TEST(options, a_pool_below_a_chunk_makes_the_chunk_smaller)
{
    struct es_options o = parse("EPOCHSHIM_POOL=256K", NULL);

    CHECK_EQ_U64(o.chunk, 256 << 10);
    o = parse("EPOCHSHIM_CHUNK=70000", NULL);
    CHECK_EQ_U64(o.chunk, 69632); /* whole pages */
}

TEST(options, changed_settings_are_listed)
{
    struct es_options o = parse("EPOCHSHIM_MODE=observe", "EPOCHSHIM_POOL=8M");
    char text[64];

    CHECK_EQ_U64(es_options_changed(&o, text, sizeof text), strlen("MODE=observe POOL=8M"));
    CHECK_EQ_STR(text, "MODE=observe POOL=8M");
    CHECK_EQ_U64(es_options_changed(&o, text, 5), strlen("MODE=observe POOL=8M"));
    CHECK_EQ_STR(text, "MODE");
}

TEST(options, errno_is_kept)
{
    errno = 77;
    parse("EPOCHSHIM_POOL=99999999999999999999", NULL);
    CHECK_EQ_INT(errno, 77);
}

TEST(options, log_path_is_expanded)
{
    char path[64];

    es_log_path("/tmp/%e.%h.%p.100%%.%x%", 42, "app", "node7", path, sizeof path);
    CHECK_EQ_STR(path, "/tmp/app.node7.42.100%.%x%");
    CHECK_EQ_U64(es_log_path("%e%e", 1, "1234567890", "", path, 8), 20);
    CHECK_EQ_STR(path, "1234567");
}

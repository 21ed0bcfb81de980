/* SPDX-License-Identifier: MIT */
/* Runs every registered test in this process, in the order of the source, and prints TAP. A failed
 * check jumps out of its test; the next one goes on. A test that hangs is killed with its name:
 * TEST_TIMEOUT seconds, 60 by default.
 *
 *     PROGRAM [PART OF A suite.name]     PROGRAM --list */
#include "tests/harness/test.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct es_test *first, **last = &first;
static const struct es_test *current;
static jmp_buf out;
static char message[1024];
enum { PASSED, FAILED, SKIPPED };

void es_test_register(struct es_test *test)
{
    *last = test;
    last = &test->next;
}

void es_test_fail(const char *file, int line, const char *format, ...)
{
    va_list args;
    int n = snprintf(message, sizeof message, "%s:%d: ", file, line);

    va_start(args, format);
    vsnprintf(message + n, sizeof message - (size_t)n, format, args);
    va_end(args);
    longjmp(out, FAILED);
}

void es_test_skip(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    longjmp(out, SKIPPED);
}

static void timed_out(int signal)
{
    static char line[256];
    int n = snprintf(line, sizeof line, "Bail out! %s.%s hangs\n", current->suite, current->name);

    (void)signal;
    if (write(STDOUT_FILENO, line, (size_t)n) < 0)
        _exit(3);
    _exit(3);
}

static bool is_chosen(const struct es_test *t, const char *filter)
{
    char full[256];

    snprintf(full, sizeof full, "%s.%s", t->suite, t->name);
    return !filter || strstr(full, filter);
}

/* Apart from main, so that no variable of the loop lives across the jump. */
static int run_one(const struct es_test *t)
{
    int end = setjmp(out);

    if (end == PASSED)
        t->run();
    return end;
}

int main(int argc, char **argv)
{
    const char *filter = argc > 1 ? argv[1] : NULL, *limit = getenv("TEST_TIMEOUT");
    int count = 0, failed = 0, n = 0;

    if (filter && strcmp(filter, "--list") == 0) {
        for (struct es_test *t = first; t; t = t->next)
            printf("%s.%s\n", t->suite, t->name);
        return 0;
    }
    for (struct es_test *t = first; t; t = t->next)
        count += is_chosen(t, filter);
    printf("1..%d\n", count);
    signal(SIGALRM, timed_out);
    for (struct es_test *t = first; t; t = t->next) {
        if (!is_chosen(t, filter))
            continue;
        current = t;
        n++;
        fflush(stdout);
        alarm(limit ? (unsigned)atoi(limit) : 60);
        switch (run_one(t)) {
        case PASSED:
            printf("ok %d - %s.%s\n", n, t->suite, t->name);
            break;
        case SKIPPED:
            printf("ok %d - %s.%s # SKIP %s\n", n, t->suite, t->name, message);
            break;
        default:
            printf("not ok %d - %s.%s\n# %s\n", n, t->suite, t->name, message);
            failed++;
        }
        alarm(0);
    }
    return failed ? 1 : 0;
}

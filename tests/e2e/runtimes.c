/* SPDX-License-Identifier: MIT */
/* A program without a CUDA runtime of its own loads libraries that have one each.
 *
 *   runtimes [+|-|=]LIBRARY ...
 *   runtimes @RUNTIME             by pointers from its handle
 *
 * Each library is loaded RTLD_LOCAL ("=": and RTLD_DEEPBIND), makes a round trip of three copies,
 * and says which runtime served it. "+": it stays and makes another one after all the rest; else it
 * is unloaded at once ("-"), so that the next one may come to its place. The output is the same
 * natively and preloaded. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 64, BYTES = 1 << 20 };

static void trip(void *library, const char *name)
{
    int (*round_trip)(size_t) = (int (*)(size_t))dlsym(library, "plugin_round_trip");
    int (*version)(void) = (int (*)(void))dlsym(library, "plugin_runtime_version");
    int (*finds)(void) = (int (*)(void))dlsym(library, "plugin_finds_itself");
    unsigned long (*calls)(void) = (unsigned long (*)(void))dlsym(library, "plugin_runtime_calls");

    if (!round_trip || !version || !finds || !calls) {
        printf("%s is no plugin\n", name);
        exit(2);
    }
    /* In this order: the arguments of a call have none. */
    int result = round_trip(BYTES), served_by = version(), found = finds();

    printf("%s: result %d, runtime %d, finds itself %d, calls of its runtime %lu\n", name, result,
           served_by, found, calls());
}

/* Calls a runtime by pointers from a handle of it: no reference that a hook could stand behind. */
static void by_pointer(const char *name)
{
    void *runtime = dlopen(name, RTLD_NOW | RTLD_LOCAL), *device = NULL;
    int (*allocate)(void **, size_t);
    int (*copy)(void *, const void *, size_t, int);
    char *host = calloc(4, BYTES);

    if (!runtime) {
        printf("%s\n", dlerror());
        exit(2);
    }
    allocate = (int (*)(void **, size_t))dlsym(runtime, "cudaMalloc");
    copy = (int (*)(void *, const void *, size_t, int))dlsym(runtime, "cudaMemcpy");
    printf("by pointer: %d", allocate(&device, (size_t)4 * BYTES));
    printf(" %d", copy(device, host, (size_t)4 * BYTES, 1));
    printf(" %d\n", copy(host, device, (size_t)4 * BYTES, 2));
    free(host);
}

int main(int argc, char **argv)
{
    void *loaded[MOST] = {0};

    printf("cudaMemcpy in the global scope: %s\n",
           dlsym(RTLD_DEFAULT, "cudaMemcpy") ? "yes" : "no");
    if (argc > 1 && argv[1][0] == '@') {
        by_pointer(argv[1] + 1);
        return 0;
    }
    for (int i = 1; i < argc && i < MOST; i++) {
        int flags = RTLD_NOW | RTLD_LOCAL | (argv[i][0] == '=' ? RTLD_DEEPBIND : 0);

        loaded[i] = dlopen(argv[i] + 1, flags);
        if (!loaded[i]) {
            printf("%s\n", dlerror());
            return 2;
        }
        trip(loaded[i], argv[i]);
        if (argv[i][0] == '-') {
            dlclose(loaded[i]);
            loaded[i] = NULL;
        }
    }
    for (int i = 1; i < argc && i < MOST; i++)
        if (loaded[i])
            trip(loaded[i], argv[i]);
    printf("cudaMemcpy in the global scope: %s\n",
           dlsym(RTLD_DEFAULT, "cudaMemcpy") ? "yes" : "no");
    return 0;
}

/* SPDX-License-Identifier: MIT */
/* A CUDA program and its processes and threads: how they begin and end, for process.py.
 *
 *   process CASE     prints "done" at the point where the case's end begins
 */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda.h>

enum { BYTES = 1 << 20, THREADS = 4 };

extern char **environ;
static const char *self;
static bool copies_at_exit;
static pthread_key_t at_thread_end;

static void must(CUresult r, const char *what)
{
    if (r != CUDA_SUCCESS) {
        printf("%s gives %d\n", what, r);
        fflush(stdout);
        _exit(3);
    }
}

static void use_device(void)
{
    CUcontext context;

    must(cuInit(0), "cuInit");
    must(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

/* There and back; the bytes must be right. Two copies. */
static void round_trip(void)
{
    char *there = malloc(BYTES), *back = calloc(1, BYTES);
    CUdeviceptr device;

    memset(there, 7, BYTES);
    must(cuMemAlloc(&device, BYTES), "cuMemAlloc");
    must(cuMemcpyHtoD(device, there, BYTES), "to the device");
    must(cuMemcpyDtoH(back, device, BYTES), "to the host");
    must(memcmp(there, back, BYTES) ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS, "the comparison");
    must(cuMemFree(device), "cuMemFree");
    free(there);
    free(back);
}

__attribute__((destructor)) static void at_exit(void)
{
    if (copies_at_exit)
        round_trip();
}

static int threads_here(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int n = 0;

    for (struct dirent *e; tasks && (e = readdir(tasks));)
        n += e->d_name[0] != '.';
    if (tasks)
        closedir(tasks);
    return n;
}

static void done(void)
{
    printf("done\n");
    fflush(stdout);
}

static int wait_for(pid_t child)
{
    int status = -1;

    waitpid(child, &status, 0);
    return status;
}

/* A stream memory operation that nobody ends: work behind it waits for good. */
static CUdeviceptr close_a_gate(void)
{
    CUdeviceptr word;

    must(cuMemAlloc(&word, 4), "cuMemAlloc");
    must(cuMemsetD32(word, 0, 1), "cuMemsetD32");
    must(cuCtxSynchronize(), "cuCtxSynchronize");
    must(cuStreamWaitValue32(CU_STREAM_LEGACY, word, 1, CU_STREAM_WAIT_VALUE_EQ), "the gate");
    return word;
}

static pthread_barrier_t barrier;

static void *end_the_process(void *unused)
{
    pthread_barrier_wait(&barrier);
    done();
    exit(5);
    return unused;
}

static void *end_in_the_middle(void *number)
{
    round_trip();
    pthread_setspecific(at_thread_end, number);
    pthread_barrier_wait(&barrier);
    if ((intptr_t)number > THREADS / 2)
        pthread_exit(NULL); /* while the others go on */
    for (int i = 0; i < 3; i++)
        round_trip();
    return NULL;
}

static void copy_at_thread_end(void *number)
{
    round_trip();
}

static void attach(void)
{
    must(cuCtxSetCurrent(NULL), "cuCtxSetCurrent");
    use_device();
}

static void *run_attached(void *number)
{
    attach();
    return end_in_the_middle(number);
}

static void *run_in_gate(void *unused)
{
    attach();
    return end_the_process(unused);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    char *again[] = {argv[0], (char[]){"plain"}, NULL}, *none[] = {(char[]){"true"}, NULL};
    pid_t child = -1;

    self = "/proc/self/exe";
    if (strcmp(what, "fork-first") == 0) {
        child = fork();
        use_device();
        round_trip();
        if (child == 0)
            round_trip();
        else
            done();
        return child ? wait_for(child) != 0 : 0;
    }
    use_device();
    if (strcmp(what, "zero") == 0) {
        done();
        return 0;
    }
    round_trip();
    if (strcmp(what, "fork-exit") == 0 || strcmp(what, "fork-goes-on") == 0) {
        child = fork();
        if (child == 0 && what[5] == 'g') {
            free(memset(malloc(BYTES), 1, BYTES));
            if (threads_here() != 1)
                _exit(4);
        }
        if (child == 0)
            exit(0);
    } else if (strcmp(what, "fork-exec") == 0) {
        child = fork();
        if (child == 0) {
            execv("/bin/true", none);
            _exit(4);
        }
    } else if (strcmp(what, "vfork-exec") == 0) {
        child = vfork();
        if (child == 0) {
            execv(self, again);
            _exit(4);
        }
    } else if (strcmp(what, "spawn") == 0) {
        if (posix_spawn(&child, self, NULL, NULL, again, environ))
            return 4;
    } else if (strcmp(what, "spawn-true") == 0) {
        if (posix_spawn(&child, "/bin/true", NULL, NULL, none, environ))
            return 4;
    } else if (strcmp(what, "threads") == 0) {
        pthread_t threads[THREADS];

        pthread_key_create(&at_thread_end, copy_at_thread_end);
        pthread_barrier_init(&barrier, NULL, THREADS);
        for (int i = 0; i < THREADS; i++)
            pthread_create(&threads[i], NULL, run_attached, (void *)(intptr_t)(i + 1));
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
    } else if (strcmp(what, "exit-in-thread-while-a-copy-waits") == 0) {
        static char host[BYTES];
        CUdeviceptr word = close_a_gate();
        pthread_t thread;

        pthread_barrier_init(&barrier, NULL, 2);
        pthread_create(&thread, NULL, run_in_gate, NULL);
        pthread_barrier_wait(&barrier);
        cuMemcpyDtoH(host, word, 4); /* never returns */
        return 4;
    } else if (strcmp(what, "reset") == 0) {
        must(cuDevicePrimaryCtxReset(0), "cuDevicePrimaryCtxReset");
        attach();
        round_trip();
    }
    if (child > 0 && wait_for(child) != 0)
        return 4;
    copies_at_exit = strcmp(what, "destructor") == 0;
    done();
    if (strcmp(what, "_exit") == 0)
        _exit(6);
    if (strcmp(what, "abort") == 0)
        abort();
    if (strcmp(what, "sigterm") == 0)
        raise(SIGTERM);
    return strcmp(what, "plain") == 0 ? 0 : 7;
}

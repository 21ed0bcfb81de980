// SPDX-License-Identifier: MIT
// calls: what a call costs, in ns, best of 40 rounds. One line each, for tests/bench/calls.py.
// calls grow N: what the process grew by, in KiB, over N launches, records and waits, after the
// first tenth of them.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <thread>
#include <time.h>
#include <unistd.h>
#include <vector>

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != cudaSuccess) {                                                               \
            printf("%s failed\n", #call);                                                          \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

__global__ void empty(int *, int *, int *)
{
}

__global__ void spin(uint64_t ns)
{
    uint64_t start, now;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < ns);
}

static void wait_for_all()
{
    OK(cudaDeviceSynchronize());
}

// after: what to do between the rounds.
template <typename Call, typename After = void (*)()>
static void cost(const char *what, int n, Call call, After after = wait_for_all)
{
    double best = 1e12;

    for (int round = 0; round < 40; round++) {
        timespec a, b;

        clock_gettime(CLOCK_MONOTONIC, &a);
        for (int i = 0; i < n; i++)
            call();
        clock_gettime(CLOCK_MONOTONIC, &b);
        best = std::min(best, ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / n);
        after();
    }
    printf("time %-28s %8.0f ns\n", what, best);
}

// Launches by several threads at once, each on its own stream: ns of one launch, as a thread sees it.
static void cost_of_threads(int threads)
{
    const int n = 2000;
    double best = 1e12;

    for (int round = 0; round < 10; round++) {
        std::atomic<int> ready{0};
        std::vector<std::thread> all;
        std::vector<double> took(threads);

        for (int t = 0; t < threads; t++)
            all.emplace_back([&, t] {
                cudaStream_t s;
                int *d = nullptr;
                timespec a, b;

                OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
                empty<<<1, 1, 0, s>>>(d, d, d);
                OK(cudaStreamSynchronize(s));
                for (ready++; ready < threads;)
                    ;
                clock_gettime(CLOCK_MONOTONIC, &a);
                for (int i = 0; i < n; i++)
                    empty<<<1, 1, 0, s>>>(d, d, d);
                clock_gettime(CLOCK_MONOTONIC, &b);
                took[t] = ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / n;
                OK(cudaStreamDestroy(s));
            });
        for (auto &t : all)
            t.join();
        best = std::min(best, *std::max_element(took.begin(), took.end()));
    }
    printf("time launch by %2d threads at once    %6.0f ns\n", threads, best);
}

// Waits of one stream for the events of another, which is at work: each for a newer one, so that
// none is needless.
static void cost_of_waits(cudaStream_t s, cudaStream_t busy)
{
    const int n = 500;
    double best = 1e12;
    std::vector<cudaEvent_t> events(n);

    for (auto &e : events)
        OK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    for (int round = 0; round < 40; round++) {
        timespec a, b;

        spin<<<1, 1, 0, busy>>>(20000000);
        for (auto &e : events)
            OK(cudaEventRecord(e, busy));
        clock_gettime(CLOCK_MONOTONIC, &a);
        for (auto &e : events)
            OK(cudaStreamWaitEvent(s, e, 0));
        clock_gettime(CLOCK_MONOTONIC, &b);
        best = std::min(best, ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / n);
        OK(cudaDeviceSynchronize());
    }
    printf("time %-28s %8.0f ns\n", "stream wait event", best);
    spin<<<1, 1, 0, busy>>>(2000000000);
    OK(cudaEventRecord(events[0], busy));
    OK(cudaStreamWaitEvent(s, events[0], 0));
    cost("needless wait, ordered", 500, [&] { OK(cudaStreamWaitEvent(s, events[0], 0)); }, [] {});
    OK(cudaDeviceSynchronize());
    cost("needless wait, completed", 500, [&] { OK(cudaStreamWaitEvent(s, events[0], 0)); });
    for (auto &e : events)
        OK(cudaEventDestroy(e));
}

static long resident_kib()
{
    long pages = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    if (!f || fscanf(f, "%ld %ld", &pages, &resident) != 2)
        exit(1);
    fclose(f);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static int grow(long n)
{
    cudaStream_t s[2];
    cudaEvent_t e;
    int *d;
    long first = 0;

    for (auto &each : s)
        OK(cudaStreamCreateWithFlags(&each, cudaStreamNonBlocking));
    OK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    OK(cudaMalloc(&d, 4096));
    for (long i = 0; i < n; i++) {
        empty<<<1, 1, 0, s[i & 1]>>>(d, d, d);
        OK(cudaEventRecord(e, s[i & 1]));
        OK(cudaStreamWaitEvent(s[~i & 1], e, 0));
        if (i == n / 10)
            first = resident_kib();
    }
    OK(cudaDeviceSynchronize());
    printf("grew by %ld KiB over %ld launches, records and waits\n", resident_kib() - first, n);
    return 0;
}

int main(int argc, char **argv)
{
    cudaStream_t s, busy;
    cudaEvent_t e;
    int *d;
    static char h[4096];

    if (argc > 2)
        return grow(atol(argv[2]));
    OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&busy, cudaStreamNonBlocking));
    OK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    OK(cudaMalloc(&d, 4096));
    cost("launch, 3 pointers", 500, [&] { empty<<<1, 1, 0, s>>>(d, d, d); });
    cost("event record", 500, [&] { OK(cudaEventRecord(e, s)); });
    cost_of_waits(s, busy);
    cost("stream query", 500, [&] { OK(cudaStreamQuery(s)); });
    cost("event query", 500, [&] { OK(cudaEventQuery(e)); });
    cost("stream synchronize, idle", 500, [&] { OK(cudaStreamSynchronize(s)); });
    cost("malloc and free", 50, [] {
        int *p;

        OK(cudaMalloc(&p, 4096));
        OK(cudaFree(p));
    });
    cost("H2D 4 B", 500, [&] { OK(cudaMemcpy(d, h, 4, cudaMemcpyHostToDevice)); });
    cost("H2D 4 KiB", 500, [&] { OK(cudaMemcpy(d, h, 4096, cudaMemcpyHostToDevice)); });
    cost("H2D 4 KiB, Async", 500,
         [&] { OK(cudaMemcpyAsync(d, h, 4096, cudaMemcpyHostToDevice, s)); });
    cost("D2H 4 B", 500, [&] { OK(cudaMemcpy(h, d, 4, cudaMemcpyDeviceToHost)); });
    cost_of_threads(4);
    cost_of_threads(16);
    printf("done\n");
    return 0;
}

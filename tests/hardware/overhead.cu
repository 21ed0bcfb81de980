// SPDX-License-Identifier: MIT
// What a call costs, in ns, best of 40 rounds: run natively and preloaded, in one go, and compare.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <thread>
#include <time.h>
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

template <typename Call> static void cost(const char *what, int n, Call call)
{
    double best = 1e12;

    for (int round = 0; round < 40; round++) {
        timespec a, b;

        clock_gettime(CLOCK_MONOTONIC, &a);
        for (int i = 0; i < n; i++)
            call();
        clock_gettime(CLOCK_MONOTONIC, &b);
        best = std::min(best, ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / n);
        OK(cudaDeviceSynchronize());
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
    printf("time launch, %2d threads           %8.0f ns\n", threads, best);
}

int main()
{
    cudaStream_t s;
    cudaEvent_t e;
    int *d;
    static char h[4096];

    OK(cudaStreamCreate(&s));
    OK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    OK(cudaMalloc(&d, 4096));
    cost("launch, 3 pointers", 500, [&] { empty<<<1, 1, 0, s>>>(d, d, d); });
    cost("event record", 500, [&] { OK(cudaEventRecord(e, s)); });
    cost("stream wait event", 500, [&] { OK(cudaStreamWaitEvent(s, e, 0)); });
    cost("H2D 4 B, sync", 500, [&] { OK(cudaMemcpy(d, h, 4, cudaMemcpyHostToDevice)); });
    cost("H2D 4 KiB, sync", 500, [&] { OK(cudaMemcpy(d, h, 4096, cudaMemcpyHostToDevice)); });
    cost("H2D 4 KiB, Async", 500,
         [&] { OK(cudaMemcpyAsync(d, h, 4096, cudaMemcpyHostToDevice, s)); });
    cost("D2H 4 B, sync", 500, [&] { OK(cudaMemcpy(h, d, 4, cudaMemcpyDeviceToHost)); });
    cost_of_threads(4);
    cost_of_threads(16);
    printf("done\n");
    return 0;
}

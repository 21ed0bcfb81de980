// SPDX-License-Identifier: MIT
// Thread A makes a synchronous copy behind a 300 ms kernel on the legacy stream; thread B launches empty
// kernels on its own non-blocking stream meanwhile. How long did B's slowest launch take? Run natively and
// preloaded, and compare.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "measure.h"

int main()
{
    enum { MOST = 32 << 20 };
    char *device, *pageable = (char *)malloc(MOST), *pinned;
    cudaStream_t s;
    bool same = true;

    OK(cudaMalloc(&device, MOST));
    OK(cudaMallocHost(&pinned, MOST));
    OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    memset(pageable, 5, MOST);
    memset(pinned, 5, MOST);
    OK(cudaMemset(device, 5, MOST));
    spin<<<1, 1>>>(1000); // the first launch of a kernel waits for the device
    empty<<<1, 1, 0, s>>>();
    OK(cudaDeviceSynchronize());
    for (int kind = 0; kind < 4; kind++) {
        for (size_t bytes : {(size_t)1 << 10, (size_t)1 << 20, (size_t)MOST}) {
            char *host = kind & 1 ? pinned : pageable;
            std::atomic<bool> done{false};
            std::vector<double> took;
            double copied = 0;

            std::thread a([&] {
                double begun;

                spin<<<1, 1>>>(300000000);
                begun = now_ms();
                OK(kind & 2 ? cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice)
                            : cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost));
                copied = now_ms() - begun;
                done = true;
            });
            while (!done) {
                double begun = now_ms(), pause;

                empty<<<1, 1, 0, s>>>();
                took.push_back(now_ms() - begun);
                for (pause = now_ms() + 0.05; now_ms() < pause;)
                    ;
            }
            a.join();
            OK(cudaDeviceSynchronize());
            for (size_t i = 0; i < bytes; i++)
                same &= host[i] == 5;
            std::sort(took.begin(), took.end());
            printf("time %s %s %8zu KiB: copy %7.1f ms, %5zu launches, p99 %8.3f ms, slowest %8.3f ms\n",
                   kind & 2 ? "H2D" : "D2H", kind & 1 ? "pinned  " : "pageable", bytes >> 10, copied, took.size(),
                   took[took.size() * 99 / 100], took.back());
        }
    }
    printf("%s\n", same ? "right" : "WRONG");
    return !same;
}

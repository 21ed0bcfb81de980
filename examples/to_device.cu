// SPDX-License-Identifier: MIT
// to_device [MIB [KERNELS [US]]]: how long does a copy to the device keep the host?
//
// A numba user asked whether cuda.to_device(A) is asynchronous. It took 188 ms for 800 MB, and 30 s
// when 1000 kernels were queued before it. This is the same question in CUDA C: copy a large,
// ordinary (pageable) array to a device buffer that nobody has used yet,
//
//   1. while the device is idle,
//   2. behind a queue of kernels that have nothing to do with the array,
//
// and look at how long the copy call blocks. Then use the array, bring it back, and check it.
#include "example.cuh"

#include <vector>

int main(int argc, char **argv)
{
    const size_t bytes = argument(argc, argv, 1, 128) << 20;
    const uint64_t kernels = argument(argc, argv, 2, 200);
    const uint64_t us = argument(argc, argv, 3, 1000);
    const size_t n = bytes / sizeof(float);

    std::vector<float> a(n);
    for (size_t i = 0; i < n; i++)
        a[i] = (float)(i % 65536);

    // The first use of anything loads something: not what we measure.
    float *warm;
    CHECK(cudaMalloc(&warm, 1 << 20));
    LAUNCH(scale_f32, 0, warm, 1.0f, 1);
    queue_work(0, 1, 1);
    CHECK(cudaMemcpy(warm, a.data(), 1 << 20, cudaMemcpyHostToDevice));
    CHECK(cudaDeviceSynchronize());

    float *first, *second;
    CHECK(cudaMalloc(&first, bytes));
    double idle =
        blocked_ms([&] { CHECK(cudaMemcpy(first, a.data(), bytes, cudaMemcpyHostToDevice)); });
    CHECK(cudaDeviceSynchronize());

    double start = now_ms();
    queue_work(0, kernels, us);
    double queued = now_ms() - start;
    CHECK(cudaMalloc(&second, bytes));
    double behind =
        blocked_ms([&] { CHECK(cudaMemcpy(second, a.data(), bytes, cudaMemcpyHostToDevice)); });
    // What cudaMemcpy promises: the array is ours again, whatever the device still does.
    // A word on each page tells.
    for (size_t i = 0; i < n; i += 1024)
        a[i] = -1.0f;
    CHECK(cudaDeviceSynchronize());
    double all = now_ms() - start;

    LAUNCH(scale_f32, 0, second, 2.0f, n);
    LAUNCH(axpy_f32, 0, 1.0f, first, second, n);
    CHECK(cudaDeviceSynchronize());
    std::vector<float> back(n);
    double home =
        blocked_ms([&] { CHECK(cudaMemcpy(back.data(), second, bytes, cudaMemcpyDeviceToHost)); });

    printf("to_device: %zu MiB of pageable memory, %llu kernels of %llu us queued\n", bytes >> 20,
           (unsigned long long)kernels, (unsigned long long)us);
    print_copy("to the device, idle", idle, bytes);
    print_copy("to the device, behind the kernels", behind, bytes);
    print_copy("to the host", home, bytes);
    print_time("queueing the kernels took", queued);
    print_time("kernels and copy done after", all);
    printf("checksum 0x%016llx\n", (unsigned long long)checksum(back.data(), bytes));

    for (size_t i = 0; i < n; i++)
        if (back[i] != 3.0f * (float)(i % 65536))
            return fail("the array that came back");
    CHECK(cudaFree(first));
    CHECK(cudaFree(second));
    CHECK(cudaFree(warm));
    return 0;
}

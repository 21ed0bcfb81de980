// SPDX-License-Identifier: MIT
// pipeline [MIB [CHUNK_MIB]]: copy in, compute, copy out, chunk by chunk.
//
// The loop that everybody writes first: ordinary memory, blocking copies, one buffer on the device,
// nothing overlapped. Its time is almost all copies, and those run at a fraction of what the link
// can do, because pageable memory goes through the driver's small staging buffers.
#include "example.cuh"

#include <algorithm>
#include <vector>

int main(int argc, char **argv)
{
    const size_t bytes = argument(argc, argv, 1, 256) << 20;
    const size_t chunk = std::min<size_t>(argument(argc, argv, 2, 32) << 20, bytes);
    const size_t n = bytes / sizeof(float);

    std::vector<float> in(n), out(n);
    for (size_t i = 0; i < n; i++)
        in[i] = (float)(i % 65536);

    float *x, *y;
    CHECK(cudaMalloc(&x, chunk));
    CHECK(cudaMalloc(&y, chunk));
    LAUNCH(scale_f32, 0, x, 1.0f, 1); // loads the kernels
    LAUNCH(axpy_f32, 0, 1.0f, x, y, 1);
    CHECK(cudaDeviceSynchronize());

    double to_device = 0, compute = 0, to_host = 0;
    double total = blocked_ms([&] {
        for (size_t at = 0; at < n; at += chunk / sizeof(float)) {
            const size_t m = std::min(chunk / sizeof(float), n - at);
            const size_t size = m * sizeof(float);

            to_device +=
                blocked_ms([&] { CHECK(cudaMemcpy(x, &in[at], size, cudaMemcpyHostToDevice)); });
            compute += blocked_ms([&] {
                CHECK(cudaMemset(y, 0, size));
                LAUNCH(axpy_f32, 0, 0.5f, x, y, m);
                LAUNCH(scale_f32, 0, y, 4.0f, m);
            });
            to_host +=
                blocked_ms([&] { CHECK(cudaMemcpy(&out[at], y, size, cudaMemcpyDeviceToHost)); });
        }
    });

    printf("pipeline: %zu MiB in chunks of %zu MiB\n", bytes >> 20, chunk >> 20);
    print_copy("copies to the device", to_device, bytes);
    print_time("launches", compute);
    print_copy("copies to the host, and kernels", to_host, bytes);
    print_copy("all, bytes in and out", total, 2 * bytes);
    printf("checksum 0x%016llx\n", (unsigned long long)checksum(out.data(), bytes));

    for (size_t i = 0; i < n; i++)
        if (out[i] != 2.0f * (float)(i % 65536))
            return fail("the output");
    CHECK(cudaFree(x));
    CHECK(cudaFree(y));
    return 0;
}

// SPDX-License-Identifier: MIT
// handoff [MIB [KERNELS [US]]]: an array moves from one stream to another, by an event.
//
// The scenario of CUDA.jl's epochs. A parent fills an array on its stream, records an event, and
// goes on queueing work that has nothing to do with the array. A child, on a host thread and a
// stream of its own, waits for the event, uses the array, and brings it to the host:
//
//     parent:  fill a | record e | more work on b ...........................
//     child:                       wait e | scale a | copy a to the host
//
// All that the child needs is done once the event is. How long is it blocked? That depends on how
// it asks for its bytes: through its own stream, or with a plain cudaMemcpy, which goes through the
// legacy stream and so waits for the parent's later work as well.
#include "example.cuh"

#include <thread>
#include <vector>

struct Sizes {
    size_t bytes;
    uint64_t kernels, us;
};

struct Device {
    float *a, *b;
    cudaStream_t parent, child;
    cudaEvent_t filled;
};

constexpr uint32_t one = 0x3f800000; // 1.0f

// One round; returns how long the child was blocked in its copy.
static double round_trip(const Device &d, const Sizes &s, bool own_stream, std::vector<float> &out)
{
    const size_t n = s.bytes / sizeof(float);
    double blocked = 0;

    LAUNCH(fill_u32, d.parent, reinterpret_cast<uint32_t *>(d.a), n, one);
    CHECK(cudaEventRecord(d.filled, d.parent));
    queue_work(d.parent, s.kernels, s.us);
    LAUNCH(scale_f32, d.parent, d.b, 2.0f, n);

    std::thread child([&] {
        CHECK(cudaStreamWaitEvent(d.child, d.filled, 0));
        LAUNCH(scale_f32, d.child, d.a, 3.0f, n);
        blocked = blocked_ms([&] {
            if (own_stream) {
                CHECK(cudaMemcpyAsync(out.data(), d.a, s.bytes, cudaMemcpyDeviceToHost, d.child));
                CHECK(cudaStreamSynchronize(d.child));
            } else {
                CHECK(cudaMemcpy(out.data(), d.a, s.bytes, cudaMemcpyDeviceToHost));
            }
        });
    });
    child.join();
    return blocked;
}

int main(int argc, char **argv)
{
    const Sizes s = {argument(argc, argv, 1, 64) << 20, argument(argc, argv, 2, 200),
                     argument(argc, argv, 3, 1000)};
    const size_t n = s.bytes / sizeof(float);
    std::vector<float> own(n), legacy(n), b(n);
    Device d;

    CHECK(cudaMalloc(&d.a, s.bytes));
    CHECK(cudaMalloc(&d.b, s.bytes));
    CHECK(cudaStreamCreate(&d.parent));
    CHECK(cudaStreamCreate(&d.child));
    CHECK(cudaEventCreateWithFlags(&d.filled, cudaEventDisableTiming));
    LAUNCH(fill_u32, 0, reinterpret_cast<uint32_t *>(d.b), n, one);

    // The first round loads the kernels and touches the host arrays: not what we measure.
    const Sizes warm = {s.bytes, 1, 1};
    round_trip(d, warm, true, own);
    round_trip(d, warm, false, legacy);
    CHECK(cudaDeviceSynchronize());

    double start = now_ms();
    double by_own = round_trip(d, s, true, own);
    CHECK(cudaDeviceSynchronize());
    double parent = now_ms() - start;
    double by_legacy = round_trip(d, s, false, legacy);
    CHECK(cudaMemcpy(b.data(), d.b, s.bytes, cudaMemcpyDeviceToHost));

    printf("handoff: %zu MiB, the parent queues %llu kernels of %llu us behind its event\n",
           s.bytes >> 20, (unsigned long long)s.kernels, (unsigned long long)s.us);
    print_time("parent's work done after", parent);
    print_copy("child blocked, on its own stream", by_own, s.bytes);
    print_copy("child blocked, by cudaMemcpy", by_legacy, s.bytes);
    uint64_t sum = checksum(own.data(), s.bytes);
    sum = checksum(legacy.data(), s.bytes, sum);
    printf("checksum 0x%016llx\n", (unsigned long long)checksum(b.data(), s.bytes, sum));

    for (size_t i = 0; i < n; i++)
        if (own[i] != 3.0f || legacy[i] != 3.0f)
            return fail("the child's array");
        else if (b[i] != 16.0f)
            return fail("the parent's array");
    CHECK(cudaEventDestroy(d.filled));
    CHECK(cudaStreamDestroy(d.parent));
    CHECK(cudaStreamDestroy(d.child));
    CHECK(cudaFree(d.a));
    CHECK(cudaFree(d.b));
    return 0;
}

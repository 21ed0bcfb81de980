/* SPDX-License-Identifier: MIT */
#ifndef ES_TESTS_E2E_H
#define ES_TESTS_E2E_H
/* What every end-to-end test needs. These programs are plain CUDA programs: they know nothing of
 * the shim and hold natively as well. tests/e2e/meson.build runs each natively and preloaded, in
 * every mode, on the simulated GPU with every scheduler; tests/hardware/run runs them on a real
 * one. */

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/harness/test.h"

#define OK(call) CHECK_EQ_INT((call), CUDA_SUCCESS)

/* Initialises CUDA with device 0's primary context current, and loads the kernels, once. */
void e2e_setup(void);
void e2e_setup_without_pinned(void); /* no host memory that the device can access */

/* A kernel of tests/kernels/kernels.cu. */
CUfunction e2e_kernel(const char *name);

/* One block of one thread, on this stream. The arguments are addresses, as cuLaunchKernel takes
 * them. */
#define LAUNCH(stream, name, ...)                                                                  \
    OK(cuLaunchKernel(e2e_kernel(name), 1, 1, 1, 1, 1, 1, 0, (stream),                             \
                      (void *[]){__VA_ARGS__ __VA_OPT__(, ) NULL}, NULL))

/* A gate: kernels on a stream behind e2e_gate_close run only after e2e_gate_open. */
struct e2e_gate {
    volatile uint32_t *flag; /* mapped pinned memory */
    CUdeviceptr on_device;
};
void e2e_gate_make(struct e2e_gate *gate);
void e2e_gate_close(struct e2e_gate *gate, CUstream stream);
void e2e_gate_open(struct e2e_gate *gate);
void e2e_gate_free(struct e2e_gate *gate);

/* Bytes that tell their position and a seed. */
void e2e_fill(void *p, size_t bytes, uint32_t seed);
bool e2e_is_filled(const void *p, size_t bytes, uint32_t seed);
void *e2e_filled(size_t bytes, uint32_t seed); /* malloc'ed */

/* The device's bytes, by a pinned copy on a blocking stream of its own: natively a synchronous copy
 * of up to 64 KiB may return before the device has it, which only other streams' order can tell. */
bool e2e_device_is_filled(CUdeviceptr p, size_t bytes, uint32_t seed);

CUdeviceptr e2e_device_alloc(size_t bytes);

/* True without the shim, or where it rewrites nothing. */
bool e2e_is_native(void);

/* True under the shim when it stages copies of every size: then staging must show. */
bool e2e_is_rewritten(void);

/* On the simulated GPU: how often the driver's own function was called, or a kernel has run. -1 on
 * a real one. */
long e2e_driver_calls(const char *function);

/* True there, where copies may leave their places, and that GPU runs nothing unless it must: then
 * kernels that have not run show what was not waited for. */
bool e2e_runs_only_what_it_must(void);

/* Work that comes later: so many kernels, on some memory. Of those of the whole process
 * e2e_later_work_done have run (the simulated GPU, else -1). */
enum { E2E_LATER = 50 };
void e2e_queue_later_work(CUstream stream, CUdeviceptr memory, uint64_t words);
long e2e_later_work_done(void);

/* By a kernel. */
void e2e_fill_words(CUstream stream, CUdeviceptr p, uint64_t words, uint32_t value);

/* True where copies may leave their places: a current driver, and everything staged. */
bool e2e_is_followed(void);

/* True under EPOCHSHIM_KERNELS=args. */
bool e2e_is_by_args(void);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef ES_SIMGPU_SELF_H
#define ES_SIMGPU_SELF_H
/* The simulated driver's own tests. They hold with every scheduler; what only one of them shows
 * says so. No test sleeps: a gate says when the device goes on, and what a call that must wait saw
 * of the gate when it came back says whether it waited. */

#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/harness/test.h"
#include "tests/simgpu/simgpu.h"

#define OK(call) CHECK_EQ_INT((call), CUDA_SUCCESS)
enum { KiB = 1 << 10, MiB = 1 << 20 };

void self_setup(void); /* device 0's primary context is current */
bool self_scheduler_is(const char *name);

CUfunction self_kernel(const char *name);
#define LAUNCH(stream, name, ...)                                                                  \
    OK(cuLaunchKernel(self_kernel(name), 1, 1, 1, 1, 1, 1, 0, (stream),                            \
                      (void *[]){__VA_ARGS__ __VA_OPT__(, ) NULL}, NULL))

/* Closed, with a kernel on the stream that waits for it to open. One for the process. */
void self_close_gate(CUstream stream);
void self_open_gate(void);
bool self_gate_is_open(void);

CUstream self_stream(unsigned flags);
CUdeviceptr self_device(size_t bytes);
void *self_pinned(size_t bytes);
/* The device's first word, read on a stream of its own. */
uint32_t self_word(CUdeviceptr p);
void self_fill(CUstream stream, CUdeviceptr p, uint32_t value); /* one word, by a kernel */

/* Runs a call on another thread, opens the gate once the call was counted (function: its exported
 * name), and tells whether the gate was open when it came back, that is, whether it waited. */
typedef CUresult self_call(void *arg);
bool self_waits(const char *function, self_call *call, void *arg);

#endif

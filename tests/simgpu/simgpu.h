/* SPDX-License-Identifier: MIT */
#ifndef ES_SIMGPU_H
#define ES_SIMGPU_H
/* What tests may ask the simulated driver beside the driver API. A program that also runs on a real
 * GPU finds these by dlsym, and does without where they are missing. */

/* How often an exported function was called, by whatever door: "cuMemcpyHtoD_v2"; or how often a kernel
 * has run to its end: "fill_u32". */
__attribute__((visibility("default"))) unsigned long simgpu_count(const char *function);

/* How often a stream was told to wait for a recorded event of another stream. */
__attribute__((visibility("default"))) unsigned long simgpu_stream_waits(void);

/* Every count starts at zero again. */
__attribute__((visibility("default"))) void simgpu_reset_counts(void);

#endif

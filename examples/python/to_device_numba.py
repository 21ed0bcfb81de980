#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""to_device_numba.py [MIB [KERNELS]]: is cuda.to_device asynchronous?

The question as it was asked: time cuda.to_device(A) on an idle device, and again behind a queue of
kernels. Needs the packages numpy and numba-cuda, and an NVIDIA GPU; exits with 77 where one is
missing.
"""
import sys
import time


def skip(why):
    print(f"to_device_numba.py: skipped: {why}", file=sys.stderr)
    sys.exit(77)


try:
    import numpy as np

    if not hasattr(np, "row_stack"):  # numba-cuda 0.30 still looks for it, numpy 2.5 dropped it
        np.row_stack = np.vstack
    from numba import cuda
except ImportError as e:
    skip(f"{e} (pip install numpy numba-cuda[cu13])")
try:
    cuda.current_context()
except Exception as e:  # numba raises different types for no driver, no device, no toolkit
    skip("no usable GPU: " + (str(e).strip() or type(e).__name__).splitlines()[0])


@cuda.jit
def busy(x, rounds):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        for _ in range(rounds):
            v = v * 1.0000001 + 0.0000001
        x[i] = v


@cuda.jit
def double(x):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        x[i] *= 2


def timed(what, call, nbytes=None):
    start = time.perf_counter()
    result = call()
    seconds = time.perf_counter() - start
    rate = f" {nbytes / seconds / 1e9:5.1f} GB/s" if nbytes else ""
    print(f"  {what:<33} {seconds * 1e3:8.1f} ms{rate}")
    return result


def main():
    mib = int(sys.argv[1]) if len(sys.argv) > 1 else 256
    kernels = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    a = np.arange(mib << 17, dtype=np.float64) % 65536

    scratch = cuda.to_device(np.zeros(256 * 1024))
    busy[1024, 256](scratch, 1)  # compiles and loads: not what we measure
    double[1024, 256](scratch)
    cuda.to_device(a)
    cuda.synchronize()

    print(f"to_device_numba: {mib} MiB, {kernels} kernels queued")
    timed("cuda.to_device, idle", lambda: cuda.to_device(a), a.nbytes)
    cuda.synchronize()
    start = time.perf_counter()
    for _ in range(kernels):
        busy[1024, 256](scratch, 20000)
    d = timed("cuda.to_device, behind the kernels", lambda: cuda.to_device(a), a.nbytes)
    cuda.synchronize()
    print(f"  {'kernels and copy done after':<33} {(time.perf_counter() - start) * 1e3:8.1f} ms")
    double[1024, 256](d)
    cuda.synchronize()
    back = timed("copy_to_host", d.copy_to_host, a.nbytes)
    words = back.view(np.uint64)
    weights = 2 * np.arange(words.size, dtype=np.uint64) + 1
    print(f"checksum 0x{int((words * weights).sum()):016x}")
    if not np.array_equal(back, 2 * a):
        sys.exit("wrong result: the array that came back")


main()

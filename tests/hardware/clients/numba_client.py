# SPDX-License-Identifier: MIT
"""numba: to_device and copy_to_host, with and without a stream, and a kernel between."""
from common import SKIP, Timer, arrays, checksum, need

np = need("numpy")
if not hasattr(np, "row_stack"):
    np.row_stack = np.vstack  # numba-cuda 0.30 still asks for it
need("numba")
from numba import cuda  # noqa: E402

if not cuda.is_available():
    print("skipped: no GPU")
    raise SystemExit(SKIP)


@cuda.jit
def add_one(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += 1


with Timer("round trips"):
    for i, a in enumerate(arrays()):
        a = a.reshape(-1)
        x = cuda.to_device(a)
        add_one[(a.size + 255) // 256, 256](x)
        checksum(f"copy_to_host {i}", x.copy_to_host())
        stream = cuda.stream()
        y = cuda.to_device(a, stream=stream)
        back = y.copy_to_host(stream=stream)
        stream.synchronize()
        checksum(f"with a stream {i}", back)

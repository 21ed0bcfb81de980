# SPDX-License-Identifier: MIT
"""CuPy: asarray and asnumpy, on the default and on other streams, and a kernel of its own."""
from common import Timer, arrays, checksum, need

cp = need("cupy")
np = need("numpy")

with Timer("round trips"):
    for i, a in enumerate(arrays()):
        x = cp.asarray(a)
        checksum(f"asnumpy {i}", cp.asnumpy(x))
        y = cp.empty(a.shape, a.dtype)
        y.set(a)
        checksum(f"set and get {i}", (y + y).get())
    with cp.cuda.Stream(non_blocking=True) as stream:
        x = cp.asarray(np.arange(8 << 20, dtype=np.float32))
        checksum("stream", (x * 2).get(stream=stream))
    print("checksum sum", float(cp.arange(1000).sum()))

# SPDX-License-Identifier: MIT
"""What the Python clients share: arrays of every size, checksums, and a clear skip."""
import importlib
import sys
import time
import zlib

SKIP = 77


def need(module):
    """The module, or the end of this client with one clear line."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        print(f"skipped: {error}")
        sys.exit(SKIP)


def arrays():
    np = need("numpy")
    random = np.random.default_rng(20)
    for count in (1, 1000, 16 << 10, (256 << 10) + 1, 4 << 20, 24 << 20):
        yield random.standard_normal(count).astype(np.float32)
    yield random.integers(0, 255, (3, 1000, 1001)).astype(np.uint8)


def checksum(what, array):
    print(f"checksum {what} {zlib.crc32(array.tobytes()):08x}")


class Timer:
    """Prints how long a block took; lines that begin with "time" are not compared."""

    def __init__(self, what):
        self.what = what

    def __enter__(self):
        self.start = time.perf_counter()

    def __exit__(self, *unused):
        print(f"time {self.what} {(time.perf_counter() - self.start) * 1e3:.1f} ms")

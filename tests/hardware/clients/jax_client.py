# SPDX-License-Identifier: MIT
"""JAX: device_put and back, and a jitted function."""
import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
from common import SKIP, Timer, arrays, checksum, need  # noqa: E402

jax = need("jax")
np = need("numpy")
if jax.default_backend() != "gpu":
    print("skipped: jax has no GPU backend")
    raise SystemExit(SKIP)

with Timer("round trips"):
    twice = jax.jit(lambda x: x + x)
    for i, a in enumerate(arrays()):
        x = jax.device_put(a)
        checksum(f"device_put {i}", np.asarray(x))
        checksum(f"jit {i}", np.asarray(twice(x)))

# SPDX-License-Identifier: MIT
"""What the scripts here share: running one batch of random programs, and finding the shortest that fails."""
import os
import subprocess

SCHEDULERS = ("eager", "lazy", "random", "slow")
FLAVOURS = ("plain", "hidden", "gates", "mapped", "threads")
# Everything staged, and two policies that differ in what stands in the way.
POLICIES = {
    "native": None,
    "staged": {"EPOCHSHIM_MIN_BYTES": "1", "EPOCHSHIM_WARMUP": "0", "EPOCHSHIM_THREADS": "2"},
    "small": {"EPOCHSHIM_MIN_BYTES": "1", "EPOCHSHIM_WARMUP": "0", "EPOCHSHIM_THREADS": "2", "EPOCHSHIM_POOL": "256K",
              "EPOCHSHIM_CHUNK": "64K"},
    "never": {"EPOCHSHIM_MIN_BYTES": "1", "EPOCHSHIM_WARMUP": "0", "EPOCHSHIM_THREADS": "2", "EPOCHSHIM_DEFER": "never"},
    "args": {"EPOCHSHIM_MIN_BYTES": "1", "EPOCHSHIM_WARMUP": "0", "EPOCHSHIM_THREADS": "2", "EPOCHSHIM_KERNELS": "args"},
    "default": {},
}


def agree(flavour, policy):
    """Whether a policy is meant for such programs."""
    return (flavour, policy) != ("hidden", "args")


def run(program, arguments, library_path, preload=None, policy="native", scheduler="lazy", seed=1, timeout=300, **more):
    """(exit status, what it printed); status "hang" when it did not end."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("EPOCHSHIM_", "SIMGPU_"))}
    env.update(LD_LIBRARY_PATH=library_path, SIMGPU_SCHED=scheduler, SIMGPU_SEED=str(seed), SIMGPU_HANG_S="8", **more)
    if POLICIES[policy] is not None:
        env.update(POLICIES[policy], LD_PRELOAD=preload)
    try:
        done = subprocess.run([program, *map(str, arguments)], env=env, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return "hang", f"not done after {timeout} s"
    return done.returncode, done.stdout + done.stderr


def shortest(run_with, operations=60):
    """The fewest operations with which run_with(n) still fails."""
    low, high = 1, operations
    while low < high:
        middle = (low + high) // 2
        if run_with(middle)[0] == 0:
            low = middle + 1
        else:
            high = middle
    return low

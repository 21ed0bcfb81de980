#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Several CUDA runtimes in one process: each call reaches its caller's, and is counted once. Prints TAP.

Usage: runtimes.py PRELOAD LIBRARY_PATH RUNTIMES PLUGIN OTHER STATIC
RUNTIMES: the program of runtimes.c. The plugins are linked to one runtime, to another, or have one inside.
"""
import os
import re
import sys

import tap
from tap import check

preload, library_path, program, plugin, other, static = map(os.path.abspath, sys.argv[1:7])


def run(*arguments, **env):
    return tap.run(program, *arguments, LD_LIBRARY_PATH=library_path + os.pathsep + library_path + "/cudart", **env)


def seen(log):
    m = re.search(r"^copies: seen (\d+), staged (\d+), native (\d+)$", log, re.M)
    return tuple(map(int, m.groups())) if m else None


ways = {
    "one runtime": ["+" + plugin],
    "two runtimes, both RTLD_LOCAL": ["+" + plugin, "+" + other],
    "a shared runtime and one inside a library": ["+" + plugin, "+" + static],
    "libraries that come and go": ["-" + plugin, "-" + other, "-" + static] * 6,
    "one that stays while others come and go": ["+" + other] + ["-" + plugin, "-" + static] * 4,
}
for name, arguments in ways.items():
    native = run(*arguments)
    trips = len(arguments) + sum(a[0] != "-" for a in arguments)
    check(f"{name}: natively it works", native[0] == 0 and native[1].count("result 0,") == trips and not native[2],
          native)
    for mode in ("observe", "rewrite"):
        status, out, log = run(*arguments, LD_PRELOAD=preload, EPOCHSHIM_MODE=mode, EPOCHSHIM_MIN_BYTES="1",
                               EPOCHSHIM_WARMUP="0")
        staged = 3 * trips if mode == "rewrite" else 0
        check(f"{name}: {mode}: same output, each call by its caller's runtime", (status, out) == native[:2],
              native[1] + out)
        check(f"{name}: {mode}: each copy counted once", seen(log) == (3 * trips, staged, 3 * trips - staged), log)

log = run("+" + plugin, LD_PRELOAD=preload)[2]
lines = log.split("call sites,")[1].split("staging:")[0].split("also seen:")[0]
check("call sites: the runtime's function, and the caller's symbol",
      re.search(r"cudaMemcpy, plugin_round_trip\+0x", lines) and
      re.search(r"cudaMemcpyAsync, plugin_round_trip\+0x", lines), lines)
check("nothing went past, so nothing is said of it", "not seen:" not in log, log)

log = run("@libcudart.so.13", LD_PRELOAD=preload)
check("call sites: by pointer, the caller is found on the stack",
      log[1].endswith("by pointer: 0 0 0\n") and log[2].count(", main+0x") == 2, log)

for name, arguments in {"alone": ["=" + plugin], "beside another": ["+" + other, "=" + plugin]}.items():
    native = run(*arguments)
    status, out, log = run(*arguments, LD_PRELOAD=preload)
    check(f"RTLD_DEEPBIND, {name}: as natively", native[0] == 0 and (status, out) == native[:2], native[1] + out)
    said = re.findall(r"^not seen: what (.*) called", log, re.M)
    check(f"RTLD_DEEPBIND, {name}: the log names what went past",
          len(said) == 1 and os.path.basename(plugin) in said[0] and os.path.basename(other) not in said[0], log)
    check(f"RTLD_DEEPBIND, {name}: with the log off nothing is said",
          run(*arguments, LD_PRELOAD=preload, EPOCHSHIM_LOG="off")[2] == "")

tap.finish()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How processes and threads begin and end: status and output as natively, one log a process. Prints TAP.

Usage: process.py PRELOAD LIBRARY_PATH PROCESS DOORS HOOKER   (programs of process.c, doors.c; hooker.c)
"""
import os
import re
import sys

import tap
from tap import check

shim, library_path, process, doors, hooker = map(os.path.abspath, sys.argv[1:6])

# Case: copies in each process's log, at least one process's log each; none where no destructor runs.
CASES = {
    "plain": [2],
    "zero": [],
    "destructor": [4],
    "fork-exit": [2],
    "fork-goes-on": [2],
    "fork-exec": [2],
    "fork-first": [2, 4],
    "vfork-exec": [2, 2],
    "spawn": [2, 2],
    "spawn-true": [2],
    "threads": [2 + 2 * (4 * 2 + 2 * 3)],  # each thread begins and ends with a trip; half make three between
    "exit-in-thread-while-a-copy-waits": [2],
    "reset": [4],
    "_exit": [],
    "abort": [],
    "sigterm": [],
}


def run(*command, **env):
    return tap.run(*command, timeout=30, LD_LIBRARY_PATH=library_path, SIMGPU_HANG_S="25", **env)


def logs(text):
    """[(pid, copies seen, staged)], by copies."""
    found = re.findall(r"^--- epochshim \S+, pid (\d+), .*\ncopies: seen (\d+), staged (\d+),", text, re.M)
    return sorted(tuple(map(int, f)) for f in found)


for case, copies in CASES.items():
    native = run(process, case)
    check(f"{case}: natively it ends", re.fullmatch("(done\n)+", native[1]) and not native[2] and native[0] not in (3, 4, 99), native)
    for mode in ("off", "observe", "rewrite"):
        status, out, text = run(process, case, LD_PRELOAD=shim, EPOCHSHIM_MODE=mode, EPOCHSHIM_MIN_BYTES="1",
                                EPOCHSHIM_WARMUP="0")
        found = logs(text)
        check(f"{case}: {mode}: ends as natively", (status, out) == native[:2], (native, status, out, text))
        check(f"{case}: {mode}: the logs of its processes",
              sorted(seen for _, seen, _ in found) == ([] if mode == "off" else sorted(copies)) and
              len({pid for pid, _, _ in found}) == len(found) == text.count("--- epochshim") and
              all(staged == (seen if mode == "rewrite" else 0) for _, seen, staged in found), text)

native = run(doors, "dlsym", "3", "2")
for name, preload in {"before": hooker + ":" + shim, "after": shim + ":" + hooker}.items():
    alone = run(doors, "dlsym", "3", "2", LD_PRELOAD=hooker, HOOKER_TELLS="1")
    status, out, text = run(doors, "dlsym", "3", "2", LD_PRELOAD=preload, HOOKER_TELLS="1")
    check(f"another hook of dlsym, preloaded {name} this one: as natively", (status, out) == native[:2], out + text)
    check(f"another hook of dlsym, preloaded {name} this one: copies are seen",
          [seen for _, seen, _ in logs(text)] == [3], text)
    asked = [int(re.search(r"hooker: (\d+) look-ups of cu", t).group(1)) for t in (alone[2], text)]
    check(f"another hook of dlsym, preloaded {name} this one: it sees what it sees alone",
          asked[0] > 0 and asked[1] >= asked[0], asked)

tap.finish()

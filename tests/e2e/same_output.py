#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs a program natively and preloaded, in every mode: output and status must be the same. Prints TAP.

Usage: same_output.py PRELOAD LIBRARY_PATH PROGRAM [ARG ...]
"""
import difflib
import os
import subprocess
import sys

preload, library_path, *command = sys.argv[1:]


def run(**env):
    whole = dict(os.environ, LD_LIBRARY_PATH=os.path.abspath(library_path), EPOCHSHIM_LOG="off", **env)
    done = subprocess.run(command, env=whole, capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr + f"exit {done.returncode}\n"


native = run()
ways = {"off": {"EPOCHSHIM_MODE": "off"}, "observe": {"EPOCHSHIM_MODE": "observe"}, "rewrite": {},
        "rewrite of every size": {"EPOCHSHIM_MIN_BYTES": "1", "EPOCHSHIM_WARMUP": "0", "EPOCHSHIM_THREADS": "2"}}
failed = 0
print(f"1..{len(ways) + 1}")
print(("ok" if native.endswith("exit 0\n") else "not ok") + " 1 - natively it runs")
for number, (way, env) in enumerate(ways.items(), 2):
    got = run(LD_PRELOAD=preload, **env)
    failed += got != native
    print(f"{'ok' if got == native else 'not ok'} {number} - {way}: the same")
    if got != native:
        print("# " + "# ".join(difflib.unified_diff(native.splitlines(True), got.splitlines(True))))
sys.exit(1 if failed else 0)

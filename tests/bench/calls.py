#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What calls cost natively, under the shim, and under EPOCHSHIM_KERNELS=args, in one run.

    calls.py PROGRAM LIBRARY [ROUNDS]

Runs PROGRAM (build of calls.cu) in each way in turn, ROUNDS times, and prints the least of each row
in ns, with what the shim adds. Of launches by many threads the throughput in % of native's is
what counts.
"""
import os
import re
import subprocess
import sys

WAYS = {
    "native": {},
    "opaque": {"EPOCHSHIM_KERNELS": "opaque"},
    "args": {"EPOCHSHIM_KERNELS": "args"},
}


def run(program, library, way):
    env = dict(os.environ, EPOCHSHIM_LOG="off", **WAYS[way])
    if way != "native":
        env["LD_PRELOAD"] = library
    out = subprocess.run([program], env=env, check=True, stdout=subprocess.PIPE, text=True).stdout
    return {m[1].strip(): int(m[2]) for m in re.finditer(r"^time (.*?) +(\d+) ns$", out, re.M)}


def main():
    program, library = sys.argv[1:3]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    least = {way: {} for way in WAYS}
    for _ in range(rounds):
        for way in WAYS:
            for row, ns in run(program, library, way).items():
                least[way][row] = min(ns, least[way].get(row, ns))
    print(f"{'ns a call':<30}{'native':>8}{'opaque':>16}{'args':>16}{'throughput %':>16}")
    for row, native in least["native"].items():
        cells = "".join(f"{least[way][row]:>8} {least[way][row] - native:>+7}" for way in ("opaque", "args"))
        share = "".join(f"{100 * native / least[way][row]:>8.0f}" for way in ("opaque", "args"))
        print(f"{row:<30}{native:>8}{cells}{share}")


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How long copies take: natively, under the shim, and from pinned memory, in one run.

    copies.py PROGRAM LIBRARY [--rounds N] [--csv FILE] [--draw FILE.png] [ARGUMENT ...]

Runs PROGRAM (build of copies.c) in each way in turn, N times (3), with the ARGUMENTs, and prints of each
row the median of its rounds: us until the call returned, and until the device was done. "x" is how many
times as fast as native the shim is until it is done, "x 1 thr." the same with EPOCHSHIM_THREADS=1, "x 1
core" with the calling thread bound to one core (natively, too), and "of pinned" its share of the speed
of a copy from pinned memory. CPU: ms of all threads for one copy, natively and under the shim.
"""
import argparse
import csv
import os
import statistics
import subprocess
import sys

import copies_plot

# Way: the program's flags, the environment, whether the shim is preloaded.
WAYS = {
    "native": ([], {}, False),
    "shim": ([], {}, True),
    "pinned": (["--pinned"], {}, False),
    "shim-1-thread": ([], {"EPOCHSHIM_THREADS": "1"}, True),
    "native-1-core": (["--one-core"], {}, False),
    "shim-1-core": (["--one-core"], {}, True),
}


def run(program, library, way, arguments):
    flags, more, preloaded = WAYS[way]
    env = dict(os.environ, EPOCHSHIM_LOG="off", **more)
    if preloaded:
        env["LD_PRELOAD"] = library
    out = subprocess.run([program, *flags, *arguments], env=env, check=True, stdout=subprocess.PIPE, text=True).stdout
    rows = (line.split() for line in out.splitlines() if line.startswith("row "))
    return {(name, int(size)): tuple(map(float, figures)) for _, name, size, *figures in rows}


def size_text(size):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def time_text(us):
    return f"{us / 1000:.1f}m" if us >= 10000 else f"{us:.1f}" if us < 1000 else f"{us:.0f}"


def table(found):
    """found: {way: {row: (us until return, us until done, cpu ms)}}"""
    yield (f"{'':<18}{'bytes':>12}{'native ret':>11}{'done':>9}{'shim ret':>10}{'done':>9}{'pinned':>9}{'x':>7}"
           f"{'x 1 thr.':>9}{'x 1 core':>9}{'of pinned':>10}{'CPU ms':>15}")
    for row in found["native"]:
        def of(way, which=1, row=row):
            return found[way][row][which]

        yield (f"{row[0]:<18}{size_text(row[1]):>12}{time_text(of('native', 0)):>11}{time_text(of('native')):>9}"
               f"{time_text(of('shim', 0)):>10}{time_text(of('shim')):>9}{time_text(of('pinned')):>9}"
               f"{of('native') / of('shim'):>7.2f}{of('native') / of('shim-1-thread'):>9.2f}"
               f"{of('native-1-core') / of('shim-1-core'):>9.2f}{of('pinned') / of('shim'):>10.2f}"
               f"{of('native', 2):>7.1f} {of('shim', 2):>7.1f}")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("program")
    parser.add_argument("library")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--csv")
    parser.add_argument("--draw")
    args, more = parser.parse_known_args()
    rounds = {way: [] for way in WAYS}
    for _ in range(args.rounds):
        for way in WAYS:
            rounds[way].append(run(os.path.abspath(args.program), os.path.abspath(args.library), way, more))
    found = {way: {row: tuple(statistics.median(r[row][i] for r in got) for i in range(3)) for row in got[0]}
             for way, got in rounds.items()}
    for line in table(found):
        print(line)
    if args.csv:
        with open(args.csv, "w", newline="", encoding="utf-8") as f:
            out = csv.writer(f)
            out.writerow(["way", "row", "bytes", "until_return_us", "until_done_us", "cpu_ms"])
            for way, rows in found.items():
                for (name, size), figures in rows.items():
                    out.writerow([way, name, size, *figures])
    if args.draw:
        copies_plot.draw(found, args.draw)
    return 0


sys.exit(main())

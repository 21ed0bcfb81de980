#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The laws, checked with random programs: every flavour, policy and scheduler. Prints TAP.

Usage: run.py PRELOAD LIBRARY_PATH LAWS PROGRAMS [FIRST_SEED]
"""
import os
import re
import sys

import laws

preload, (library_path, program) = sys.argv[1], map(os.path.abspath, sys.argv[2:4])
programs = int(sys.argv[4])
first = int(sys.argv[5]) if len(sys.argv) > 5 else 1
number = 0
good = True
for flavour in laws.FLAVOURS:
    for policy in (p for p in laws.POLICIES if laws.agree(flavour, p)):
        for scheduler in laws.SCHEDULERS:
            number += 1

            def run(operations, seed=first, count=programs):
                return laws.run(program, [flavour, seed, count, operations], library_path, preload, policy, scheduler)

            status, out = run(60)
            ok = status == 0 and out.startswith("ok\n") or status == 0 and "\nok\n" in out
            good &= ok
            print(f"{'ok' if ok else 'not ok'} {number} - {flavour}, {policy}, {scheduler}: {programs} programs from seed {first}")
            if not ok:
                print("# " + out.replace("\n", "\n# "))
                m = re.search(r"^seed (\d+) ", out, re.M)
                if m and flavour != "threads":
                    # Alone it may pass: the schedule went on from the programs before it.
                    seed = int(m.group(1))
                    fewest = laws.shortest(lambda n: run(n, first, seed - first + 1))
                    print(f"# fails with {fewest} operations: laws {flavour} {first} {seed - first + 1} {fewest}")
print(f"1..{number}")
sys.exit(0 if good else 1)

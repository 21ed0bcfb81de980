#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Breaks one rule of the engine at a time (shim/mutant.h): each must be caught. Prints TAP.

Usage: mutants.py ROOT MUTANTS_LIBRARY LIBRARY_PATH LAWS E2E_FOLDER UNIT_FOLDER
"""
import os
import pathlib
import re
import sys

import laws

root, preload, library_path, program, e2e, unit = map(os.path.abspath, sys.argv[1:7])
rules = re.findall(r'^    X\((\w+), "(.*)"\)', pathlib.Path(root, "shim/mutant.h").read_text(encoding="utf-8"), re.M)
# What may catch one, the quick and likely first.
WAYS = [(program, [flavour, seed, 40], scheduler)
        for seed in (1, 1001) for flavour, scheduler in
        (("plain", "slow"), ("plain", "lazy"), ("gates", "slow"), ("gates", "lazy"), ("mapped", "slow"),
         ("threads", "random"), ("mapped", "lazy"))]
WAYS += [(f"{e2e}/e2e-{name}", [], scheduler)
         for name in ("order", "epochs", "handover", "threads", "copies", "barrier", "capture", "context")
         for scheduler in ("random", "lazy")]
WAYS += [(program, [flavour, seed, 40], "slow") for seed in (2001, 3001, 4001) for flavour in ("plain", "threads")]
good = True


def caught(rule):
    """By what the rule's loss was seen; None: by nothing."""
    for name in ("turn", "memory", "pipe", "pool", "capture", "clock", "event", "kernel", "leave", "touch"):
        status, out = laws.run(f"{unit}/mutants-{name}", [], library_path, timeout=60, ES_BROKEN_RULE=str(rule))
        if status != 0:
            return f"unit-{name}"
    for policy in ("staged", "args", "small"):
        for what, arguments, scheduler in WAYS:
            status, out = laws.run(what, arguments, library_path, preload, policy, scheduler, timeout=60,
                                   ES_BROKEN_RULE=str(rule), EPOCHSHIM_LOG="off")
            if status != 0:
                return f"{os.path.basename(what)} {' '.join(map(str, arguments))} {policy} {scheduler}".replace("  ", " ")
    return None


print(f"1..{len(rules) + 1}")
by = caught(0)
good &= by is None
print(f"{'not ok' if by else 'ok'} 1 - nothing fails while no rule is broken" + (f": {by}" if by else ""))
for number, (name, text) in enumerate(rules, 1):
    by = caught(number)
    good &= by is not None
    print(f"{'ok' if by else 'not ok'} {number + 1} - {name}: {text}" + (f" (caught by {by})" if by else ""))
    sys.stdout.flush()
sys.exit(0 if good else 1)

# SPDX-License-Identifier: MIT
"""What the tests here that are Python programs share: running a program, and TAP."""
import os
import subprocess
import sys

_results = []


def run(*command, timeout=60, **env):
    """(exit status, stdout, stderr), with these variables and none of EPOCHSHIM_... that was set before."""
    whole = {k: v for k, v in os.environ.items() if not k.startswith("EPOCHSHIM_")}
    whole.update(env)
    done = subprocess.run(command, env=whole, capture_output=True, text=True, timeout=timeout)
    return done.returncode, done.stdout, done.stderr


def check(name, good, detail=""):
    _results.append(bool(good))
    print(f"{'ok' if good else 'not ok'} {len(_results)} - {name}")
    if not good:
        print("# " + str(detail).replace("\n", "\n# "))


def skip(name, why):
    """A check that cannot be made here."""
    _results.append(True)
    print(f"ok {len(_results)} - {name} # SKIP {why}")


def finish():
    print(f"1..{len(_results)}")
    sys.exit(0 if all(_results) else 1)

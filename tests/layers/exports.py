#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the built library shows the world (case 20). Prints TAP.

Usage: exports.py ROOT LIBEPOCHSHIM NM READELF
"""
import pathlib
import re
import subprocess
import sys

root, library, nm, readelf = sys.argv[1:5]
root = pathlib.Path(root)
number = 0
good = True


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def check(name, wrong):
    global number, good
    number += 1
    good &= not wrong
    print(f"{'not ok' if wrong else 'ok'} {number} - {name}")
    for line in wrong:
        print("# " + line)


hooks = set(re.findall(r"^(?:FOLLOW|BODY)\((\w+),", (root / "intercept/hooks.def").read_text(), re.M))
for name, suffix in re.findall(r"^RUNTIME_BOTH\((\w+), (\w+),", (root / "intercept/runtime.def").read_text(), re.M):
    hooks |= {name, name + suffix}
# The version nodes that dlsym has are absolute names.
defined = {line.split()[-1].split("@")[0] for line in run(nm, "-D", "--defined-only", library).splitlines()
           if line.split()[1] != "A"}
check("exports are the rows of hooks.def and runtime.def, and dlsym",
      [f"only one of them has {s}" for s in sorted((hooks | {"dlsym"}) ^ defined)])

undefined = run(nm, "-D", "--undefined-only", library)
check("nothing of GLIBC_PRIVATE", re.findall(r".*GLIBC_PRIVATE.*", undefined))
check("neither dlsym nor a driver function is asked of others",
      re.findall(r".* U (?:dlsym|cu[A-Z]\w*)(?:@.*)?$", undefined, re.M))

needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run(readelf, "-dW", library))
check("needs the C library alone", [n for n in needed if not re.match(r"(libc|libdl|libpthread|ld-linux\S*)\.so", n)])

tls = [int(line.split()[5], 16) for line in run(readelf, "-lW", library).splitlines() if line.split()[:1] == ["TLS"]]
check("under 64 bytes of static TLS", [f"{n} bytes" for n in tls if n >= 64])

versions = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([0-9.]+)", undefined)}
newest = ".".join(map(str, max(versions)))
stated = re.search(r"loads on glibc ([0-9.]+) or newer", (root / "README.md").read_text())
check("README names the oldest glibc", [] if stated and tuple(map(int, stated.group(1).split("."))) >= max(versions)
      else [f"needs {newest}"])
print(f"1..{number}")
sys.exit(0 if good else 1)

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every function of the toolkit's driver headers is in one class of hooks.def. Prints TAP.

Walked are cuda.h in both meanings of stream 0 and with every older variant, the headers beside it that add
driver functions, and, where the toolkit has it, what its stub of libcuda exports.

Usage: classes.py ROOT INCLUDE_FOLDER CC NM
"""
import pathlib
import re
import subprocess
import sys

root, include, cc, nm = sys.argv[1:5]
include = pathlib.Path(include)
results = []


def preprocessed():
    for stream in ([], ["-DCUDA_API_PER_THREAD_DEFAULT_STREAM"]):
        for variants in ([], ["-D__CUDA_API_VERSION_INTERNAL"]):
            yield subprocess.run([cc, "-E", "-P", *stream, *variants, "-I", str(include), "-"], text=True, check=True,
                                 input="#include <cuda.h>\n#include <cudaProfiler.h>\n", capture_output=True).stdout


def declared():
    """Functions that end in a semicolon: cuda.h also has inline ones."""
    for text in preprocessed():
        for m in re.finditer(r"\bCUresult\s+(cu[A-Z]\w*)\s*\((?:[^()]|\([^()]*\))*\)\s*;", text):
            yield m.group(1)
    # These include graphics headers that need not be there: no preprocessor.
    for header in ("cudaGL.h", "cudaEGL.h", "cudaVDPAU.h"):
        if (include / header).exists():
            text = (include / header).read_text(encoding="utf-8")
            yield from re.findall(r"\bCUresult\s+CUDAAPI\s+(cu[A-Z]\w*)\s*\(", text)
            yield from re.findall(r"^\s*#define\s+cu[A-Z]\w*\s+(cu[A-Z]\w*_v\d)$", text, re.M)


def exported():
    for stub in (include / "../lib64/stubs/libcuda.so", include / "../lib/stubs/libcuda.so"):
        if stub.exists():
            lines = subprocess.run([nm, "-D", "--defined-only", str(stub)], text=True, check=True,
                                   capture_output=True).stdout.splitlines()
            return {name for name in (line.split()[-1] for line in lines) if re.match("cu[A-Z]", name)}
    return set()


def check(name, wrong):
    results.append(not wrong)
    print(f"{'not ok' if wrong else 'ok'} {len(results)} - {name}")
    for line in wrong:
        print("# " + line)


rows = re.findall(r"^(BODY|FOLLOW|HARMLESS|UNKNOWN)\((\w+)",
                  (pathlib.Path(root) / "intercept/hooks.def").read_text(encoding="utf-8"), re.M)
functions = set(declared()) | exported()


def without_class(some_rows):
    return sorted(functions - {name for _, name in some_rows})


check("the headers were understood", [] if len(functions) > 600 else [f"only {len(functions)} functions found"])
check("every function has a class", without_class(rows))
names = [name for _, name in rows]
check("and but one", sorted({name for name in names if names.count(name) > 1}))
check("no row is of a function that no header knows", sorted(set(names) - functions))
check("a removed row is found",
      [f"{kind}({name}) removed is not" for kind, name in rows
       if name in functions and without_class([row for row in rows if row[1] != name]) != [name]])
print(f"1..{len(results)}")
sys.exit(0 if all(results) else 1)

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The include direction: intercept/ -> shim/ -> policy/, one way only. Prints TAP.

policy/ is a leaf: no CUDA, no threads. shim/ knows the driver's types but neither how calls reach it
nor dlfcn.h. Every source file says its licence in one SPDX line. Usage: includes.py ROOT
"""
import pathlib
import re
import sys
import tempfile

FORBIDDEN = {
    "policy": re.compile(r"^(shim|intercept|tests)/|^(cuda|dlfcn|pthread|threads|sys/mman|link)"),
    "shim": re.compile(r"^(intercept|tests)/|^(dlfcn|link)\.h"),
    "intercept": re.compile(r"^tests/"),
}


def violations(root):
    for layer, forbidden in FORBIDDEN.items():
        for path in sorted((root / layer).glob("*.[chS]")) + sorted((root / layer).glob("*.def")):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                m = re.match(r'\s*#\s*include\s*["<]([^">]+)', line)
                if m and forbidden.search(m.group(1)):
                    yield f"{path.relative_to(root)}:{number}: {layer}/ may not include {m.group(1)}"


def unlicensed(root):
    for folder in ("policy", "shim", "intercept", "tests", "examples"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".c", ".h", ".S", ".def", ".cu", ".py", ".sh") or path.name in ("run", "meson.build"):
                if path.is_file() and "SPDX-License-Identifier: MIT" not in path.read_text(encoding="utf-8")[:300]:
                    yield str(path.relative_to(root))


def long_files(root):
    for folder in ("policy", "shim", "intercept"):
        for path in sorted((root / folder).glob("*.[ch]")):
            if len(path.read_text(encoding="utf-8").splitlines()) > 500:
                yield str(path.relative_to(root))


def report(number, name, found):
    print(f"{'not ok' if found else 'ok'} {number} - {name}")
    for line in found:
        print("# " + line)
    return not found


root = pathlib.Path(sys.argv[1])
with tempfile.TemporaryDirectory() as folder:
    planted = pathlib.Path(folder)
    for layer in FORBIDDEN:
        (planted / layer).mkdir()
        (planted / layer / "x.c").write_text(
            '#include <cuda.h>\n#include "intercept/hooks.h"\n#include "tests/x.h"\n', encoding="utf-8")
    caught = len(list(violations(planted)))
print("1..4")
good = report(1, "planted violations are caught", [] if caught == 6 else [f"{caught} of 6"])
good &= report(2, "no layer includes a higher one", list(violations(root)))
good &= report(3, "every source file names its licence", list(unlicensed(root)))
good &= report(4, "no file has more than 500 lines", list(long_files(root)))
sys.exit(0 if good else 1)

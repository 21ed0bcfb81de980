# SPDX-License-Identifier: MIT
"""Writes a version script that exports what a driver of an older CUDA version has.

Usage: newer.py EXPORTS.H VERSION OUTPUT
"""
import re
import sys

header, version, output = sys.argv[1], int(sys.argv[2]), sys.argv[3]
with open(header) as f:
    rows = re.findall(r"X\((cu\w+), (\d+)\)", f.read())
newer = [name for name, since in rows if int(since) > version] + ["cuSimUnheardOf", "cuSimArguments"]
with open(output, "w") as f:
    f.write("{\n  global:\n    cu*;\n    simgpu_*;\n  local:\n")
    f.writelines(f"    {name};\n" for name in newer)
    f.write("    *;\n};\n")

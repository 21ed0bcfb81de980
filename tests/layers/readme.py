#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The README's option table is the one of options.def. Prints TAP; --write puts it there.

Usage: readme.py README PRINT_OPTIONS [--write]
"""
import pathlib
import re
import subprocess
import sys

readme = pathlib.Path(sys.argv[1])
table = subprocess.run([sys.argv[2]], capture_output=True, text=True, check=True).stdout
text = readme.read_text(encoding="utf-8")
wanted = re.sub(r"(<!-- options -->\n).*?(<!-- /options -->)", lambda m: m.group(1) + table + m.group(2), text, flags=re.S)
if "--write" in sys.argv:
    readme.write_text(wanted, encoding="utf-8")
    sys.exit(0)
same = text == wanted and "<!-- options -->" in text
print("1..1\n" + ("ok" if same else "not ok") + " 1 - README's option table is options.def's")
if not same:
    print(f"# run {sys.argv[0]} {sys.argv[1]} {sys.argv[2]} --write")
sys.exit(0 if same else 1)

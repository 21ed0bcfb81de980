#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts passed, failed and skipped subtests in meson's JUnit logs.

Usage: count_junit.py LOG...   prints "N passed, N failed, N skipped"; exit 1 if one failed or none ran.
"""
import sys
import xml.etree.ElementTree as tree

passed = failed = skipped = 0
for path in sys.argv[1:]:
    for suite in tree.parse(path).getroot().iter("testsuite"):
        for case in suite.iter("testcase"):
            kinds = {child.tag for child in case}
            if kinds & {"failure", "error"}:
                failed += 1
            elif "skipped" in kinds:
                skipped += 1
            else:
                passed += 1
        # A program that crashed or was killed has no case to show for it.
        if int(suite.get("errors", 0)) and not any(
                {c.tag for c in case} & {"failure", "error"} for case in suite.iter("testcase")):
            failed += 1
print(f"{passed} passed, {failed} failed, {skipped} skipped")
sys.exit(0 if failed == 0 and passed > 0 else 1)

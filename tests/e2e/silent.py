#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Case 16 and law 7: in a process that never calls CUDA the library is not there.

Prints TAP. Usage: silent.py LIBEPOCHSHIM EMPTY_LIBRARY
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import tap
from tap import check, skip

shim, empty = (os.path.abspath(p) for p in sys.argv[1:3])


def run(command, preload, **more):
    env = dict(os.environ, LD_PRELOAD=preload, **more.pop("env", {}))
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, **more)


def calls(command, preload, as_name):
    """The system calls of a run, without addresses and the preload's own name."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "trace")
        subprocess.run(["strace", "-f", "-o", out, "-E", "LD_PRELOAD=" + preload] + command,
                       capture_output=True, timeout=60, check=True)
        with open(out, encoding="utf-8") as f:
            lines = [re.sub(r"^\d+ +", "", line) for line in f]
    names = [line.split("(")[0] for line in lines if "(" in line]
    opened = [m.group(1).replace(preload, as_name) for line in lines
              if (m := re.match(r'openat\([^"]*"([^"]*)"', line)) and "ENOENT" not in line]
    return names, opened


for command in (["/bin/true"], [sys.executable, "-c", "1"], ["sh", "-c", "for i in $(seq 300); do /bin/true; done"]):
    done = run(command, shim)
    check(f"{os.path.basename(command[0])} is silent",
          done.returncode == 0 and not done.stdout and not done.stderr, done.stdout + done.stderr)

if shutil.which("strace"):
    for command in (["/bin/true"], [sys.executable, "-c", "1"]):
        ours, our_files = calls(command, shim, "PRELOAD")
        bare, bare_files = calls(command, empty, "PRELOAD")
        what = os.path.basename(command[0])
        check(f"{what}: no thread", ours.count("clone3") + ours.count("clone")
              == bare.count("clone3") + bare.count("clone"))
        check(f"{what}: opens the same files", sorted(our_files) == sorted(bare_files),
              f"{sorted(set(our_files) ^ set(bare_files))}")
        # Mapping one library costs the loader an mmap a segment and an mprotect; nothing more.
        extra = {name: ours.count(name) - bare.count(name) for name in set(ours) | set(bare)}
        extra = {k: v for k, v in extra.items() if v > 0 and k not in ("mmap", "mprotect", "brk")}
        check(f"{what}: no more system calls than mapping a library takes",
              what.startswith("python") or not extra, str(extra))
else:
    print("# strace is not installed: the traces are not compared")

limited = run(["sh", "-c", "ulimit -n 5; exec /bin/true"], shim)
check("five file descriptors are enough", limited.returncode == 0 and not limited.stderr,
      limited.stderr)

jemalloc = next((p for p in ("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2",
                             "/usr/lib/aarch64-linux-gnu/libjemalloc.so.2") if os.path.exists(p)), None)
for order in ("{j}:{s}", "{s}:{j}"):
    name = "with jemalloc, " + order.format(j="jemalloc", s="shim")
    if jemalloc:
        done = run([sys.executable, "-c", "print(len([0] * 100000))"], order.format(j=jemalloc, s=shim))
        check(name, done.returncode == 0 and done.stdout == "100000\n" and not done.stderr, done.stderr)
    else:
        skip(name, "libjemalloc2 is not installed")

# A program under AddressSanitizer: clang links its runtime in, gcc's must be preloaded first.
with tempfile.TemporaryDirectory() as folder:
    for compiler in ("clang", "gcc"):
        name = f"under {compiler}'s AddressSanitizer"
        program = os.path.join(folder, compiler)
        source = "#include <stdio.h>\n#include <dlfcn.h>\nint main(void) { return puts(dlsym(RTLD_DEFAULT, \"puts\") ? \"ok\" : \"no\") < 0; }\n"
        built = shutil.which(compiler) and subprocess.run(
            [compiler, "-fsanitize=address", "-x", "c", "-", "-o", program, "-ldl"], input=source, text=True,
            capture_output=True).returncode == 0
        if not built:
            skip(name, f"{compiler} cannot build it")
            continue
        runtime = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True).stdout.strip()
        done = run([program], f"{runtime}:{shim}" if compiler == "gcc" else shim)
        check(name, done.returncode == 0 and done.stdout == "ok\n" and not done.stderr, done.stderr)

tap.finish()

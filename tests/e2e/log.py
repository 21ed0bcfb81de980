#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The log and the options, as a user meets them: what is counted, what is printed, and where. Prints TAP.

Usage: log.py LIBEPOCHSHIM DOORS LIBRARY_PATH EPOCHS   (the programs of doors.c and epochs.c)
"""
import os
import re
import sys
import tempfile

import tap
from tap import check

shim, doors, library_path, epochs = map(os.path.abspath, sys.argv[1:5])
ALL = {"EPOCHSHIM_MIN_BYTES": "1", "EPOCHSHIM_WARMUP": "0"}  # stage every copy


def run(*args, preload=True, **env):
    """(exit status, stdout, stderr) of doors with these EPOCHSHIM_... options."""
    whole = {key if key.isupper() and "_" in key else "EPOCHSHIM_" + key.upper(): value for key, value in env.items()}
    if preload:
        whole["LD_PRELOAD"] = os.pathsep.join(filter(None, [os.environ.get("LD_PRELOAD"), shim]))
    return tap.run(doors, *args, LD_LIBRARY_PATH=library_path, **whole)


def seen(log, what):
    m = re.search(what + r": (\d+)", log)
    return int(m.group(1)) if m else 0


def counts(log):
    return [tuple(map(int, m)) for m in re.findall(r"^copies: seen (\d+), staged (\d+), native (\d+)$", log, re.M)]


for door in ("direct", "dlsym", "resolve", "per-thread"):
    status, out, log = run(door, "5", "7", **ALL)
    check(f"{door}: each call is counted once",
          status == 0 and out == "done\n" and counts(log) == [(5, 5, 0)] and
          seen(log, "kernel launches") == seen(log, "event records") == seen(log, "stream waits") == 7, log)

log = run("direct", "5", "1", "unknown", **ALL)[2]
check("a function that no header knows is named, and each of its calls counted",
      log.count("cuSimUnheardOf") == 1 and seen(log, "calls of unknown functions") == 6 and
      "no copy left its place" in log and counts(log) == [(5, 5, 0)], log)
check("without such a call nothing is said of it", "nknown" not in run("direct", "5", "1", **ALL)[2])
log = run("direct", "5", "1", "unknown-thread", **ALL)[2]
check("in another thread it may have been work: copies are not split",
      counts(log) == [(5, 0, 5)] and "another thread" in log, log)

def handoffs(log):
    """{what they waited for: (how many, operations not waited for)}"""
    return {text: (int(n), int(left or 0)) for n, text, left in re.findall(
        r"^(?:host|streams) +(\d+) +\S+ \S+  (\S.*)\n(?: +and not for up to (\d+) operations)?", log, re.M)}


EVENT, TOUCHED = "the event behind its last write", "all queued work: some of it may touch it"
for kernels in ("args", "opaque"):
    status, out, log = tap.run(epochs, LD_LIBRARY_PATH=library_path, SIMGPU_SCHED="lazy", EPOCHSHIM_KERNELS=kernels,
                               EPOCHSHIM_LOG="full", LD_PRELOAD=shim, **ALL)
    waited = handoffs(log)
    check(f"{kernels}: the log says what handoffs waited for",
          status == 0 and "nothing: no unfinished work could touch it" in waited and
          (waited[EVENT][0] > 1 and waited[EVENT][1] >= 50 and waited["an event, of this or of an earlier use"][0] > 1
           if kernels == "args" else EVENT not in waited and waited[TOUCHED][0] > 1 and "KERNELS=args" in log), log)
    check(f"{kernels}: the full log names streams and epochs",
          re.search(r"^  stream \d+@\d+ -> host, 78.1 KiB: " + EVENT + ", not up to 50 operations$", log, re.M)
          if kernels == "args" else
          re.search(r"^  host -> legacy stream@\d+, 78.1 KiB: " + TOUCHED + "$", log, re.M), log)
off = tap.run(epochs, LD_LIBRARY_PATH=library_path, SIMGPU_SCHED="lazy", EPOCHSHIM_SIDE="0", LD_PRELOAD=shim, **ALL)[2]
check("with SIDE=0 every copy waits, and the log says why", set(handoffs(off)) ==
      {"nothing: no kernel was queued", "all queued work: EPOCHSHIM_DEFER, _SIDE or _LIMIT says so"}, off)

native = run("direct", "2", "2", preload=False)
check("without the library nothing is printed", native == (0, "done\n", ""), native)
for mode in ("off", "observe", "rewrite"):
    check(f"mode {mode}: same output and status", run("direct", "2", "2", mode=mode)[:2] == native[:2])
check("off prints no log", run("direct", "2", "2", mode="off")[2] == "")
check("log=off prints no log", run("direct", "2", "2", log="off")[2] == "")
log = run("direct", "3", "1", mode="observe")[2]
check("observe rewrites nothing, counts and times", counts(log) == [(3, 0, 3)] and "GB/s" in log, log)
check("a log without staging says so", "Nothing was staged" in log, log)
log = run("direct", "3", "1")[2]
check("small copies are native, with the reason", "native is as fast at this size" in log, log)
log = run("direct", "0", "3")[2]
check("launches alone are worth a log", counts(log) == [(0, 0, 0)] and seen(log, "kernel launches") == 3, log)
check("nothing used, nothing printed", run("direct", "0", "0")[2] == "")

log = run("direct", "7", "1", EPOCHSHIM_MIN_BYTES="1", warmup="3M")[2]
check("warmup: native until so many bytes could have been staged",
      counts(log) == [(7, 5, 2)] and "too few bytes so far" in log, log)
log = run("direct", "5", "1", **ALL, limit="2")[2]
check("limit: only the first so many", counts(log) == [(5, 2, 3)] and "EPOCHSHIM_LIMIT is reached" in log, log)
log = run("direct", "5", "1", **ALL, verify="1")[2]
check("verify compares each staged copy", "verify: 5 staged copies the same, 0 DIFFERENT" in log, log)
log = run("direct", "5", "1", **ALL, CUDA_LAUNCH_BLOCKING="1")[2]
check("CUDA_LAUNCH_BLOCKING: native", "CUDA_LAUNCH_BLOCKING is set" in log and counts(log) == [(5, 0, 5)], log)
log = run("direct", "5", "1", **ALL, SIMGPU_FAIL="cuMemHostRegister_v2:1+")[2]
check("case 7: refused pinning is native, and told once with its size",
      counts(log) == [(5, 0, 5)] and log.count("refused to pin more") == 1, log)
log = run("direct", "5", "1", **ALL, SIMGPU_FAIL="cuEventCreate:2+")[2]
check("a failing event is native", counts(log) == [(5, 0, 5)], log)
# The shim's own calls, each failing once or for good: the program's own call is made for what is left.
for function in ("cuMemcpyHtoDAsync_v2", "cuEventRecord", "cuEventSynchronize", "cuEventQuery", "cuCtxGetId",
                 "cuStreamIsCapturing", "cuPointerGetAttributes", "cuCtxGetFlags", "cuThreadExchangeStreamCaptureMode"):
    for when in ("1", "2", "3", "2+"):
        status, out, log = run("direct", "5", "0", **ALL, THREADS="2", SIMGPU_FAIL=f"{function}:{when}:700")
        check(f"{function} failing ({when}) is not the program's matter",
              status == 0 and out == "done\n" and len(counts(log)) == 1 and counts(log)[0][0] == 5, out + log)
status, out, log = run("direct", "5", "1", **ALL, SIMGPU_FAIL="cuMemcpyHtoDAsync_v2:2+:700,cuMemcpyHtoD_v2:1+:700")
check("the driver's error is the program's", status == 3 and out == "copy gives 700\n", out + log)

log = run("direct", "1", "1", mode="quick")[2]
line = log.splitlines()[0]
check("a bad value is one line with what is accepted",
      all(w in line for w in ("EPOCHSHIM_MODE", "quick", "off, observe, rewrite")) and
      log.count("epochshim: ") == 1, log)
log = run("direct", "1", "1", treads="4")[2]
check("an unknown name is one line with the nearest", "EPOCHSHIM_THREADS" in log.splitlines()[0], log)
log = run("direct", "1", "1", help="1")[2]
check("help prints the table", all("EPOCHSHIM_" + n in log for n in ("MODE", "POOL", "LOG_FILE")), log)
log = run("direct", "1", "1", pool="8M", threads="3")[2]
check("the settings that were changed are named", re.search(r"^settings: POOL=8M THREADS=3$", log, re.M), log)
log = run("direct", "1", "1", OMPI_COMM_WORLD_RANK="3")[2]
check("the header has the rank", re.search(r"^--- epochshim [\d.]+, pid \d+, rank 3, ", log), log)
log = run("direct", "1", "1", **ALL, log="full")[2]
check("no line is wider than 80 columns",
      max(map(len, (l for l in log.splitlines() if doors not in l))) <= 80, log)
check("the call site is named, though the program exports no symbol",
      re.search(r"cuMemcpyHtoD_v2, main\+0x\w+ \(e2e-doors\)", log.split("call sites,")[1].splitlines()[1]), log)

with tempfile.TemporaryDirectory() as folder:
    status, out, err = run("direct", "1", "1", log_file=folder + "/%e.%p.log")
    files = os.listdir(folder)
    check("log_file: %e and %p", len(files) == 1 and re.fullmatch(r"e2e-doors\.\d+\.log", files[0]) and err == "",
          str(files) + err)
    shared = folder + "/shared"
    for _ in range(2):
        run("direct", "1", "1", log_file=shared)
    with open(shared, encoding="utf-8") as f:
        check("log_file: two processes, two logs", len(counts(f.read())) == 2)
    log = run("direct", "1", "1", log_file=folder + "/no/such/folder")[2]
    check("log_file: cannot be opened: one line, and the log on stderr",
          log.startswith("epochshim: EPOCHSHIM_LOG_FILE: cannot open") and counts(log) == [(1, 0, 1)], log)

tap.finish()

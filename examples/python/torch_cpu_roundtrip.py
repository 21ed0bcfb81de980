#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""torch_cpu_roundtrip.py [MIB [ROUNDS]]: x.cuda(), compute, y.cpu(), in ordinary memory.

Needs the package torch, built for CUDA, and an NVIDIA GPU; exits with 77 where one is missing.
"""
import sys
import time


def skip(why):
    print(f"torch_cpu_roundtrip.py: skipped: {why}", file=sys.stderr)
    sys.exit(77)


try:
    import torch
except ImportError as e:
    skip(f"{e} (pip install torch)")
if not torch.cuda.is_available():
    skip("no usable GPU: torch.cuda.is_available() is False")


def seconds(call):
    start = time.perf_counter()
    result = call()
    return result, time.perf_counter() - start


def main():
    mib = int(sys.argv[1]) if len(sys.argv) > 1 else 256
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 4
    x = (torch.arange(mib << 18, dtype=torch.int64) % 65536).to(torch.int32)
    (x[:1024].cuda() * 2).cpu()  # the first use loads what it needs: not what we measure
    torch.cuda.synchronize()

    to_device, to_host = [], []
    y = x
    for _ in range(rounds):
        d, s = seconds(y.cuda)
        to_device.append(s)
        d = d * 3 + 1
        torch.cuda.synchronize()
        y, s = seconds(d.cpu)
        to_host.append(s)

    print(f"torch_cpu_roundtrip: {mib} MiB, best of {rounds}")
    for what, best in (("x.cuda()", min(to_device)), ("y.cpu(), a fresh tensor", min(to_host))):
        print(f"  {what:<33} {best * 1e3:8.1f} ms {(mib << 20) / best / 1e9:5.1f} GB/s")
    weights = torch.arange(y.numel(), dtype=torch.int64) * 2 + 1
    print(f"checksum 0x{int((y.to(torch.int64) * weights).sum()) & (2**64 - 1):016x}")

    expected = x.clone()
    for _ in range(rounds):
        expected = expected * 3 + 1  # wraps as on the device
    if not torch.equal(y, expected):
        sys.exit("wrong result: the tensor that came back")


main()

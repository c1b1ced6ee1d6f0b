#!/usr/bin/python3
"""Products with the affinity matrix; baseline: the numpy functions of tests/golden/make_golden.py in the same run.

usage: compare_affinity.py BUILD_FOLDER

Three comparisons, s = 6, d = 128: tiled with numpy at 20,000 rows; factored with tiled at 100,000; factored at 1,000,000
with 100,000. Ratios are printed in clock and in processor seconds, which depend less on other work. numpy takes about 7 GB.
"""
import json
import os
import platform
import resource
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
ROWS, DIM = 20_000, 128


def numpy_product():
    """Runs in a separate process, because it prints its peak memory."""
    import numpy as np
    import make_golden as reference
    rng = np.random.default_rng(1)
    x = rng.normal(size=(ROWS, DIM))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    v = rng.normal(size=(ROWS, 2))
    start, processor_start = time.perf_counter(), time.process_time()
    w = reference.gaussian_affinity(x, 6)
    w @ v, w.sum(0)
    print(json.dumps({"seconds": time.perf_counter() - start, "processor_seconds": time.process_time() - processor_start,
                      "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


def run(*command):
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def verdict(met):
    return "met" if met else "MISSED"


def ratios(base, ours):
    return base["seconds"] / ours["seconds"], base["processor_seconds"] / ours["processor_seconds"]


def main():
    if sys.argv[1] == "--numpy":
        return numpy_product()
    program = os.path.join(sys.argv[1], "tests/benchmarks/affinity_benchmark")
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; s 6, d {DIM}, k 2 and degrees")

    numpy_run = run(sys.executable, os.path.abspath(__file__), "--numpy")
    tiled = run(program, "tiled", str(ROWS), str(DIM), "3", "200")
    clock, processor = ratios(numpy_run, tiled)
    share = tiled["megabytes"] / numpy_run["megabytes"]
    print(f"n {ROWS}: numpy {numpy_run['seconds']:.2f} s, tiled {tiled['seconds']:.2f} s: {clock:.1f} times, in processor seconds "
          f"{processor:.1f} times; target 4: {verdict(min(clock, processor) >= 4)}")
    print(f"n {ROWS}: numpy {numpy_run['megabytes']:.0f} MB, tiled {tiled['megabytes']:.0f} MB: {share:.4f} of it; target 0.1: {verdict(share <= .1)}")

    factored = run(program, "factored", "100000", str(DIM), "5", "2000")
    tiled = run(program, "tiled", "100000", str(DIM), "1", "0")
    large = run(program, "factored", "1000000", str(DIM), "3", "0")
    clock, processor = ratios(tiled, factored)
    print(f"n 100000: tiled {tiled['seconds']:.2f} s, factored {factored['seconds']:.3f} s: {clock:.0f} times, in processor seconds "
          f"{processor:.0f} times; target 100: {verdict(min(clock, processor) >= 100)}")
    print(f"n 100000: largest relative error on 2,000 rows {factored['error']:.2g}; target 1e-06: {verdict(factored['error'] <= 1e-6)}")
    clock, processor = ratios(large, factored)
    print(f"n 1000000: factored {large['seconds']:.2f} s: {clock:.1f} times 100,000 rows, in processor seconds {processor:.1f} times; "
          f"target 11: {verdict(max(clock, processor) <= 11)}")


if __name__ == "__main__":
    main()

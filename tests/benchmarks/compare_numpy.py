#!/usr/bin/python3
"""Products with the affinity matrix and client releases; baseline: the numpy functions of tests/golden/make_golden.py.

usage: compare_numpy.py BUILD_FOLDER

Products, s = 6, d = 128: tiled with numpy at 20,000 rows; factored with tiled at 100,000; factored at 1,000,000 with
100,000. Ratios are printed in clock and in processor seconds, which depend less on other work. numpy takes about 7 GB.
Releases: the baseline runs squared_distances, gaussian_affinity and smlq_step, 1 + 5 times over 1,100 x 128 rows and
then the embedding. It draws no noise and charges no ledger.
"""
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
import make_golden as reference

ROWS, DIM = 20_000, 128


def unit_rows(rng, count):
    x = rng.normal(size=(count, DIM))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def numpy_product():
    """Runs in a separate process, because it prints its peak memory."""
    rng = np.random.default_rng(1)
    x, v = unit_rows(rng, ROWS), rng.normal(size=(ROWS, 2))
    start, processor_start = time.perf_counter(), time.process_time()
    w = reference.gaussian_affinity(x, 6)
    w @ v, w.sum(0)
    print(json.dumps({"seconds": time.perf_counter() - start, "processor_seconds": time.process_time() - processor_start,
                      "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


def numpy_milliseconds():
    """Of a release."""
    rng = np.random.default_rng(1)
    x = unit_rows(rng, 1100)
    labels = list(range(100)) + [i % 100 for i in range(1000)]
    l_y = reference.label_laplacian(labels, 6, "distance")
    times = []
    for _ in range(7):
        start = time.perf_counter()
        z = reference.smlq_step(1e-8 * rng.normal(size=(1100, 2)), reference.laplacian(reference.gaussian_affinity(x, 6)), l_y, .6)
        for _ in range(5):
            z = reference.smlq_step(z, reference.laplacian(reference.gaussian_affinity(z, 6)), l_y, .6)
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def run(*command):
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def target(value, met):
    return f"target {value}: {'met' if met else 'MISSED'}"


def ratios(base, ours):
    return base["seconds"] / ours["seconds"], base["processor_seconds"] / ours["processor_seconds"]


def compare_products(program):
    print("affinity, s 6, k 2 and degrees")
    numpy_run = run(sys.executable, os.path.abspath(__file__), "--numpy")
    tiled = run(program, "tiled", str(ROWS), str(DIM), "3", "200")
    clock, processor = ratios(numpy_run, tiled)
    share = tiled["megabytes"] / numpy_run["megabytes"]
    print(f"n {ROWS}: numpy {numpy_run['seconds']:.2f} s, tiled {tiled['seconds']:.2f} s: {clock:.1f} times, in processor seconds "
          f"{processor:.1f} times; {target(4, min(clock, processor) >= 4)}")
    print(f"n {ROWS}: numpy {numpy_run['megabytes']:.0f} MB, tiled {tiled['megabytes']:.0f} MB: {share:.4f} of it; {target(.1, share <= .1)}")

    factored = run(program, "factored", "100000", str(DIM), "5", "2000")
    tiled = run(program, "tiled", "100000", str(DIM), "1", "0")
    large = run(program, "factored", "1000000", str(DIM), "3", "0")
    clock, processor = ratios(tiled, factored)
    print(f"n 100000: tiled {tiled['seconds']:.2f} s, factored {factored['seconds']:.3f} s: {clock:.0f} times, in processor seconds "
          f"{processor:.0f} times; {target(100, min(clock, processor) >= 100)}")
    print(f"n 100000: largest relative error on 2,000 rows {factored['error']:.2g}; {target(1e-6, factored['error'] <= 1e-6)}")
    clock, processor = ratios(large, factored)
    print(f"n 1000000: factored {large['seconds']:.2f} s: {clock:.1f} times 100,000 rows, in processor seconds {processor:.1f} times; "
          f"{target(11, max(clock, processor) <= 11)}")


def compare_releases(program):
    """A release without a charge, a charged one, and one in a batch of 100."""
    runs = []
    for _ in range(3):
        baseline = numpy_milliseconds()
        runs.append([baseline, *(row["real_time"] for row in run(program, "--benchmark_format=json")["benchmarks"])])
    print("release, 100 classes, 1,000 anchors, k 2, T 5")
    baseline, *ours = map(statistics.median, zip(*runs))
    print(f"numpy {baseline:.1f} ms")
    for what, ms, least in zip(("with exact noise", "with a durable charge, which waits for the disk", "in a batch of 100"),
                               ours, (15, 15, 20)):
        print(f"{what} {ms:.1f} ms: {baseline / ms:.1f} times, {target(least, baseline >= least * ms)}")


def main():
    if sys.argv[1] == "--numpy":
        return numpy_product()
    programs = os.path.join(sys.argv[1], "tests/benchmarks")
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; d {DIM}")
    compare_products(os.path.join(programs, "affinity_benchmark"))
    compare_releases(os.path.join(programs, "release_benchmark"))


if __name__ == "__main__":
    main()

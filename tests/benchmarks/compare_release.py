#!/usr/bin/python3
"""A client release; baseline: the numpy functions of tests/golden/make_golden.py in the same run.

usage: compare_release.py BUILD_FOLDER

The baseline runs squared_distances, gaussian_affinity and smlq_step, 1 + 5 times over 1,100 x 128 rows and then the
embedding. It draws no noise and charges no ledger; the release does both.
"""
import json
import os
import platform
import statistics
import subprocess
import sys
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
import make_golden as reference


def numpy_milliseconds():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(1100, 128))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
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


def release_milliseconds(build):
    """Milliseconds of a whole release, of one in a batch of 100, and of each step by name."""
    done = subprocess.run([os.path.join(build, "tests/benchmarks/release_benchmark"), "--benchmark_format=json"],
                          stdout=subprocess.PIPE, check=True)
    rows = json.loads(done.stdout)["benchmarks"]
    single, batch = (next(r["real_time"] for r in rows if r["name"].startswith(f"Release/{how}")) for how in ("single", "batch"))
    steps = next(r for r in rows if r["name"] == "Steps")
    return single, batch, {name: steps[name] for name in ("start_bound", "charge", "kernel", "iteration", "noise", "post_processing")}


def times(baseline, ours, target=15):
    return f"{baseline / ours:.1f} times, target {target}: {'met' if baseline >= target * ours else 'MISSED'}"


def main():
    runs = [(numpy_milliseconds(), *release_milliseconds(sys.argv[1])) for _ in range(3)]
    baseline, ours, batch = (statistics.median(run[i] for run in runs) for i in range(3))
    steps = {name: statistics.median(run[3][name] for run in runs) for name in runs[0][3]}
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores; 100 classes, 1,000 anchors, d 128, k 2, T 5")
    computed = sum(ms for name, ms in steps.items() if name != "charge")
    print(f"numpy {baseline:.1f} ms, release with exact noise and durable charge {ours:.1f} ms: {times(baseline, ours)}")
    print(f"in a batch of 100 {batch:.1f} ms: {times(baseline, batch, 20)}")
    print("its steps, one by one: " + ", ".join(f"{name.replace('_', ' ')} {ms:.2f}" for name, ms in steps.items())
          + f" ms; all but the charge, which waits for the disk, {computed:.2f} ms: {times(baseline, computed)}")


if __name__ == "__main__":
    main()

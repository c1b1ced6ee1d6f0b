#!/usr/bin/python3
"""A client release; baseline: the numpy functions of tests/golden/make_golden.py in the same run.

usage: compare_release.py BUILD_FOLDER

The baseline runs squared_distances, gaussian_affinity and smlq_step, 1 + 5 times over 1,100 x 128 rows and then the
embedding. It draws no noise and charges no ledger.
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
    """Milliseconds of a release without a charge, of a charged one, and of one in a batch of 100."""
    done = subprocess.run([os.path.join(build, "tests/benchmarks/release_benchmark"), "--benchmark_format=json"],
                          stdout=subprocess.PIPE, check=True)
    return [row["real_time"] for row in json.loads(done.stdout)["benchmarks"]]


def times(baseline, ours, target=15):
    return f"{baseline / ours:.1f} times, target {target}: {'met' if baseline >= target * ours else 'MISSED'}"


def main():
    runs = [(numpy_milliseconds(), *release_milliseconds(sys.argv[1])) for _ in range(3)]
    baseline, uncharged, charged, batch = map(statistics.median, zip(*runs))
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores; 100 classes, 1,000 anchors, d 128, k 2, T 5")
    print(f"numpy {baseline:.1f} ms, release with exact noise {uncharged:.1f} ms: {times(baseline, uncharged)}")
    print(f"with a durable charge, which waits for the disk, {charged:.1f} ms: {times(baseline, charged)}")
    print(f"in a batch of 100 {batch:.1f} ms: {times(baseline, batch, 20)}")


if __name__ == "__main__":
    main()

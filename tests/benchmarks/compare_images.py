#!/usr/bin/python3
"""Features of image files on all cores; baseline: a plain loop of cv2.imread and cv2.dnn in the same run.

usage: compare_images.py BUILD_FOLDER [ROUNDS]

Needs python3-opencv. Each round (9 by default) describes 480 photographs of deploy/demo, of 128 x 128 pixels, and later
24 of them enlarged to 3,000 x 3,000: by the loop with one thread of OpenCV, by the loop with OpenCV's default threads,
and by `pm.Extractor`, in turn; features must be equal to the last bit. Prints medians, and the median of the rounds'
ratios.
"""
import os
import pathlib
import statistics
import sys
import tempfile
import time

import cv2
import numpy as np

sys.path.insert(0, os.path.join(sys.argv[1], "client/python"))
import privatemail as pm  # pylint: disable=wrong-import-position

DEMO = pathlib.Path(__file__).resolve().parents[2] / "deploy/demo"
MODEL = str(DEMO / "mobilenet_v2_imagenet_128px_features.onnx")
DEFAULT_THREADS = cv2.getNumThreads()


def loop(paths, threads):
    cv2.setNumThreads(threads)
    network = cv2.dnn.readNetFromONNX(MODEL)
    rows = []
    for path in paths:
        network.setInput(cv2.dnn.blobFromImage(cv2.imread(path), 1, (128, 128), swapRB=True))
        rows.append(network.forward().reshape(-1))
    return np.array(rows)


def compare(rounds):
    ways = {"loop, one thread": lambda paths: loop(paths, 1),
            "loop, default threads": lambda paths: loop(paths, DEFAULT_THREADS),
            "privatemail": pm.Extractor(MODEL)}
    clock, processor = {way: [] for way in ways}, {way: [] for way in ways}
    for paths in rounds:
        features = []
        for way, describe in ways.items():
            start, processor_start = time.perf_counter(), time.process_time()
            features.append(describe(paths))
            clock[way].append((time.perf_counter() - start) / len(paths))
            processor[way].append((time.process_time() - processor_start) / len(paths))
        assert all(np.array_equal(features[0], one) for one in features), "features differ"
    for way in ways:
        ratio = statistics.median(np.divide(clock[way], clock["privatemail"]))
        print(f"  {way}: {1000 * statistics.median(clock[way]):.2f} ms a picture, "
              f"{1000 * statistics.median(processor[way]):.2f} of a processor; privatemail is {ratio:.2f} times as "
              f"fast")


def main():
    photos = sorted(map(str, DEMO.glob("photos/*/*/*.jpg")))
    rounds = range(int(sys.argv[2]) if len(sys.argv) > 2 else 9)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {480 * len(rounds)} photographs")
    compare([photos[one % 3::3] for one in rounds])
    with tempfile.TemporaryDirectory() as folder:
        large = [os.path.join(folder, f"{one}.jpg") for one in range(24)]
        for path, photo in zip(large, photos[::60]):
            cv2.imwrite(path, cv2.resize(cv2.imread(photo), (3000, 3000), interpolation=cv2.INTER_CUBIC))
        print(f"{24 * len(rounds)} photographs of 9 million pixels, {os.path.getsize(large[0]) / 1e6:.1f} MB")
        compare([large for _ in rounds])


if __name__ == "__main__":
    main()

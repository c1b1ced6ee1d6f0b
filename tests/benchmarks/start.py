#!/usr/bin/python3
"""How long a start takes until searches and queries for cells are answered; baseline: an earlier daemon, same data.

usage: start.py BUILD_FOLDER [ITEMS] [--before PRIVATEMAILD]

ITEMS (default 1,000,000) rows of 128 dimensions, 100 classes, 1,000 anchors, two partitions, code scalar8, SQLite.
PRIVATEMAILD makes the data and is started; then the daemon of BUILD_FOLDER takes the data over and is started. Times
are seconds from the start of the process to the end of the first `privatemail resend` that succeeds.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile
import time

import numpy as np

STARTS = 3
CLASSES, ANCHORS, DIM, INTRINSIC = 100, 1000, 128, 24


class Daemon:
    def __init__(self, program, data):
        self.begun = time.perf_counter()
        self.process = subprocess.Popen([program, "--data-dir", data, "--listen", "127.0.0.1:0", "--insecure"],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.address = next(line.split()[-1] for line in self.process.stdout if line.startswith("listening on "))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=300)


def main():
    parser = argparse.ArgumentParser(usage="start.py BUILD_FOLDER [ITEMS] [--before PRIVATEMAILD]")
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("items", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--before")
    options = parser.parse_args()
    ours = options.build / "server/privatemaild"
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)

        def call(daemon, scheme, *command):
            return subprocess.run([options.build / "client/privatemail", "--server", daemon.address, "--insecure", "--json",
                                   "--state", folder / scheme, *map(str, command)], capture_output=True, text=True)

        def run(daemon, scheme, *command):
            done = call(daemon, scheme, *command)
            assert done.returncode == 0, done.stdout + done.stderr
            return json.loads(done.stdout.splitlines()[-1])

        def wait_for_cells(daemon):
            while not run(daemon, "joint", "collection", "info", "things")["cells_ready"]:
                time.sleep(.2)

        def make(daemon):
            rng = np.random.default_rng(1)
            axes = rng.normal(size=(INTRINSIC, DIM))
            centres = 2 * rng.normal(size=(CLASSES, INTRINSIC))
            for name, count in (("anchors", ANCHORS), ("items", options.items)):
                labels = rng.permutation(np.arange(count) % CLASSES)
                rows = (centres[labels] + rng.normal(size=(count, INTRINSIC))) @ axes
                np.save(folder / f"{name}.npy", rows.astype(np.float32))
                np.save(folder / f"{name}-labels.npy", labels.astype(np.int32))
            run(daemon, "joint", "collection", "create", "things", "--anchors", folder / "anchors.npy",
                "--anchor-labels", folder / "anchors-labels.npy", "--cells", "20,50")
            run(daemon, "joint", "ingest", "things", "--vectors", folder / "items.npy",
                "--labels", folder / "items-labels.npy")
            run(daemon, "joint", "build", "things")
            begun = time.perf_counter()
            wait_for_cells(daemon)
            print(f"{options.items} x {DIM}: cells made in {time.perf_counter() - begun:.1f} s after the build")
            query = ("query", "things", "--vectors", folder / "anchors.npy", "--row", 3)
            for scheme, more in (("joint", ("--label", 3, "-k", 8)),
                                 ("cells", ("--scheme", "cells", "--items", 800))):
                run(daemon, scheme, "budget", "set", "things", "--epsilon", 100, "--delta", .01)
                cost = ("--epsilon", 5, *(("--delta", 1e-5) if scheme == "joint" else ()))
                run(daemon, scheme, *query, *more, *cost)

        def measure(what, program):
            for _ in range(STARTS):
                with Daemon(program, folder / "data") as daemon:
                    seconds = []
                    for scheme in ("joint", "cells"):
                        target = ("--label", 3) if scheme == "joint" else ("--vectors", folder / "anchors.npy", "--row", 3)
                        while (done := call(daemon, scheme, "resend", *target)).returncode != 0:
                            assert "UNAVAILABLE" in done.stderr, done.stderr
                        seconds.append(time.perf_counter() - daemon.begun)
                    print(f"{what}: a search after {seconds[0]:.2f} s, a query for cells after {seconds[1]:.2f} s")

        file = folder / "data/privatemail.sqlite"
        with Daemon(options.before or ours, folder / "data") as daemon:
            make(daemon)
        if options.before:
            measure("before", options.before)
            size = file.stat().st_size
            with Daemon(ours, folder / "data") as daemon:  # makes and stores them once
                wait_for_cells(daemon)
            print(f"bytes of the file: {size} before, {file.stat().st_size} with cells")
        measure("after", ours)


main()

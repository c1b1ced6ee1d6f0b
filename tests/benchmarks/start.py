#!/usr/bin/python3
"""How long a start takes until searches and queries for cells are answered; baseline: making the cells.

usage: start.py BUILD_FOLDER [ITEMS] [--before PRIVATEMAILD]

ITEMS (default 1,000,000) rows of 128 dimensions, 100 classes, 1,000 anchors, two partitions, code scalar8, SQLite.
PRIVATEMAILD, an earlier daemon, makes the data and is started; then the daemon of BUILD_FOLDER takes the data over and
is started. Times are seconds from the start of the process to the end of the first `privatemail resend` that succeeds
(k 8).
"""
import argparse
import pathlib
import tempfile
import time

from daemons import ANCHORS, CREATE, DIM, Client, Daemon, Things

STARTS = 3


def main():
    parser = argparse.ArgumentParser(usage="start.py BUILD_FOLDER [ITEMS] [--before PRIVATEMAILD]")
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("items", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--before")
    options = parser.parse_args()
    ours = options.build / "server/privatemaild"
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)

        def user(daemon, scheme):
            return Client(options.build, daemon, folder / scheme)

        def make(daemon):
            things = Things()
            for name, count in (("anchors", ANCHORS), ("items", options.items)):
                things.save(folder / name, count)
            admin = user(daemon, "joint")
            admin.run("collection", "create", "things", "--anchors", folder / "anchors.npy",
                      "--anchor-labels", folder / "anchors-labels.npy", *CREATE)
            admin.run("ingest", "things", "--vectors", folder / "items.npy", "--labels", folder / "items-labels.npy")
            admin.run("build", "things")
            begun = time.perf_counter()
            admin.wait_for_cells("things")
            making = time.perf_counter() - begun
            print(f"{options.items} x {DIM}: cells made in {making:.1f} s after the build")
            query = ("query", "things", "--vectors", folder / "anchors.npy", "--row", 3)
            for scheme, more in (("joint", ("--label", 3, "-k", 8)),
                                 ("cells", ("--scheme", "cells", "--items", 800))):
                user(daemon, scheme).run("budget", "set", "things", "--epsilon", 100, "--delta", .01)
                cost = ("--epsilon", 5, *(("--delta", 1e-5) if scheme == "joint" else ()))
                user(daemon, scheme).run(*query, *more, *cost)
            return making

        def measure(what, program, making):
            for _ in range(STARTS):
                with Daemon(program, folder / "data") as daemon:
                    seconds = []
                    for scheme in ("joint", "cells"):
                        cells = ("--vectors", folder / "anchors.npy", "--row", 3)
                        target = ("--label", 3) if scheme == "joint" else cells
                        while (done := user(daemon, scheme).call("resend", *target)).returncode != 0:
                            assert "UNAVAILABLE" in done.stderr, done.stderr
                        seconds.append(time.perf_counter() - daemon.begun)
                    print(f"{what}: a search after {seconds[0]:.2f} s, a query for cells after {seconds[1]:.2f} s, "
                          f"{seconds[1] / making:.3f} of making them")

        file = folder / "data/privatemail.sqlite"
        with Daemon(options.before or ours, folder / "data") as daemon:
            making = make(daemon)
        if options.before:
            measure("before", options.before, making)
            size = file.stat().st_size
            with Daemon(ours, folder / "data") as daemon:  # makes and stores them once
                user(daemon, "joint").wait_for_cells("things")
            print(f"bytes of the file: {size} before, {file.stat().st_size} with cells")
        measure("after", ours, making)


main()

"""Reads data, state and requests that an earlier version recorded, and compares the answers.

usage: recorded_test.py PRIVATEMAIL PRIVATEMAILD RECORDED_FOLDER
"""

import json
import math
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

PRIVATEMAIL, PRIVATEMAILD, RECORDED = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])


class Daemon:
    def __init__(self, folder):
        self.process = subprocess.Popen(
            [PRIVATEMAILD, "--data-dir", folder, "--listen", "127.0.0.1:0", "--insecure"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.address = None
        for line in self.process.stdout:
            if line.startswith("listening on "):
                self.address = line.split()[-1]
                break
        assert self.address, "the daemon ended before it listened"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=60)

    def run(self, state, *command):
        done = subprocess.run(
            [PRIVATEMAIL, "--server", self.address, "--insecure", "--json", "--state", state, *command],
            capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith(("{", "["))]


def differences(expected, actual, path="$"):
    """Keys may be added, none may go and no value may change. Numbers agree to 1e-6 relative."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        found = [f"{path}.{key} is missing" for key in expected if key not in actual]
        for key in expected.keys() & actual.keys():
            found += differences(expected[key], actual[key], f"{path}.{key}")
        return found
    if isinstance(expected, list) and isinstance(actual, list):
        if len(expected) != len(actual):
            return [f"{path} has {len(actual)} entries, expected {len(expected)}"]
        return [d for i, (e, a) in enumerate(zip(expected, actual)) for d in differences(e, a, f"{path}[{i}]")]
    if isinstance(expected, float) and isinstance(actual, (int, float)):
        same = math.isclose(expected, actual, rel_tol=1e-6)
    else:
        same = expected == actual
    return [] if same else [f"{path} is {actual!r}, expected {expected!r}"]


def expected(name):
    lines = (RECORDED / "expected" / f"{name}.json").read_text().splitlines()
    return [json.loads(line) for line in lines if line]


def check(name, actual, ignore=()):
    wanted = expected(name)
    for line in wanted:
        for key in ignore:
            line.pop(key, None)
    assert wanted, f"nothing was recorded for {name}"
    found = differences(wanted, actual)
    assert not found, f"{name}:\n  " + "\n  ".join(found)
    print(f"{name}: as recorded")


def wait_for_cells(daemon, state, name):
    for _ in range(600):
        info = daemon.run(state, "collection", "info", name)[0]
        if info["cells_ready"] or not info["cells"]:
            return
        time.sleep(0.1)
    raise AssertionError(f"cells of {name} are not ready after a minute: {info['cells_state']}")


def main():
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        shutil.copytree(RECORDED, folder / "recorded")
        copy = folder / "recorded"
        for path in copy.rglob("*"):  # what git does not keep
            path.chmod(0o700 if path.is_dir() else 0o600)
        with Daemon(copy / "data") as daemon:
            for name in ("trees", "leaves"):
                # cells are prepared in the background after a start, the other values at once
                check(f"{name}.info", daemon.run(copy / "state_joint", "collection", "info", name),
                      ignore=("cells_state", "cells_status", "cells_ready"))
                wait_for_cells(daemon, copy / "state_joint", name)
            check("trees.items", daemon.run(copy / "state_joint", "items", "list", "trees", "--limit", "100"))
            queries = str(copy / "queries.npy")
            for scheme, collection in (("joint", "trees"), ("cells", "leaves")):
                state = copy / f"state_{scheme}"
                target = (["--label", "2"] if collection == "trees" else ["--vectors", queries, "--row", "2"])
                # answers may have fields that are new
                check(f"{scheme}.resend", daemon.run(state, "resend", *target), ignore=("query", "timings", "bytes"))
                check(f"{scheme}.explain", daemon.run(state, "explain"))
                check(f"{scheme}.history", daemon.run(state, "budget", "history", collection))
            check("encrypted.explain", daemon.run(copy / "state_encrypted", "explain"))
            found = daemon.run(copy / "state_encrypted", "query", "books", "--vectors", queries, "--row", "2",
                               "--scheme", "encrypted", "-k", "3")
            check("encrypted.matches", found)
        with Daemon(folder / "restored") as daemon:
            daemon.run(folder / "state", "restore", "leaves", "--in", str(copy / "leaves.snapshot"))
            restored = daemon.run(folder / "state", "collection", "info", "leaves")
            # a restored collection is not built
            check("leaves.info", restored, ignore=("cells_state", "cells_status", "cells_ready", "embedded", "version", "index",
                                                   "changes", "changes_since_embedding"))
    print("recorded data, state, requests and snapshot are read: digests and answers are equal")


main()

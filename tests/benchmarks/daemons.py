"""Daemons, clients and galleries of the benchmarks that start programs."""
import json
import os
import pathlib
import pwd
import resource
import shutil
import signal
import socket
import subprocess
import time

import numpy as np

CLASSES, ANCHORS, DIM, INTRINSIC = 100, 1000, 128, 24
CREATE = ("--cells", "20,50")


class Things:
    """Rows around one centre a class in a subspace, the same in every run."""

    def __init__(self):
        self.rng = np.random.default_rng(1)
        self.axes = self.rng.normal(size=(INTRINSIC, DIM))
        self.centres = 2 * self.rng.normal(size=(CLASSES, INTRINSIC))

    def rows(self, count):
        """The next rows and their labels."""
        labels = self.rng.permutation(np.arange(count) % CLASSES)
        rows = (self.centres[labels] + self.rng.normal(size=(count, INTRINSIC))) @ self.axes
        return rows.astype(np.float32), labels.astype(np.int32)

    def save(self, stem, count, block=100_000):
        """The next rows as STEM.npy and STEM-labels.npy, written in blocks."""
        features = np.lib.format.open_memmap(f"{stem}.npy", mode="w+", dtype=np.float32, shape=(count, DIM))
        labels = np.empty(count, np.int32)
        for first in range(0, count, block):
            last = min(count, first + block)
            features[first:last], labels[first:last] = self.rows(last - first)
        features.flush()
        np.save(f"{stem}-labels.npy", labels)


class Daemon:
    """privatemaild on a folder, on a free loopback port."""

    def __init__(self, program, data, *flags, log=subprocess.DEVNULL):
        self.begun = time.perf_counter()
        self.process = subprocess.Popen([program, "--data-dir", data, "--listen", "127.0.0.1:0", "--insecure", *flags],
                                        stdout=subprocess.PIPE, stderr=log, text=True)
        self.address = next(line.split()[-1] for line in self.process.stdout if line.startswith("listening on "))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=600)


class Client:
    """The command line of one user of a daemon."""

    def __init__(self, build, daemon, state):
        self.command = [pathlib.Path(build) / "client/privatemail", "--server", daemon.address, "--insecure", "--json",
                        "--deadline", "600", "--state", state]

    def call(self, *command):
        return subprocess.run([*self.command, *map(str, command)], capture_output=True, text=True)

    def run(self, *command):
        done = self.call(*command)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    def wait_for_cells(self, name, state="ready"):
        """state: how the description of its cells begins."""
        begun = time.perf_counter()
        while not (info := self.run("collection", "info", name))["cells_state"].startswith(state):
            assert info["cells_state"] in ("", "being made") or info["cells_ready"], info["cells_state"]
            pause(begun)


class Postgres:
    """The packaged server on a new cluster in `folder`, stopped by its end as tests/testing/postgres_server.h does."""

    def __init__(self, folder):
        programs = max(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(mode=0o755)
        user = None
        if os.geteuid() == 0:  # as which PostgreSQL does not run
            user = next(name for name in ("postgres", "nobody") if name in {one.pw_name for one in pwd.getpwall()})
            shutil.chown(self.folder, user, pwd.getpwnam(user).pw_gid)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        run = {"user": user, "group": user and pwd.getpwnam(user).pw_gid, "extra_groups": user and [], "cwd": "/",
               "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.data = self.folder / "data"
        subprocess.run([programs / "initdb", "--no-sync", "--encoding=UTF8", "--locale=C", "--auth=trust",
                        "--username=tester", "-D", self.data], check=True, **run)
        self.process = subprocess.Popen([programs / "postgres", "-D", self.data, "-c", "listen_addresses=127.0.0.1",
                                         "-c", f"port={port}", "-c", f"unix_socket_directories={self.folder}",
                                         "-c", "max_wal_size=4GB"], **run)
        self.conninfo = f"host=127.0.0.1 port={port} user=tester dbname=postgres"
        while subprocess.run([programs / "pg_isready", "-q", "-d", self.conninfo]).returncode != 0:
            assert self.process.poll() is None, "PostgreSQL has ended"
            time.sleep(.1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=600)
        shutil.rmtree(self.folder)


def pause(begun):
    """Between polls: short against the wait so far, long against the processor time of a poll."""
    time.sleep(min(2, .1 + .05 * (time.perf_counter() - begun)))


def processor_seconds(process, with_children=False):
    """User and system time of a process, and of its children if wanted, until now."""
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    seconds = sum(int(field) for field in fields[11:15 if with_children else 13]) / os.sysconf("SC_CLK_TCK")
    if not with_children:
        return seconds
    children = pathlib.Path(f"/proc/{process}/task/{process}/children").read_text().split()
    for child in children:
        try:
            seconds += processor_seconds(child)
        except FileNotFoundError:  # it has just ended
            pass
    return seconds


def client_seconds():
    """Of the processes that have been waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def memory(process, field):
    """Bytes of VmHWM, VmRSS, ... of a process."""
    for line in pathlib.Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise ValueError(field)


def reset_peak(process):
    pathlib.Path(f"/proc/{process}/clear_refs").write_text("5")


def disk_bytes(folder):
    total = 0
    for parent, _, files in os.walk(folder):
        for name in files:
            try:
                total += os.lstat(os.path.join(parent, name)).st_blocks * 512
            except FileNotFoundError:
                pass
    return total

#!/usr/bin/python3
"""What a collection of many items takes, step by step, and by how much more than one of fewer items.

usage: scale.py BUILD_FOLDER --rows N [N ...] --folder FOLDER --json OUT [--postgres]

Rows of 128 dimensions, 100 classes, 1,000 anchors, two partitions, code scalar8, published quality, in SQLite (with
--postgres in a PostgreSQL server of its own), ingested from files of a million rows. A build may take 4 GB. Each
step: seconds, processor seconds of daemon and clients, the daemon's peak memory, bytes on disk. The ratio is that of
the last to the first size; "!" marks more than 1.1 times the ratio of rows, and memory above what docs/limits.md
states. OUT gets every step as soon as it is measured.
FOLDER needs about 4 kB of space a row, and loses what scale.py wrote there.
"""
import argparse
import json
import math
import os
import pathlib
import pwd
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time

import grpc
import numpy as np

CLASSES, ANCHORS, DIM, INTRINSIC = 100, 1000, 128, 24
BUILD_MEMORY = 4_000_000_000
PART_ROWS = 1_000_000  # of a file
DELETED_SHARE = 10  # every 10th item
CALLERS, CALL_SECONDS = 4, 15
FIDELITY_EPSILON = 8
# A server measures up to 16,384 returned items, which are this share of the largest gallery.
FIDELITY_ITEMS = 1 / 610
MAX_GROWTH = 1.1  # of the ratio of rows: 11 times for ten times the rows
RETRIEVAL = "/privatemail.v1.RetrievalService/"

# docs/limits.md, in bytes.
CODE, COLUMNS, PARTITIONS, CORES = DIM + 4, 2, 2, 2
TEXTS = 2 * 32 + 4  # id, payload and label of a row
EMBEDDED = 17 * COLUMNS + 12
WHILE_TREE = 16 * COLUMNS + 20
BUILD_ROW = 8 * (COLUMNS + 1) * (4 + CORES) + 24
FEATURES = 4 * DIM
ROOM = 128 << 20  # of the process, its connections and free memory that its allocator keeps


def known_queries(rows):
    return min(rows, max(int(2e12 / (rows * DIM)), rows // 64, 1000))


def pair_bytes(rows, of_pair):
    return PARTITIONS * 64 * known_queries(rows) * of_pair


def build_bytes(rows):
    in_memory = rows * (BUILD_ROW + FEATURES) <= BUILD_MEMORY
    return rows * (BUILD_ROW + TEXTS + EMBEDDED + WHILE_TREE + (FEATURES if in_memory else 0))


def kept_cells(rows):
    return rows * (CODE + 16 * PARTITIONS + TEXTS) + pair_bytes(rows, 16)


def stored_cells(rows):
    return rows * (CODE + 12 + 8 * PARTITIONS + 8) + pair_bytes(rows, 8)


def cells_bytes(rows):
    """Features that do not fit into the memory of a build are in a file. After the preparation the stored form is made."""
    queries = known_queries(rows)
    lists = max(1, min(max(math.isqrt(rows), rows // 2048), queries // 32))
    compared = min(rows, max(64 * lists, 64 * rows // lists, 65_536))
    prepare = kept_cells(rows) + 16 * rows + 576 * queries + FEATURES * compared
    in_memory = prepare + FEATURES * rows + 2 * TEXTS * rows <= BUILD_MEMORY
    return max(prepare + (FEATURES * rows if in_memory else 0), kept_cells(rows) + stored_cells(rows))


def quality_bytes(rows):
    return 88 * rows + min(rows, 313_000) * (CODE + 8 * DIM + 269) + 5000 * (4 * DIM + 512) + 2_000_000


def start_bytes(rows):
    return rows * (TEXTS + EMBEDDED + WHILE_TREE) + kept_cells(rows) + stored_cells(rows)


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
    """The packaged server on a new cluster in `folder`, as tests/testing/postgres_server.h starts one."""

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

    def stop(self):
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


class Recorder:
    """Measures steps and writes each to the file at once."""

    def __init__(self, path, runs):
        self.path, self.runs = path, runs
        self.steps, self.daemon, self.postgres, self.data = None, None, None, None

    def begin(self, store, rows, data):
        self.steps = self.runs.setdefault(store, {}).setdefault(str(rows), {})
        self.data = data

    def write(self):
        self.path.write_text(json.dumps(self.runs, indent=1) + "\n")

    def add(self, step, **figures):
        self.steps.setdefault(step, {}).update(figures)
        self.write()
        print(step, figures, flush=True)

    def measure(self, step, work, stated=None):
        """Runs work() while self.daemon runs. stated: bytes that it may take in addition."""
        process = self.daemon.process.pid
        reset_peak(process)
        resident = memory(process, "VmRSS")
        before = processor_seconds(process), client_seconds(), self.postgres_seconds()
        begun = time.perf_counter()
        figures = work() or {}
        self.finish(step, begun, before, None if stated is None else resident + stated + ROOM, figures)

    def finish(self, step, begun, before, stated, figures):
        process = self.daemon.process.pid
        seconds = time.perf_counter() - begun
        daemon, client, postgres = processor_seconds(process), client_seconds(), self.postgres_seconds()
        entry = {"seconds": seconds, "daemon": daemon - before[0], "client": client - before[1]}
        if self.postgres:
            entry["postgres"] = postgres - before[2]
        self.add(step, **entry, peak=memory(process, "VmHWM"), stated=stated, disk=self.disk(), **figures)

    def postgres_seconds(self):
        return processor_seconds(self.postgres.process.pid, with_children=True) if self.postgres else 0

    def disk(self):
        return disk_bytes(self.data) + (disk_bytes(self.postgres.data) if self.postgres else 0)


class Searcher:
    """Calls without the command line, whose start takes longer than most answers."""

    def __init__(self, messages, address):
        self.messages, self.address = messages, address
        self.collection = messages.GetCollectionResponse.FromString(
            self.call(self.channel(), "GetCollection",
                      messages.GetCollectionRequest(collection="things")))

    def channel(self):
        return grpc.insecure_channel(self.address, [("grpc.max_receive_message_length", -1),
                                                    ("grpc.use_local_subchannel_pool", 1)])

    @staticmethod
    def call(channel, method, request):
        return channel.unary_unary(RETRIEVAL + method)(request.SerializeToString(), timeout=600)

    def search(self, anchors, rng):
        """A release whose slots lie near anchors at random. anchors: their coordinates."""
        rows = np.vstack([anchors[rng.integers(len(anchors), size=CLASSES)], anchors])
        rows += .01 * rng.standard_normal(rows.shape)
        request = self.messages.RetrieveRequest(collection="things", fingerprint=self.collection.fingerprint, k=8)
        request.release.rows, request.release.cols = rows.shape
        request.release.values.extend(rows.ravel().tolist())
        return request

    def anchors(self):
        request = self.search(np.random.default_rng(1).standard_normal((ANCHORS, COLUMNS)), np.random.default_rng(2))
        request.with_alignment = True
        answer = self.messages.RetrieveResponse.FromString(self.call(self.channel(), "Retrieve", request))
        return np.array(answer.alignment.server_anchors.values).reshape(ANCHORS, COLUMNS)

    def searches(self):
        anchors, rng = self.anchors(), np.random.default_rng(3)
        return [self.search(anchors, rng).SerializeToString() for _ in range(64)]

    def cell_requests(self, items):
        return [self.messages.RetrieveCellsRequest(collection="things", fingerprint=self.collection.fingerprint,
                                                   partition=1, cells=[cell], epsilon=FIDELITY_EPSILON,
                                                   items=items).SerializeToString() for cell in range(50)]

    def load(self, requests, stream=False):
        """Calls of several callers in turn. Returns their p50 in seconds and calls a second."""
        method = RETRIEVAL + ("RetrieveCells" if stream else "Retrieve")
        took, errors, until = [], [], time.perf_counter() + CALL_SECONDS

        def repeat(number):
            channel = self.channel()
            call = channel.unary_stream(method) if stream else channel.unary_unary(method)
            try:
                while (begun := time.perf_counter()) < until:
                    answer = call(requests[number % len(requests)], timeout=600)
                    if stream:
                        for _ in answer:
                            pass
                    took.append(time.perf_counter() - begun)
                    number += CALLERS
            except grpc.RpcError as error:
                errors.append(error)

        threads = [threading.Thread(target=repeat, args=(number,)) for number in range(CALLERS)]
        begun = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors, errors
        return {"p50": statistics.median(took), "rate": len(took) / (time.perf_counter() - begun), "calls": len(took)}


def message_module(folder):
    """The messages of proto/, by protoc."""
    protos = pathlib.Path(__file__).resolve().parents[2] / "proto"
    folder.mkdir()
    files = sorted(str(file) for file in protos.glob("privatemail/v1/*.proto"))
    subprocess.run(["protoc", "-I", protos, "--python_out", folder, *files], check=True)
    sys.path.insert(0, str(folder))
    from privatemail.v1 import retrieval_pb2  # pylint: disable=import-outside-toplevel,import-error
    return retrieval_pb2


class Scale:
    """All steps of one size in one store."""

    def __init__(self, build, folder, rows, recorder, messages, postgres):
        self.build, self.folder, self.rows, self.recorder, self.messages = build, folder, rows, recorder, messages
        self.postgres = postgres
        self.config = folder / "daemon.toml"
        self.log = open(folder / "daemon.log", "w", encoding="utf-8")
        self.write_config(0)

    def write_config(self, build_share):
        self.config.write_text(f"memory = {4 * BUILD_MEMORY}\nmax_items = {self.rows + 1_000_000}\n"
                               f"auto_build_share = {build_share}\n")

    def flags(self, postgres):
        flags = ["--config", self.config]
        if postgres:
            file = self.folder / "conninfo"
            file.write_text(postgres.conninfo)
            file.chmod(0o600)
            flags += ["--postgres-file", file]
        return flags

    def start(self, data="data", postgres=None):
        daemon = Daemon(self.build / "server/privatemaild", self.folder / data, *self.flags(postgres or self.postgres),
                        log=self.log)
        self.recorder.daemon = daemon
        return daemon

    def client(self, daemon):
        return Client(self.build, daemon, self.folder / "state")

    def run(self):
        with self.start() as daemon:
            self.fill(daemon)
            self.serve(daemon)
        with self.start() as daemon:
            self.first_answers(daemon)
            self.delete(daemon)
            self.snapshot(daemon)
        self.restore()
        with self.start() as daemon:
            self.rebuild(daemon)

    def fill(self, daemon):
        things, client = Things(), self.client(daemon)
        things.save(self.folder / "anchors", ANCHORS)
        client.run("collection", "create", "things", "--anchors", self.folder / "anchors.npy", "--anchor-labels",
                   self.folder / "anchors-labels.npy", "--cells", "20,50", "--publish-quality")
        making = 0

        def ingest():
            nonlocal making
            stem = self.folder / "part"
            for first in range(0, self.rows, PART_ROWS):
                begun = time.perf_counter()
                count = min(PART_ROWS, self.rows - first)
                things.save(stem, count)
                stem.with_suffix(".txt").write_text("".join(f"{first + row}\n" for row in range(count)))
                making += time.perf_counter() - begun
                client.run("ingest", "things", "--vectors", f"{stem}.npy", "--labels", f"{stem}-labels.npy", "--ids",
                           f"{stem}.txt")
            for file in self.folder.glob("part*"):
                file.unlink()

        self.recorder.measure("ingest", ingest)
        self.recorder.add("ingest", seconds=self.recorder.steps["ingest"]["seconds"] - making)
        self.recorder.measure("build", lambda: client.run("build", "things") and None, build_bytes(self.rows))
        self.recorder.measure("cells", lambda: client.wait_for_cells("things"), cells_bytes(self.rows))

        def measured():
            begun = time.perf_counter()
            while client.call("plan", "things").returncode != 0:
                pause(begun)

        self.recorder.measure("quality", measured, quality_bytes(self.rows) + stored_cells(self.rows))
        items = max(8, round(self.rows * FIDELITY_ITEMS))
        plan = client.run("plan", "things", "--epsilon", FIDELITY_EPSILON, "--max-bytes", items * (CODE + 24))
        self.recorder.add("quality", fidelity=plan["fidelity"], items=plan["items"])

    def serve(self, daemon):
        searcher = Searcher(self.messages, daemon.address)
        self.recorder.measure("joint search", lambda: searcher.load(searcher.searches()))
        cells = searcher.cell_requests(max(8, round(self.rows * FIDELITY_ITEMS)))

        def first():
            call = searcher.channel().unary_stream(RETRIEVAL + "RetrieveCells")
            for request in cells:
                for _ in call(request, timeout=600):
                    pass

        self.recorder.measure("cells, new lists", first)
        self.recorder.measure("cells, known lists", lambda: searcher.load(cells, stream=True))

    def first_answers(self, daemon):
        recorder, before = self.recorder, (0, client_seconds(), self.recorder.postgres_seconds())
        searcher = Searcher(self.messages, daemon.address)
        searcher.anchors()
        recorder.finish("start: search", daemon.begun, before, start_bytes(self.rows) + ROOM, {})
        call = searcher.channel().unary_stream(RETRIEVAL + "RetrieveCells")
        while True:
            try:
                for _ in call(searcher.cell_requests(800)[0], timeout=600):
                    pass
                break
            except grpc.RpcError as error:
                assert error.code() == grpc.StatusCode.UNAVAILABLE, error
                time.sleep(.05)
        recorder.finish("start: cells", daemon.begun, before, start_bytes(self.rows) + ROOM, {})

    def delete(self, daemon):
        ids = self.folder / "deleted.txt"
        ids.write_text("".join(f"{row}\n" for row in range(0, self.rows, DELETED_SHARE)))
        command = ("items", "delete", "things", "--ids-file", ids)
        self.recorder.measure("delete 10 %", lambda: self.client(daemon).run(*command) and None)

    def snapshot(self, daemon):
        file = self.folder / "snapshot"

        def save():
            done = self.client(daemon).run("snapshot", "things", "--out", file)
            return {"bytes": done["bytes"]}

        self.recorder.measure("snapshot", save, 0)

    def restore(self):
        """Into a new data directory, or a new database server."""
        file, data = self.folder / "snapshot", self.folder / "restored"
        other = Postgres(self.folder / "other") if self.postgres else None
        try:
            with self.start("restored", other) as daemon:
                command = ("restore", "things", "--in", file, "--no-build")
                self.recorder.measure("restore", lambda: self.client(daemon).run(*command) and None, 0)
                stored = disk_bytes(data) + (disk_bytes(other.data) if other else 0)
                self.recorder.add("restore", disk=stored)
        finally:
            if other:
                other.stop()
        file.unlink()
        shutil.rmtree(data)

    def rebuild(self, daemon):
        client = self.client(daemon)
        client.wait_for_cells("things")
        stem, left = self.folder / "more", self.rows - len(range(0, self.rows, DELETED_SHARE))
        Things().save(stem, 1000)
        client.run("ingest", "things", "--vectors", f"{stem}.npy", "--labels", f"{stem}-labels.npy", "--id-prefix",
                   "more-")
        version = client.run("collection", "info", "things")["version"]

        def build():
            self.write_config(.05)
            daemon.process.send_signal(signal.SIGHUP)
            begun = time.perf_counter()
            while client.run("collection", "info", "things")["version"] == version:
                pause(begun)

        self.recorder.measure("rebuild", build, build_bytes(self.rows))
        self.recorder.measure("rebuild: cells", lambda: client.wait_for_cells("things", f"ready: {left + 1000} "),
                              cells_bytes(self.rows))
        self.write_config(0)

def describe(figures):
    """Seconds, processor seconds, memory and disk of a step, and what else it has."""
    processor = " + ".join(f"{figures[key]:.3g}" for key in ("daemon", "client", "postgres") if key in figures)
    above = " !" if figures.get("stated") and figures["peak"] > figures["stated"] else ""
    stated = f" of {figures['stated'] / 1e6:,.0f}" if figures.get("stated") else ""
    text = [f"{figures['seconds']:.3g} s", processor, f"{figures['peak'] / 1e6:,.0f}{stated} MB{above}",
            f"{figures['disk'] / 1e9:.2f} GB"]
    if "p50" in figures:
        text[0] = f"p50 {1000 * figures['p50']:.3g} ms, {figures['rate']:,.0f}/s"
        text[1] = f"{1000 * figures['daemon'] / figures['calls']:.3g} ms a call"
    if "fidelity" in figures:
        text.append(f"fidelity@8 {figures['fidelity']['value']:.3f} of {figures['items']:,} items")
    if "bytes" in figures:
        text.append(f"file {figures['bytes'] / 1e9:.2f} GB")
    return "; ".join(text)


def ratio(first, last, most):
    """Of processor time, and of what a user waits for; calls are compared one by one. "!": above `most`."""
    def a_call(figures):
        return figures["daemon"] / figures.get("calls", 1)
    wait = "p50" if "p50" in first else "seconds"
    values = [a_call(last) / a_call(first) if first["daemon"] else 0, last[wait] / first[wait]]
    return ", ".join(f"{value:.1f}{' !' if value > most else ''}" for value in values)


def print_table(by_rows, sizes, store):
    """Markdown: seconds; processor seconds of daemon, clients (and PostgreSQL); peak memory of what is stated; disk."""
    known = [by_rows[str(size)] for size in sizes]
    several = len(sizes) > 1
    rows = [[store, *(f"{size:,}" for size in sizes), *(["ratio: processor, wait"] if several else [])]]
    rows.append(["---"] * len(rows[0]))
    for step in (step for step in known[0] if all(step in of for of in known)):
        compared = [ratio(known[0][step], known[-1][step], MAX_GROWTH * sizes[-1] / sizes[0])] if several else []
        rows.append([step, *(describe(of[step]) for of in known), *compared])
    print("", *("| " + " | ".join(row) + " |" for row in rows), sep="\n")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--rows", type=int, nargs="+", required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--json", type=pathlib.Path, required=True)
    parser.add_argument("--postgres", action="store_true")
    options = parser.parse_args()
    runs = json.loads(options.json.read_text()) if options.json.exists() else {}
    recorder = Recorder(options.json, runs)
    store = "postgres" if options.postgres else "sqlite"
    work = options.folder.resolve() / "scale"
    work.mkdir(parents=True)
    try:
        messages = message_module(work / "messages")
        for rows in options.rows:
            runs.setdefault(store, {}).pop(str(rows), None)
            folder = work / str(rows)
            folder.mkdir()
            recorder.begin(store, rows, folder / "data")
            recorder.postgres = Postgres(folder / "postgres") if options.postgres else None
            try:
                Scale(options.build.resolve(), folder, rows, recorder, messages, recorder.postgres).run()
            finally:
                if recorder.postgres:
                    recorder.postgres.stop()
            shutil.rmtree(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print_table(runs[store], options.rows, store)


if __name__ == "__main__":
    main()

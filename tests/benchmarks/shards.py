#!/usr/bin/python3
"""What a collection costs and finds in shards behind a front, and what in one daemon, on one PostgreSQL of its own.

usage: shards.py BUILD_FOLDER --rows N --shards N --folder FOLDER
       shards.py BUILD_FOLDER --data DATA_FOLDER --shards N --folder FOLDER [--splits N]

--rows: rows of 128 dimensions, offered to encrypted and joint searches. Prints for both ways: processor seconds from
the start until the first search, of an encrypted search (mean of QUERIES, after the row table has been fetched), a
build and a joint search, what of the joint search is the front's own, the resident memory of the largest process and
the precision@8 of joint searches; then the ratios. Encrypted searches take turns between the two ways. Ids of all
encrypted answers are compared: those of ties may differ. FOLDER needs about 3 kB of space a row.
--data: recall@8 and precision@8 of joint searches, with a label and without, and fidelity@8 of cells, a tenth of the
items at epsilon 8, for TARGETS targets of each split of tests/evaluation/joint_recall.py; means, and of the
differences the standard error.
"""
import argparse
import pathlib
import shutil
import sys

import numpy as np

import scale

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "evaluation"))
import encrypted_recall  # pylint: disable=wrong-import-position
import joint_recall  # pylint: disable=wrong-import-position

QUERIES, K = 10, 20
JOINT_CALLS = 400
TARGETS = 200  # of a split


class Cluster:
    """A PostgreSQL, and daemons on it that end with it."""

    def __init__(self, build, folder):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        folder.chmod(0o755)
        self.build, self.folder, self.daemons = build, folder, []
        self.postgres = scale.Postgres(folder / "postgres")
        conninfo = folder / "conninfo"
        conninfo.write_text(self.postgres.conninfo + "\n")
        conninfo.chmod(0o600)
        self.flags = ["--postgres-file", conninfo, "--auto-build-share", "0", "--max-items", "1000000000"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for one in self.daemons:
            one.__exit__()
        self.postgres.stop()

    def start(self, name, *flags):
        self.daemons.append(scale.Daemon(self.build / "server/privatemaild", self.folder / name, *self.flags, *flags))
        return self.daemons[-1]

    def stop(self, daemon):
        self.daemons.remove(daemon)
        daemon.__exit__()

    def whole(self):
        return Way(self, [self.start("whole")])

    def divided(self, count):
        shards = [self.start(f"shard-{i}", "--shard", f"{i}/{count}") for i in range(1, count + 1)]
        return Way(self, [self.start("front", "--shards", ",".join(one.address for one in shards)), *shards])


class Way:
    """Daemons that answer together, the first to clients. As a service of tests/evaluation it has call() and save()."""

    def __init__(self, cluster, daemons):
        self.daemons, self.folder = daemons, cluster.folder
        self.client = scale.Client(cluster.build, daemons[0], cluster.folder / f"state-{daemons[0].process.pid}")
        self.run = self.client.run

    def used(self):
        return np.array([scale.processor_seconds(one.process.pid) for one in self.daemons])

    def memory(self):
        return max(scale.memory(one.process.pid, "VmRSS") for one in self.daemons)

    def wait_for(self, collection):
        """Until these daemons know a collection that others have created."""
        begun = scale.time.perf_counter()
        while self.client.call("collection", "info", collection).returncode != 0:
            scale.pause(begun)

    def call(self, *words):
        done = self.client.call(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        return [scale.json.loads(line) for line in done.stdout.splitlines()]

    def save(self, name, array):
        np.save(self.folder / f"{name}.npy", array)
        return self.folder / f"{name}.npy"


class Costs:
    """Figures of one way, which joint searches of a module of messages complete."""

    def __init__(self, way, folder):
        self.way, self.queries, self.figures, self.answers = way, folder / "queries.npy", {}, []
        begun = scale.time.perf_counter()
        while self.ask(0) is None:
            scale.pause(begun)
        self.figures["start"] = way.used().sum()
        self.figures["start seconds"] = scale.time.perf_counter() - min(one.begun for one in way.daemons)
        self.took, self.spent = [], []

    def ask(self, row):
        done = self.way.client.call("query", "things", "--scheme", "encrypted", "--vectors", self.queries, "--row", row,
                                    "-k", K)
        return scale.json.loads(done.stdout.splitlines()[-1])["matches"] if done.returncode == 0 else None

    def search(self, row):
        before, begun = self.way.used().sum(), scale.time.perf_counter()
        answer = self.ask(row)
        self.took.append(scale.time.perf_counter() - begun)
        self.spent.append(self.way.used().sum() - before)
        if len(self.answers) < QUERIES:
            self.answers.append(answer)

    def build(self):
        self.figures["search"] = np.mean(self.spent)
        self.figures["search seconds"] = np.median(self.took)
        self.figures["memory, MB"] = self.way.memory() / 1e6
        before, begun = self.way.used().sum(), scale.time.perf_counter()
        self.way.run("build", "things")
        self.figures["build"] = self.way.used().sum() - before
        self.figures["build seconds"] = scale.time.perf_counter() - begun
        self.figures["memory after, MB"] = self.way.memory() / 1e6

    def join(self, messages):
        self.way.run("budget", "set", "things", "--epsilon", 1000, "--delta", .5)
        found = []
        for row, label in enumerate(np.load(str(self.queries).replace(".npy", "-labels.npy"))):
            matches = self.way.run("query", "things", "--scheme", "joint", "--vectors", self.queries, "--row", row,
                                   "--label", label, "--epsilon", 1, "--delta", 1e-6, "-k", 8)["matches"]
            found.append(np.mean([one["label"] == label for one in matches]))
        self.figures["joint precision"] = np.mean(found)
        searcher = scale.Searcher(messages, self.way.daemons[0].address)
        requests, call = searcher.searches(), searcher.channel().unary_unary(scale.RETRIEVAL + "Retrieve")
        took, before = [], self.way.used()
        for i in range(JOINT_CALLS):
            begun = scale.time.perf_counter()
            call(requests[i % len(requests)], timeout=600)
            took.append(scale.time.perf_counter() - begun)
        spent = (self.way.used() - before) / JOINT_CALLS
        self.figures["joint, ms"] = 1e3 * spent.sum()
        self.figures["joint, first process, ms"] = 1e3 * spent[0]
        self.figures["joint, p50 ms"] = 1e3 * np.median(took)


def costs(cluster, rows, count):
    folder, things = cluster.folder, scale.Things()
    for stem, number in (("anchors", scale.ANCHORS), ("queries", QUERIES)):
        things.save(folder / stem, number)
    loader = cluster.start("loader")
    client = scale.Client(cluster.build, loader, folder / "state")
    client.run("collection", "create", "things", "--anchors", folder / "anchors.npy", "--anchor-labels",
               folder / "anchors-labels.npy", "--with-encrypted")
    for first in range(0, rows, scale.PART_ROWS):
        things.save(folder / "part", min(scale.PART_ROWS, rows - first))
        client.run("ingest", "things", "--vectors", folder / "part.npy", "--labels", folder / "part-labels.npy",
                   "--id-prefix", f"{first // scale.PART_ROWS}-")
    cluster.stop(loader)
    messages = scale.message_module(folder / "messages")
    both = [Costs(cluster.whole(), folder), Costs(cluster.divided(count), folder)]
    for i in range(2 * QUERIES):
        for one in both:
            one.search(i % QUERIES)
    for one in both:
        one.build()
        one.join(messages)
    whole, divided = (one.figures for one in both)
    same, ties = 0, []  # ties: how far the other ids are from the last one of both answers
    for one, other in zip(*(one.answers for one in both)):
        shared = {m["id"] for m in one} & {m["id"] for m in other}
        same += len(shared)
        last = max(one[-1]["similarity"], other[-1]["similarity"])
        ties += [abs(m["similarity"] - last) for m in one + other if m["id"] not in shared]
    print(f"{rows:,} x {scale.DIM}")
    for name, value in whole.items():
        print(f"{name:26} one daemon {value:12.3f}   {count} shards {divided[name]:12.3f}   "
              f"ratio {divided[name] / value:.2f}")
    print(f"same ids: {same} of {QUERIES * K}, others within {max(ties, default=0):.1e} of the last similarity")


def quality(cluster, data, splits, count):
    ways = [cluster.whole(), cluster.divided(count)]
    for name in ("cifar", "omniglot"):
        read, per_anchor, per_target = joint_recall.DATA[name]
        features, labels = read(None, str(data))
        found = {}  # measure: of each split, that of both ways
        for seed in range(splits):
            anchors, gallery, targets = parts = joint_recall.split(labels, per_anchor, per_target, 1, seed)
            collection = joint_recall.Collection(ways[0], f"{name}-{seed}", features, labels, parts, None, "--cells",
                                                 "20,50", "--cell-code", "float16")
            rows = list(range(min(TARGETS, len(targets))))
            expected = encrypted_recall.nearest(features[gallery], features[targets[rows]], "cosine")
            for way in ways:
                if way is not ways[0]:
                    way.wait_for(collection.name)
                    way.run("build", collection.name)
                    way.run("budget", "set", collection.name, "--epsilon", 1e6, "--delta", .5)
                way.client.wait_for_cells(collection.name)
                collection.service = way
                for more in (("--labels", collection.query_labels), ("--classes", "auto")):
                    hits, possible, _ = collection.ask(rows, .1, "--scheme", "joint", *more)
                    found.setdefault(f"joint {more[0]}, recall@8", []).append(hits.any(1).mean())
                    found.setdefault(f"joint {more[0]}, precision@8", []).append((hits.sum(1) / possible).mean())
                answers = way.call("query", collection.name, "--scheme", "cells", "--vectors", collection.queries,
                                   "--rows", ",".join(map(str, rows)), "--epsilon", 8, "--items", len(gallery) // 10,
                                   "-k", encrypted_recall.K, "--yes")
                ids = [[int(match["id"]) for match in answer["matches"]] for answer in answers]
                found.setdefault("cells, fidelity@8", []).append(encrypted_recall.fidelity(ids, expected))
            collection.delete()
        for what, values in found.items():
            one, other = np.array(values).reshape(splits, 2).T
            error = np.std(other - one) / np.sqrt(splits)
            print(f"{name:9} {what:28} one daemon {one.mean():.4f}   {count} shards {other.mean():.4f}   "
                  f"difference {(other - one).mean():+.4f} (standard error {error:.4f})", flush=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("build", type=pathlib.Path)
    arguments.add_argument("--rows", type=int)
    arguments.add_argument("--data", type=pathlib.Path)
    arguments.add_argument("--splits", type=int, default=20)
    arguments.add_argument("--shards", type=int, required=True)
    arguments.add_argument("--folder", type=pathlib.Path, required=True)
    options = arguments.parse_args()
    with Cluster(options.build.resolve(), options.folder.resolve() / "shards") as cluster:
        if options.rows:
            costs(cluster, options.rows, options.shards)
        if options.data:
            quality(cluster, options.data, options.splits, options.shards)


if __name__ == "__main__":
    main()

#!/usr/bin/python3
"""What searches at two operators find and send, through the real programs; baseline: cosine ranking in numpy.

usage: two_servers.py BUILD_FOLDER VECTORS.npy [LABELS.npy] | --rows N   [--anchors A] [--cells K] [--items L]
                      [--lists T [T ...]] [--queries Q] [--code CODE] [--no-scores]

Two daemons of two operators, one image, mirrored. Fidelity@8: share of the 8 nearest items that are found; "in the
lists": among the items of the fetched lists, before their codes rank them. --rows: N rows of 128 dimensions and
intrinsic dimension 24 instead of a file. Of a file the first A rows in random order are anchors, the last Q queries.
"""
import argparse
import json
import pathlib
import tempfile
import time

import numpy as np

from daemons import Client, Daemon, Things

K = 8


def load(options):
    """Anchors, items and queries, each with labels."""
    if options.rows:
        things = Things()
        return things.rows(options.anchors), things.rows(options.rows), things.rows(options.queries)
    rows = np.load(options.vectors)
    labels = np.load(options.labels).astype(np.int32)
    order = np.random.default_rng(0).permutation(len(rows))
    parts = order[:options.anchors], order[options.anchors:-options.queries], order[-options.queries:]
    return [(rows[part], labels[part]) for part in parts]


def nearest(items, queries):
    """Rows of the 8 nearest items by cosine."""
    def unit(rows):
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)
    scores = unit(queries.astype(np.float64)) @ unit(items.astype(np.float64)).T
    return scores, np.argsort(-scores, axis=1, kind="stable")[:, :K]


class Servers:
    """Two daemons of two operators."""

    def __init__(self, build, folder):
        self.daemons = [Daemon(build / "server/privatemaild", folder / name, "--operator", name, "--allow-scores")
                        for name in ("north", "south")]
        self.client = Client(build, self.daemons[0], folder / "state")
        self.second = ("--second-server", self.daemons[1].address)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for daemon in self.daemons:
            daemon.__exit__()

    def create(self, folder, parts, *flags):
        """Collection `things` of the first, with cells. parts: as load() returns them; all saved in the folder."""
        for name, (rows, labels) in zip(("anchors", "items", "queries"), parts):
            np.save(folder / f"{name}.npy", rows)
            np.save(folder / f"{name}-labels.npy", labels)
        self.client.run("collection", "create", "things", "--anchors", folder / "anchors.npy", "--anchor-labels",
                        folder / "anchors-labels.npy", *flags)
        self.client.run("ingest", "things", "--vectors", folder / "items.npy", "--labels", folder / "items-labels.npy")
        self.client.run("build", "things", "--accept-misalignment")
        self.client.wait_for_cells("things")

    def publish(self, *flags):
        """The image at both servers; returns what it is, and seconds to make and to copy it."""
        begun = time.perf_counter()
        image = self.client.run("image", "make", "things", *flags)
        made = time.perf_counter() - begun
        return image, made, self.client.run("mirror", "things", *self.second, "--pin", image["signer"])["seconds"]

    def query(self, folder, *flags):
        done = self.client.call("query", "things", "--vectors", folder / "queries.npy", "--rows", "all", "--scheme",
                                "two-server", *self.second, "-k", K, *flags)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]


def rows_found(answers):
    return [[int(match["id"]) for match in answer["matches"]] for answer in answers]


def fidelities(found, truth):
    """Of each query."""
    return [len(set(one) & set(true)) / K for one, true in zip(found, truth)]


def report(what, answers, truth, labels, query_labels, scores):
    found = rows_found(answers)
    fidelity = np.mean(fidelities(found, truth))
    recall = np.mean([label in labels[one] for one, label in zip(found, query_labels)])
    sent = answers[0]["bytes"]
    took = np.median([answer["timings"]["round_trip_ms"] for answer in answers])
    equal = np.mean([np.allclose(scores[i][one], scores[i][true], atol=1e-4, rtol=0)
                     for i, (one, true) in enumerate(zip(found, truth))])
    print(f"{what}: fidelity@{K} {fidelity:.4f}, recall@{K} of the class {recall:.3f}, {sent['up']:,} bytes up, "
          f"{sent['down']:,} down, median {took:.1f} ms; the ranking but for ties within 1e-4: {equal:.3f} of "
          f"{len(answers)} queries", flush=True)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n\n")[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("vectors", nargs="?")
    parser.add_argument("labels", nargs="?")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--anchors", type=int, default=1500)
    parser.add_argument("--cells", type=int, default=200)
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--lists", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--code", default="scalar8")
    parser.add_argument("--no-scores", action="store_true")
    options = parser.parse_args()
    parts = load(options)
    (anchors, _), (items, labels), (queries, query_labels) = parts
    scores, truth = nearest(items, queries)
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        with Servers(options.build, folder) as servers:
            servers.create(folder, parts, "--cells", options.cells, "--cell-code", options.code)
            image, made, copied = servers.publish("--list-items", options.items,
                                                  *([] if options.no_scores else ["--with-scores"]))
            group = image["partitions"][0]
            print(f"{len(items):,} x {items.shape[1]}, {len(anchors):,} anchors; {group['lists']} lists of "
                  f"{group['items']} items, {group['list_bytes']:,} bytes each; made in {made:.1f} s, copied in "
                  f"{copied:.1f} s", flush=True)
            if not options.no_scores:
                report("scores", servers.query(folder, "--mode", "scores"), truth, labels, query_labels, scores)
            for lists in options.lists:
                report(f"{lists} lists", servers.query(folder, "--mode", "lists", "--lists", lists), truth, labels,
                       query_labels, scores)


if __name__ == "__main__":
    main()

#!/usr/bin/python3
"""What a collection costs in shards behind a front, and what in one daemon, on one PostgreSQL of its own.

usage: shards.py BUILD_FOLDER --rows N --shards N --folder FOLDER

Rows of 128 dimensions, offered to encrypted and joint searches. Prints for both ways: processor seconds from the start
until the first search, those of a search (mean of QUERIES, after the row table has been fetched) and of a build, and the
resident memory of the largest process, and the precision@8 of joint searches; then the ratios. Ids of all encrypted
answers are compared: those of ties may differ.
FOLDER needs about 3 kB of space a row.
"""
import argparse
import pathlib
import shutil

import numpy as np

import scale

QUERIES, K = 10, 20


def used(daemons):
    return sum(scale.processor_seconds(one.process.pid) for one in daemons)


def measure(client, daemons, vectors):
    """daemons: which answer together, the one that `client` calls first. vectors: a file of targets."""
    def search(row):
        done = client.call("query", "things", "--scheme", "encrypted", "--vectors", vectors, "--row", row, "-k", K)
        return scale.json.loads(done.stdout.splitlines()[-1])["matches"] if done.returncode == 0 else None

    begun = scale.time.perf_counter()
    while search(0) is None:
        scale.pause(begun)
    figures = {"start": used(daemons), "start seconds": scale.time.perf_counter() - daemons[-1].begun}
    before, begun = used(daemons), scale.time.perf_counter()
    answers = [search(row) for row in range(QUERIES)]
    figures["search"] = (used(daemons) - before) / QUERIES
    figures["search seconds"] = (scale.time.perf_counter() - begun) / QUERIES
    figures["memory"] = max(scale.memory(one.process.pid, "VmRSS") for one in daemons)
    before, begun = used(daemons), scale.time.perf_counter()
    client.run("build", "things")
    figures["build"] = used(daemons) - before
    figures["build seconds"] = scale.time.perf_counter() - begun
    client.run("budget", "set", "things", "--epsilon", 1000, "--delta", .5)
    before, found = used(daemons), []
    for row, label in enumerate(np.load(str(vectors).replace(".npy", "-labels.npy"))):
        matches = client.run("query", "things", "--scheme", "joint", "--vectors", vectors, "--row", row, "--label", label,
                             "--epsilon", 1, "--delta", 1e-6, "-k", 8)["matches"]
        found.append(np.mean([one["label"] == label for one in matches]))
    figures["joint search"] = (used(daemons) - before) / len(found)
    figures["joint precision"] = np.mean(found)
    return figures, answers


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("build", type=pathlib.Path)
    arguments.add_argument("--rows", type=int, required=True)
    arguments.add_argument("--shards", type=int, required=True)
    arguments.add_argument("--folder", type=pathlib.Path, required=True)
    options = arguments.parse_args()
    folder = options.folder.resolve() / "shards"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    postgres = scale.Postgres(folder / "postgres")
    conninfo = folder / "conninfo"
    conninfo.write_text(postgres.conninfo + "\n")
    conninfo.chmod(0o600)
    program = options.build / "server/privatemaild"
    flags = ["--postgres-file", conninfo, "--auto-build-share", "0", "--max-items", "1000000000"]
    things = scale.Things()
    try:
        for stem, rows in (("anchors", scale.ANCHORS), ("queries", QUERIES)):
            things.save(folder / stem, rows)
        with scale.Daemon(program, folder / "loader", *flags) as daemon:
            client = scale.Client(options.build, daemon, folder / "state")
            client.run("collection", "create", "things", "--anchors", folder / "anchors.npy", "--anchor-labels",
                       folder / "anchors-labels.npy", "--with-encrypted")
            for first in range(0, options.rows, scale.PART_ROWS):
                things.save(folder / "part", min(scale.PART_ROWS, options.rows - first))
                client.run("ingest", "things", "--vectors", folder / "part.npy", "--labels",
                           folder / "part-labels.npy", "--id-prefix", f"{first // scale.PART_ROWS}-")
        with scale.Daemon(program, folder / "whole", *flags) as daemon:
            client = scale.Client(options.build, daemon, folder / "state-whole")
            whole, expected = measure(client, [daemon], folder / "queries.npy")
        shards = [scale.Daemon(program, folder / f"shard-{i}", *flags, "--shard", f"{i}/{options.shards}")
                  for i in range(1, options.shards + 1)]
        front = scale.Daemon(program, folder / "front", *flags, "--shards", ",".join(one.address for one in shards))
        client = scale.Client(options.build, front, folder / "state-front")
        divided, answers = measure(client, [front, *shards], folder / "queries.npy")
        for one in (front, *shards):
            one.__exit__()
        same, ties = 0, []  # ties: how far the other ids are from the last one of both answers
        for one, other in zip(expected, answers):
            shared = {m["id"] for m in one} & {m["id"] for m in other}
            same += len(shared)
            last = max(one[-1]["similarity"], other[-1]["similarity"])
            ties += [abs(m["similarity"] - last) for m in one + other if m["id"] not in shared]
        for name, value in whole.items():
            print(f"{name:16} one daemon {value:14.2f}   {options.shards} shards {divided[name]:14.2f}   "
                  f"ratio {divided[name] / value:.2f}")
        print(f"same ids: {same} of {QUERIES * K}, others within {max(ties, default=0):.1e} of the last similarity")
    finally:
        postgres.stop()


if __name__ == "__main__":
    main()

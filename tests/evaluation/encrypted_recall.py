#!/usr/bin/python3
"""Fidelity@8 and bytes of encrypted searches among the rows of a file, through the real programs.

usage: encrypted_recall.py BUILD_FOLDER VECTORS.npy [--items 8000] [--queries 500] [--metrics cosine,dot,euclidean]

Draws items and queries among the rows. The oracle is an exhaustive search in double precision. Fidelity@8 is the share of
the 8 nearest items that an encrypted search returns. For each metric but cosine the rows get lengths between a tenth and
ten times theirs, so that a ranking by the cosine alone would be wrong; what it would reach is printed beside.
"""
import argparse

import numpy as np

from service import Service

K = 8


def nearest(items, queries, metric):
    """The rows of the K nearest items of each query, in double precision."""
    items, queries = items.astype(float), queries.astype(float)
    scores = queries @ items.T
    if metric == "cosine":
        scores /= np.linalg.norm(items, axis=1)
    if metric == "euclidean":
        scores = 2 * scores - (items**2).sum(axis=1)
    return np.argpartition(-scores, K, axis=1)[:, :K]


def fidelity(found, expected):
    return np.mean([len(set(a) & set(b)) / K for a, b in zip(found, expected)])


def measure(service, items, queries, metric):
    name = f"rows-{metric}"
    service.call("collection", "create", name, "--metric", metric)
    service.call("ingest", name, "--vectors", service.save("items", items))
    answers = service.call("query", name, "--vectors", service.save("queries", queries), "--rows", "all", "-k", K)
    found = [[int(match["id"]) for match in answer["matches"]] for answer in answers]
    expected = nearest(items, queries, metric)
    sizes = answers[0]["bytes"]
    print(f"{metric:10} fidelity@8 {fidelity(found, expected):.4f} "
          f"(a ranking by the cosine {fidelity(nearest(items, queries, 'cosine'), expected):.4f}); "
          f"{len(items)} x {items.shape[1]}, {len(queries)} queries; KB of a query: {sizes['up'] / len(queries) / 1e3:.1f} "
          f"up, {sizes['down'] / len(queries) / 1e3:.1f} down; once: keys {sizes['keys'] / 1e3:.1f} KB, row table "
          f"{sizes['table'] / 1e3:.1f} KB", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("vectors")
    parser.add_argument("--items", type=int, default=8000)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--metrics", default="cosine,dot,euclidean")
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    rows = np.load(options.vectors).astype(np.float32)
    rows = rows[rng.permutation(len(rows))[:options.items + options.queries]]
    stretched = rows * 10 ** rng.uniform(-1, 1, (len(rows), 1)).astype(np.float32)
    with Service(options.build) as service:
        for metric in options.metrics.split(","):
            chosen = rows if metric == "cosine" else stretched
            measure(service, chosen[:options.items], chosen[options.items:], metric)


if __name__ == "__main__":
    main()

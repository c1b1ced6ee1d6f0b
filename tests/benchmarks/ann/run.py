"""Recall, queries a second, bytes and epsilon of PrivateMail beside indexes that are sent the query itself."""

import argparse
import json
import os
import time

import numpy as np

import module


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, epilog=(
        "Neighbours are by cosine. Queries come one after the other and FAISS has one thread; PrivateMail's go over TLS "
        "to a daemon here, each with its durable charge. Needs python3-faiss, python3-hnswlib, python3-privatemail."))
    parser.add_argument("gallery", help="n x d, .npy")
    parser.add_argument("queries", help="m x d, .npy")
    parser.add_argument("--labels", help="n integers, .npy: of the gallery's rows; adds the joint scheme")
    parser.add_argument("-k", type=int, default=8, help="neighbours of a query")
    parser.add_argument("--count", type=int, default=200, help="of queries: the first")
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1, 4, 8], help="of a private query")
    parser.add_argument("--private-only", action="store_true", help="neither FAISS nor hnswlib")
    parser.add_argument("--out", help="file for the table as JSON")
    return parser.parse_args()


def exact_neighbours(gallery, queries, k):
    similarities = module.unit(queries) @ module.unit(gallery).T
    return np.argsort(-similarities, axis=1, kind="stable")[:, :k]


def measure(algorithm, queries, truth):
    algorithm.bytes = 0
    start = time.perf_counter()
    found = [algorithm.query(query, truth.shape[1]) for query in queries]
    seconds = time.perf_counter() - start
    recall = np.mean([np.isin(expected, rows).mean() for rows, expected in zip(found, truth)])
    more = algorithm.get_additional()
    row = {"algorithm": str(algorithm), "recall": round(float(recall), 4),
           "queries_per_second": round(len(queries) / seconds, 1), "bytes": round(more["bytes"] / len(queries)),
           "epsilon": more["epsilon"] if np.isfinite(more["epsilon"]) else None}
    print(f"{row['algorithm']:<34} {row['recall']:>7.3f} {row['queries_per_second']:>10.1f} {row['bytes']:>11,} "
          f"{more['epsilon']:>8g}", flush=True)
    return row


def choices(arguments, gallery, labels):
    """Algorithms, each with the query arguments to try."""
    lists = max(4, round(4 * len(gallery) ** .5))
    if not arguments.private_only:
        yield module.FaissFlat(), [()]
        yield module.FaissIvf(lists), [(probes,) for probes in (1, 4, 16)]
        yield module.Hnsw(16, 200), [(candidates,) for candidates in (16, 64, 256)]
    cells = [(epsilon, len(gallery) // part) for epsilon in arguments.epsilons for part in (50, 10)]
    yield module.PrivateMail("cells", labels=labels), cells
    if labels is not None:
        yield module.PrivateMail("joint", labels=labels), [(epsilon,) for epsilon in arguments.epsilons]


def main():
    arguments = parse_arguments()
    os.environ["OMP_NUM_THREADS"] = "1"  # before faiss is imported
    gallery = np.load(arguments.gallery).astype(np.float32)
    queries = np.load(arguments.queries).astype(np.float32)[:arguments.count]
    labels = np.load(arguments.labels) if arguments.labels else None
    truth = exact_neighbours(gallery, queries, arguments.k)
    print(f"{'':<34} {'recall':>7} {'queries/s':>10} {'bytes/query':>11} {'epsilon':>8}")
    rows = []
    for algorithm, settings in choices(arguments, gallery, labels):
        try:
            algorithm.fit(gallery)
            for setting in settings:
                if setting:
                    algorithm.set_query_arguments(*setting)
                rows.append(measure(algorithm, queries, truth))
        finally:
            algorithm.done()
    if arguments.out:
        with open(arguments.out, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()

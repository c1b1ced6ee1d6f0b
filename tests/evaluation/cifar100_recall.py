#!/usr/bin/python3
"""Recall@8 of `privatemail query` on CIFAR-100 features, beside what it owes to the label.

usage: cifar100_recall.py BUILD_FOLDER FEATURES.npy LABELS.npy [STEPS]

1,000 anchors and 8,000 gallery items, 10 of each class and 80 of each class; 48 targets out of the rest, which is in
neither. Prints recall@8 as image retrieval defines it (share of targets with a match of their class among
the 8), precision@8 (share of the matches that have it) and fidelity@8 (overlap with the non-private top 8). A script and not a test: the data is not part of the project.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

import numpy as np

K, TARGETS, EPSILON = 8, 48, 1.0


def split(labels, rng):
    anchors, gallery, rest = [], [], []
    for c in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == c))
        anchors += list(rows[:10])
        gallery += list(rows[10:90])
        rest += list(rows[90:])
    return np.array(anchors), np.array(gallery), rng.permutation(rest)[:TARGETS]


class Service:
    def __init__(self, build, folder):
        self.folder, self.client = folder, os.path.join(build, "client/privatemail")
        self.daemon = subprocess.Popen([os.path.join(build, "server/privatemaild"), "--data-dir", folder + "/data",
                                        "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in self.daemon.stdout:
            if found := re.match(r"trust this server with: --trust (\w+)", line):
                self.trust = found[1]
            if found := re.match(r"listening on (\S+)", line):
                self.server = found[1]
                break

    def call(self, *words):
        command = [self.client, *words, "--server", self.server, "--trust", self.trust,
                   "--key-file", self.folder + "/data/admin.key", "--state", self.folder + "/state", "--json"]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def stop(self):
        self.daemon.terminate()
        self.daemon.wait()


def main():
    build, features_file, labels_file = sys.argv[1:4]
    steps = sys.argv[4] if len(sys.argv) > 4 else "5"
    features, labels = np.load(features_file), np.load(labels_file)
    rng = np.random.default_rng(1)
    anchors, gallery, targets = split(labels, rng)
    folder = tempfile.mkdtemp(prefix="privatemail_evaluation_")
    save = lambda name, array: np.save(f"{folder}/{name}.npy", array)
    save("a", features[anchors]), save("al", labels[anchors]), save("g", features[gallery]), save("gl", labels[gallery])
    save("q", features[targets]), save("ql", labels[targets])
    save("r", rng.normal(size=(TARGETS, features.shape[1])).astype(np.float32))

    nearest = np.argsort(-features[targets] @ features[gallery].T, axis=1)[:, :K]
    chance = np.mean([np.mean(labels[gallery] == c) for c in labels[targets]])
    service = Service(build, folder)
    try:
        start = time.time()
        service.call("collection", "create", "cifar", "--anchors", folder + "/a.npy", "--anchor-labels", folder + "/al.npy",
                     "--label-graph", "distance", "--steps", steps)
        service.call("ingest", "cifar", "--vectors", folder + "/g.npy", "--labels", folder + "/gl.npy")
        service.call("build", "cifar")
        service.call("budget", "set", "cifar", "--epsilon", "1000", "--delta", ".01")
        rows = ",".join(map(str, range(TARGETS)))
        ask = ["query", "cifar", "--rows", rows, "-k", str(K), "--epsilon", str(EPSILON), "--delta", "1e-5"]
        print(f"n {len(gallery)} gallery items, {len(anchors)} anchors, d {features.shape[1]}, k {K}, epsilon {EPSILON}, "
              f"delta 1e-5, T {steps}, {TARGETS} targets; set up in {time.time() - start:.1f} s")
        print(f"{'':46}recall@8  precision@8  fidelity@8")

        def show(what, of_class, fidelity):
            print(f"{what:46}{np.mean(of_class.any(1)):8.3f}  {np.mean(of_class):11.3f}  {fidelity:10.3f}")

        print(f"{'chance':46}{1 - (1 - chance) ** K:8.3f}  {chance:11.3f}  {K / len(gallery):10.3f}")
        show("non-private, cosine over the features", labels[gallery][nearest] == labels[targets][:, None], 1)
        for what, extra in (("private, label given", ["--vectors", folder + "/q.npy", "--labels", folder + "/ql.npy"]),
                            ("private, label guessed from the anchors", ["--vectors", folder + "/q.npy"]),
                            ("private, label given, picture random", ["--vectors", folder + "/r.npy", "--labels", folder + "/ql.npy"])):
            answers = service.call(*ask, *extra)
            of_class = np.array([[m["label"] == labels[t] for m in a["matches"]] for a, t in zip(answers, targets)])
            show(what, of_class, np.mean([len({int(m["id"]) for m in a["matches"]} & set(near)) / K
                                          for a, near in zip(answers, nearest)]))
    finally:
        service.stop()


if __name__ == "__main__":
    main()

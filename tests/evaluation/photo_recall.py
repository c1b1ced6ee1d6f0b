#!/usr/bin/python3
"""What searches find among the photographs of deploy/demo, through the real programs.

usage: photo_recall.py BUILD_FOLDER [--releases N] [--least RECALL]

Every held-back photograph is searched for N times by each scheme, with the default settings. Prints recall@8 (a match of
the kind), its standard error over the N means, precision@8, fidelity@8 (share of the 8 nearest) and bytes of a query.
--least: only the joint scheme; exit code 1 if its mean recall@8 is below.
"""
import argparse
import os
import pathlib
import sys
import time

import numpy as np

from service import Service

K = 8
DEMO = pathlib.Path(__file__).resolve().parents[2] / "deploy/demo"
MODEL = ["--model", DEMO / "mobilenet_v2_imagenet_128px_features.onnx"]


def kind(picture):
    return pathlib.Path(picture).parent.name


class Photographs:
    """The collection of deploy/demo.sh, and its plans."""

    def __init__(self, service):
        self.call, self.folder = service.call, service.folder
        kept = ["--features-folder", service.folder]
        self.call("collection", "create", "fruit", "--anchor-images", DEMO / "photos/anchors", *MODEL, *kept,
                  "--cells", 8, "--publish-quality")
        self.call("ingest", "fruit", "--images", DEMO / "photos/gallery", *MODEL, *kept)
        self.call("build", "fruit")
        self.call("budget", "set", "fruit", "--epsilon", 1e6, "--delta", .5)
        self.images = [word for path in sorted(DEMO.glob("photos/held-back/*/*.jpg")) for word in ("--image", path)]
        answers = self.ask("--epsilon", .1, "--delta", 1e-5, "--compare-images", DEMO / "photos/gallery", *kept)
        self.nearest = [[one["picture"] for one in answer["non_private_matches"]] for answer in answers]
        self.kinds = [kind(answer["query"]) for answer in answers]

    def ask(self, *words):
        return self.call("query", "fruit", *self.images, *MODEL, "-k", K, *words)

    def plan(self, epsilon):
        path = os.path.join(self.folder, f"plan-{epsilon}.json")
        for _ in range(600):  # until the server has measured the quality
            try:
                self.call("plan", "fruit", "--epsilon", epsilon, "--max-bytes", "300K", "--out", path)
                return ["--plan", path]
            except RuntimeError:
                time.sleep(.1)
        raise RuntimeError("the quality of the cells is not measured after a minute")

    def scores(self, matches):
        """recall, precision and fidelity at 8."""
        of_kind = np.array([sum(kind(one) == wanted for one in found) for found, wanted in zip(matches, self.kinds)])
        near = [len(set(found) & set(nearest)) / K for found, nearest in zip(matches, self.nearest)]
        return np.mean(of_kind > 0), np.mean(of_kind) / K, np.mean(near)

    def measure(self, name, releases, *words):
        """Prints the line of a way to search; returns its mean recall."""
        rows = []
        for _ in range(releases):
            answers = self.ask(*words)
            rows.append((*self.scores([[one["id"] for one in answer["matches"]] for answer in answers]),
                         *(np.mean([answer["bytes"][way] for answer in answers]) for way in ("up", "down"))))
        recall, precision, fidelity, up, down = np.mean(rows, axis=0)
        error = np.std([row[0] for row in rows], ddof=1) / releases**.5 if releases > 1 else np.nan
        guarantee = answers[0]["guarantee"]
        print(f"{name:24} recall@8 {recall:.4f} (standard error {error:.4f}), precision@8 {precision:.3f}, "
              f"fidelity@8 {fidelity:.3f}, {up:.0f} bytes up, {down:.0f} down; epsilon {guarantee['epsilon']}, "
              f"delta {guarantee['delta']}, {'proven' if guarantee['proven'] else 'NOT proven'}", flush=True)
        return recall


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--releases", type=int, default=5)
    parser.add_argument("--least", type=float)
    options = parser.parse_args()
    with Service(options.build) as service:
        photographs = Photographs(service)
        hidden = ("--epsilon", .1, "--delta", 1e-5)
        print(f"{len(photographs.kinds)} photographs, {options.releases} releases of each")
        recall = photographs.measure("joint, no label", options.releases, *hidden)
        if options.least is not None:
            sys.exit(f"recall@8 must be at least {options.least}, but is {recall:.4f}" if recall < options.least else 0)
        clear = photographs.scores(photographs.nearest)
        print(f"{'nothing hidden':24} recall@8 {clear[0]:.4f}, precision@8 {clear[1]:.3f}")
        labels = [word for one in photographs.kinds for word in ("--label", one)]
        photographs.measure("joint, label given", options.releases, *hidden, *labels)
        photographs.measure("anchored, no label", options.releases, *hidden, "--scheme", "anchored")
        for epsilon in (1, 4, 8):
            photographs.measure(f"cells, epsilon {epsilon}", options.releases, *photographs.plan(epsilon))


if __name__ == "__main__":
    main()

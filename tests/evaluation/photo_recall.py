#!/usr/bin/python3
"""What searches find among the photographs of deploy/demo, through the real programs.

usage: photo_recall.py BUILD_FOLDER [--releases N] [--least RECALL | --readme FILE]

Every held-back photograph is searched for N times by each scheme, with the default settings. Prints recall@8 (a match of
the kind), its standard error over the N means, precision@8, fidelity@8 (share of the 8 nearest) and bytes of a query.
--least: only the joint scheme; exit code 1 if its mean recall@8 is below.
--readme: writes the rows of the table in FILE.
"""
import argparse
import dataclasses
import os
import pathlib
import sys
import time

import numpy as np

from service import Service

K = 8
DEMO = pathlib.Path(__file__).resolve().parents[2] / "deploy/demo"
MODEL = ["--model", DEMO / "mobilenet_v2_imagenet_128px_features.onnx"]


TABLE = "| you want | scheme | features and class are hidden by | recall@8 | precision@8 | fidelity@8 | KB up, down |\n" \
        "|---|---|---|---|---|---|---|\n"


def kind(picture):
    return pathlib.Path(picture).parent.name


@dataclasses.dataclass
class Figures:
    """Means over the releases. guarantee: in words."""
    recall: float
    precision: float
    fidelity: float
    up: float  # bytes of a query
    down: float  # 0: not measured
    guarantee: str

    def row(self, wanted, scheme):
        """The row of TABLE."""
        share = [f"{one:.{digits}f}".removeprefix("0")
                 for one, digits in ((self.recall, 3), (self.precision, 3), (self.fidelity, 2))]
        size = [f"{one / 1e3:.{0 if one >= 1e3 else 1}f}".removeprefix("0") for one in (self.up, self.down) if one]
        return f"| {wanted} | {scheme} | {self.guarantee} | {' | '.join(share)} | {', '.join(size)} |\n"


def in_words(guarantee):
    """As in "(.1, 1e-5)-DP, proven"; guarantee: of an answer."""
    if guarantee.get("kind") == "computational":
        return f"ring-LWE, {guarantee['bits']} bits"
    epsilon, delta = (f"{guarantee[name]:g}".removeprefix("0").replace("e-0", "e-") for name in ("epsilon", "delta"))
    return f"{f'({epsilon}, {delta})-DP' if guarantee['delta'] else f'pure {epsilon}-DP'}, " \
           f"{'proven' if guarantee['proven'] else 'NOT proven'}"


class Photographs:
    """The collection of deploy/demo.sh, and its plans."""

    def __init__(self, service):
        self.call, self.folder = service.call, service.folder
        kept = ["--features-folder", service.folder]
        self.call("collection", "create", "fruit", "--anchor-images", DEMO / "photos/anchors", *MODEL, *kept,
                  "--cells", 8, "--publish-quality", "--with-encrypted")
        self.call("ingest", "fruit", "--images", DEMO / "photos/gallery", *MODEL, *kept)
        self.call("build", "fruit")
        self.call("budget", "set", "fruit", "--epsilon", 1e6, "--delta", .5)
        self.images = [word for path in sorted(DEMO.glob("photos/held-back/*/*.jpg")) for word in ("--image", path)]
        answers = self.ask("--scheme", "joint", "--epsilon", .1, "--delta", 1e-5, "--compare-images", DEMO / "photos/gallery", *kept)
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
        """Prints the line of a way to search."""
        rows = []
        for _ in range(releases):
            answers = self.ask(*words)
            rows.append((*self.scores([[one["id"] for one in answer["matches"]] for answer in answers]),
                         *(np.mean([answer["bytes"][way] / answer.get("targets", 1) for answer in answers])
                       for way in ("up", "down"))))
        found = Figures(*np.mean(rows, axis=0), in_words(answers[0]["guarantee"]))
        error = np.std([row[0] for row in rows], ddof=1) / releases**.5 if releases > 1 else np.nan
        print(f"{name:24} recall@8 {found.recall:.4f} (standard error {error:.4f}), precision@8 {found.precision:.3f}, "
              f"fidelity@8 {found.fidelity:.3f}, {found.up:.0f} bytes up, {found.down:.0f} down; {found.guarantee}",
              flush=True)
        return found

    def table(self, releases, hidden):
        """Measures every way to search; returns the rows of TABLE."""
        floats = self.call("collection", "info", "fruit")[0]["feature_dim"]
        clear = Figures(*self.scores(self.nearest), 4 * floats, 0, "nothing")
        print(f"{'nothing hidden':24} recall@8 {clear.recall:.4f}, precision@8 {clear.precision:.3f}")
        labels = [word for one in self.kinds for word in ("--label", one)]
        encrypted = self.measure("encrypted", 1)
        joint = self.measure("joint, no label", releases, *hidden)
        labelled = self.measure("joint, label given", releases, *hidden, *labels)
        rows = [clear.row("no privacy", "search in the clear"),
                encrypted.row("the true nearest items", "`encrypted` (default where offered)"),
                joint.row("items of the likely classes, no label", "`joint`"),
                labelled.row("items of a class you know", "`joint --label`")]
        for epsilon, wanted in ((1e-6, "popular items: what hiding everything finds"),
                                (1, "similar items, small epsilon"), (4, "similar items"),
                                (8, "most of the true nearest items")):
            cells = self.measure(f"cells, epsilon {epsilon}", releases, *self.plan(epsilon))
            rows.append(cells.row(wanted, f"`cells`, epsilon {epsilon:g}".replace("e-0", "e-")))
        rows.append(self.every_class(releases).row("k items of *every* class, if you know the class",
                                                   "nothing private is sent"))
        return "".join(rows)

    def every_class(self, releases):
        """What random items of every class contain for a client that knows its class."""
        rng = np.random.default_rng(1)
        of_kind = {one: [str(path.relative_to(DEMO / "photos/gallery")) for path in
                         sorted((DEMO / "photos/gallery" / one).glob("*.jpg"))] for one in set(self.kinds)}
        found = Figures(*np.mean([self.scores([rng.choice(of_kind[one], K, replace=False) for one in self.kinds])
                                  for _ in range(releases)], axis=0), 0, 0, "epsilon 0")
        print(f"{'k items of every class':24} recall@8 {found.recall:.4f}, precision@8 {found.precision:.3f}, "
              f"fidelity@8 {found.fidelity:.3f}")
        return found


def replace_rows(page, rows):
    """Replaces the rows of TABLE in the file."""
    before, table, after = page.read_text().partition(TABLE)
    if not table:
        raise SystemExit(f"--readme: expected a file with the table\n{TABLE}but got {page}")
    page.write_text(before + table + rows + after[after.index("\n\n") + 1:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--releases", type=int, default=5)
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--least", type=float)
    only.add_argument("--readme", type=pathlib.Path)
    options = parser.parse_args()
    with Service(options.build) as service:
        photographs = Photographs(service)
        hidden = ("--scheme", "joint", "--epsilon", .1, "--delta", 1e-5)
        print(f"{len(photographs.kinds)} photographs, {options.releases} releases of each")
        if options.least is not None:
            recall = photographs.measure("joint, no label", options.releases, *hidden).recall
            sys.exit(f"recall@8 must be at least {options.least}, but is {recall:.4f}" if recall < options.least else 0)
        rows = photographs.table(options.releases, hidden)
    if options.readme is not None:
        replace_rows(options.readme, rows)


if __name__ == "__main__":
    main()

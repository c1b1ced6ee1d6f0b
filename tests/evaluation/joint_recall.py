#!/usr/bin/python3
"""Recall@8 and precision@8 of the joint scheme on three data sets, with a label and without.

usage: joint_recall.py BUILD_FOLDER DATA_FOLDER [--data cifar,omniglot,photos] [--cases N] [--targets N]
                       [--unlabelled [--svg FILE]]

With a label: draws N cases of 20 splits x class sizes (equal, 10 to 1, the most unequal that the data allow) x labels
(0..C-1, arbitrary numbers, names) x epsilon (.01, .1, 1) x T (10, 30), and asks for some targets of each through the
real programs. precision@8 is relative to what is possible: a class with fewer than 8 items counts what it has.
--unlabelled: recall and precision against --classes, beside a search that hides nothing, at epsilon .01.

Features: CIFAR-100 as given; Omniglot: blurred pixels, 64 principal components; photographs: those of deploy/demo by
its model. A script and not a test: part of the data does not belong to the project.
"""
import argparse
import itertools
import pathlib
import re
import time

import matplotlib.figure
import numpy as np

from photo_recall import DEMO, MODEL
from service import Service

K = 8


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def cifar(_, folder):
    return unit(np.load(folder + "/cifar100_mobilenetv2_128.npy")), np.load(folder + "/cifar100_labels.npy").astype(int)


def omniglot(_, folder):
    images = np.load(folder + "/omniglot8_images.npy").astype(float)
    for axis in (1, 2):
        for _ in range(4):
            images = (np.roll(images, 1, axis) + 2 * images + np.roll(images, -1, axis)) / 4
    rows = images.reshape(len(images), -1)
    rows -= rows.mean(0)
    components = np.linalg.svd(rows, full_matrices=False)[2][:64]
    return unit(rows @ components.T), np.load(folder + "/omniglot8_labels.npy").astype(int)


PHOTO_PARTS = ("anchors", "gallery", "held-back")  # no other is too near a held-back one


def photos(service, _):
    """Through a collection, so that the features are those of `ingest --images --model`. In order of the parts."""
    service.call("collection", "create", "photos", "--anchor-images", DEMO / "photos/anchors", *MODEL)
    together = pathlib.Path(service.folder, "photos")  # the parts have files of the same names
    for picture in DEMO.glob("photos/*/*/*.jpg"):
        part, label = picture.parts[-3:-1]
        (together / label).mkdir(parents=True, exist_ok=True)
        (together / label / f"{part}-{picture.name}").symlink_to(picture)
    service.call("ingest", "photos", "--images", together, *MODEL)
    items = service.call("items", "list", "photos", "--limit", 2000, "--features")
    items = items[0]["items"] if len(items) == 1 else items
    items.sort(key=lambda i: PHOTO_PARTS.index(re.search("/(.+)-", i["id"])[1]))
    return unit(np.array([i["features"] for i in items])), np.array([i["label"] for i in items])


# Data set: its reader, anchors a class, targets a class.
DATA = {"cifar": (cifar, 10, 10), "omniglot": (omniglot, 10, 2), "photos": (photos, 10, 6)}
TITLES = {"cifar": "CIFAR-100 features", "omniglot": "Omniglot", "photos": "photographs"}


def split(labels, per_anchor, per_target, ratio, seed):
    """Rows of anchors, gallery, targets. Sizes of classes in the gallery fall geometrically to 1/ratio of the largest."""
    rng = np.random.default_rng(seed)
    classes = np.unique(labels)
    share = dict(zip(rng.permutation(classes), float(ratio) ** -np.linspace(0, 1, len(classes))))
    anchors, gallery, targets = [], [], []
    for c in classes:
        rows = rng.permutation(np.flatnonzero(labels == c))
        anchors += list(rows[:per_anchor])
        targets += list(rows[per_anchor:per_anchor + per_target])
        rest = rows[per_anchor + per_target:]
        gallery += list(rest[:max(1, round(share[c] * len(rest)))])
    return np.array(anchors), np.array(gallery), rng.permutation(targets)


def relabel(labels, how, seed):
    """Labels as numbers from 0, as arbitrary numbers, or in the order of names."""
    if how == "ordered":
        return labels
    rng = np.random.default_rng(seed + 1000)
    classes = labels.max() + 1
    new = rng.permutation(classes) if how == "names" else rng.choice(2**31 - 1, classes, replace=False)
    return new[labels]


class Collection:
    """A collection of one split, built. Budgets suffice for every query of the script."""

    def __init__(self, service, name, features, labels, parts, steps, *more):
        self.service, self.name = service, name
        self.labels, (anchors, self.gallery, self.targets) = labels, parts
        save = lambda what, rows: service.save(f"{name}_{what}", rows)
        ints = labels.astype(np.int32)
        service.call("collection", "create", name, "--anchors", save("a", features[anchors]),
                     "--anchor-labels", save("al", ints[anchors]), *([] if steps is None else ["--steps", steps]), *more)
        service.call("ingest", name, "--vectors", save("g", features[self.gallery]), "--labels", save("gl", ints[self.gallery]))
        service.call("build", name)
        service.call("budget", "set", name, "--epsilon", 1e6, "--delta", .5)
        self.queries, self.query_labels = save("q", features[self.targets]), save("ql", ints[self.targets])

    def ask(self, rows, epsilon, *extra):
        """Whether each match has the class: targets x 8, and what is possible of them."""
        answers = self.service.call("query", self.name, "--vectors", self.queries, "--rows", ",".join(map(str, rows)),
                                    "-k", K, "--epsilon", epsilon, "--delta", 1e-5, *extra)
        found = np.zeros((len(rows), K), bool)
        for i, (answer, row) in enumerate(zip(answers, rows)):
            of_class = [m["label"] == self.labels[self.targets[row]] for m in answer["matches"]]
            found[i, :len(of_class)] = of_class
        gallery = self.labels[self.gallery]
        possible = np.array([min(K, (gallery == self.labels[self.targets[row]]).sum()) for row in rows])
        return found, possible, answers

    def labelled(self, rows, epsilon):
        return self.ask(rows, epsilon, "--labels", self.query_labels)

    def delete(self):
        self.service.call("collection", "delete", self.name, "--yes")


def with_label(service, name, features, labels, per_anchor, per_target, cases, targets):
    smallest = np.bincount(labels).min() - per_anchor - per_target
    ratios = {"equal": 1, "10 to 1": 10, "most unequal": smallest}
    drawn = list(itertools.product(range(20), ratios, ("ordered", "numbers", "names"), (None, 30)))
    rng = np.random.default_rng(7)
    drawn = [drawn[i] for i in rng.permutation(len(drawn))[:max(1, cases // 3)]]
    results, start = [], time.time()
    for number, (seed, ratio, how, steps) in enumerate(drawn):
        relabelled = relabel(labels, how, seed)
        collection = Collection(service, f"{name}-{number}", features, relabelled,
                                split(labels, per_anchor, per_target, ratios[ratio], seed), steps)
        rows = range(min(targets, len(collection.targets)))
        for epsilon in (.01, .1, 1):
            found, possible, answers = collection.labelled(list(rows), epsilon)
            results.append((found.any(1).mean(), (found.sum(1) / possible).mean()))
            residual = max(a["alignment"]["relative_residual"] for a in answers)
            if results[-1][0] < .99 or results[-1][1] < .95:
                print(f"  {name}: split {seed}, {ratio}, {how}, T {steps or 10}, epsilon {epsilon}: recall {results[-1][0]:.3f}, "
                      f"precision {results[-1][1]:.3f}, residual {residual:.3f}", flush=True)
        collection.delete()
    recall, precision = np.array(results).T
    print(f"{name}: {len(results)} cases of {len(rows)} targets in {time.time() - start:.0f} s: recall@8 mean {recall.mean():.4f}, "
          f"least {recall.min():.3f}; precision@8 of what is possible mean {precision.mean():.4f}, least {precision.min():.3f}; "
          f"{((recall >= .99) & (precision >= .95)).sum()} cases with at least .99 and .95", flush=True)


def without_label(service, name, features, labels, per_anchor, per_target, splits):
    classes = len(np.unique(labels))
    # The photographs' own split: random ones put photographs of one shop display on both sides.
    own = np.split(np.arange(len(labels)), [classes * per_anchor, len(labels) - classes * per_target])
    splits = [own] if name == "photos" else [split(labels, per_anchor, per_target, 1, seed) for seed in range(splits)]
    print(f"{name}, no label, epsilon .01: recall@8 / precision@8, splits: {len(splits)}")
    rows_of = {}
    for seed, parts in enumerate(splits):
        collection = Collection(service, f"{name}-u{seed}", features, labels, parts, None)
        rows = list(range(len(collection.targets)))
        near = np.argsort(-features[parts[2]] @ features[parts[1]].T, axis=1, kind="stable")[:, :K]
        rows_of.setdefault("nothing hidden", []).append(labels[parts[1]][near] == labels[parts[2]][:, None])
        for classes in ("auto", 1, 2, 3, 4, 5, 6, 8):
            rows_of.setdefault(f"--classes {classes}", []).append(collection.ask(rows, .01, "--classes", classes)[0])
        collection.delete()
    curve = {}
    for what, found in rows_of.items():
        found = np.concatenate(found)
        curve[what] = found.any(1).mean(), found.mean()
        print(f"  {what:16} {curve[what][0]:.3f} / {curve[what][1]:.3f}", flush=True)
    return curve


def draw(curves, path):
    """A panel a data set: recall@8 and precision@8 against --classes; dashed: nothing hidden; thick mark: auto."""
    figure = matplotlib.figure.Figure(figsize=(4.8 * len(curves), 4))
    for axes, (name, curve) in zip(figure.subplots(1, len(curves), squeeze=False)[0], curves.items()):
        counts = sorted(int(what.split()[1]) for what in curve if what.split()[-1].isdigit())
        for i, what in enumerate(("recall@8", "precision@8")):
            line, = axes.plot(counts, [curve[f"--classes {m}"][i] for m in counts], "o-", label=what)
            axes.axhline(curve["nothing hidden"][i], color=line.get_color(), linestyle="--")
            axes.plot(1, curve["--classes auto"][i], "_", color=line.get_color(), markersize=16, markeredgewidth=5)
        axes.set(title=name, xlabel="--classes", ylim=(0, 1))
    figure.legend(*axes.get_legend_handles_labels(), loc="lower left",
                  title="dashed: a search that hides nothing; thick mark at the left: auto", ncols=2)
    figure.tight_layout(rect=(0, .15, 1, 1))
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("folder")
    parser.add_argument("--data", default=",".join(DATA))
    parser.add_argument("--cases", type=int, default=600)
    parser.add_argument("--targets", type=int, default=24)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--unlabelled", action="store_true")
    parser.add_argument("--svg", help="with --unlabelled: draw recall and precision against --classes")
    options = parser.parse_args()
    curves = {}
    with Service(options.build) as service:
        for name in options.data.split(","):
            read, per_anchor, per_target = DATA[name]
            features, labels = read(service, options.folder)
            if options.unlabelled:
                curves[TITLES[name]] = without_label(service, name, features, labels, per_anchor, per_target, options.splits)
            else:
                with_label(service, name, features, labels, per_anchor, per_target, options.cases, options.targets)
    if options.svg:
        draw(curves, options.svg)


if __name__ == "__main__":
    main()

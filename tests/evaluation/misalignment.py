#!/usr/bin/python3
"""What is refused before a charge because client and server do not align, and whether it should be.

usage: misalignment.py BUILD_FOLDER DATA_FOLDER [--data cifar,omniglot,photos] [--trials N] [--settings N]

Wrong pairings: N trials of each kind and data set, each of a new split: own anchors that are other rows, are in another
order, have each other's labels, or come from another model; a gallery whose labels were shuffled by class or by item. Prints
how many were refused, that nothing was charged, and how many right pairings were.
Settings: N collections with the papers' label graph and random start, of 1 to 30 iterations; prints the expected recall
beside what queries with a label then find, for the threshold of expected_alignment.h.
"""
import argparse

import numpy as np

from joint_recall import DATA, Collection, K, split, unit
from service import Service


def refused(call, reason):
    """Whether the call is refused for this reason; any other failure is raised."""
    try:
        call()
    except RuntimeError as error:
        if reason in str(error):
            return True
        raise
    return False


def own_anchors(kind, features, labels, parts, rng):
    """The anchors' features as a searcher would hold them."""
    anchors, gallery, _ = parts
    if kind == "right":
        return features[anchors]
    if kind == "right, another model":  # random features with a rectifier: another space, a similar geometry
        return unit(np.maximum(0, features @ rng.normal(size=(features.shape[1], 2 * features.shape[1]))))[anchors]
    if kind == "other rows":
        return features[rng.choice(gallery, len(anchors))]
    if kind == "other order":
        return features[rng.permutation(anchors)]
    if kind == "other labels":  # every class has the rows of another
        classes = np.unique(labels[anchors])
        new = dict(zip(classes, np.roll(classes, 1)))
        rows = {c: list(anchors[labels[anchors] == c]) for c in classes}
        return features[[rows[new[c]].pop() for c in labels[anchors]]]
    assert kind == "a model that tells nothing", kind
    return unit(rng.normal(size=(len(anchors), 64)))


def pairings(service, name, features, labels, per_anchor, per_target, trials):
    kinds = ["right", "right, another model", "other rows", "other order", "other labels", "a model that tells nothing"]
    counts = {kind: 0 for kind in kinds + ["labels shuffled by class", "labels shuffled by item", "labels right"]}
    for trial in range(trials):
        rng = np.random.default_rng(trial)
        parts = split(labels, per_anchor, per_target, 1, trial)
        anchors, gallery, _ = parts
        made = f"{name}-{trial}"
        ints = labels.astype(np.int32)
        service.call("collection", "create", made, "--anchors", service.save("a", features[anchors]), "--anchor-labels",
                     service.save("al", ints[anchors]))
        classes = rng.permutation(labels.max() + 1).astype(np.int32)
        galleries = {"labels shuffled by class": classes[ints[gallery]],
                     "labels shuffled by item": rng.permutation(ints[gallery]), "labels right": ints[gallery]}
        for kind, given in galleries.items():
            service.call("ingest", made, "--vectors", service.save("g", features[gallery]), "--labels", service.save("gl", given),
                         "--replace")
            counts[kind] += refused(lambda: service.call("build", made), "do not seem to mean the anchors' classes")
        service.call("budget", "set", made, "--epsilon", 100, "--delta", .5)
        for kind in kinds:
            own = own_anchors(kind, features, labels, parts, rng)
            file = service.save("own", own)
            before = service.call("budget", "show", made)[0]["releases"]
            is_refused = refused(lambda: service.call("query", made, "--vectors", file, "--row", 0, "--epsilon", 1, "--delta", 1e-5,
                                                      "--own-anchors", file), "nothing was charged")
            charged = service.call("budget", "show", made)[0]["releases"] - before
            assert charged == (0 if is_refused else 1), (kind, charged)
            counts[kind] += is_refused
        service.call("collection", "delete", made, "--yes")
    for kind, count in counts.items():
        print(f"{name}: {kind}: {count} of {trials} refused", flush=True)


def settings(service, name, features, labels, per_anchor, per_target, collections):
    found = []
    for seed in range(collections):
        steps = (1, 3, 5, 6, 7, 10, 30)[seed % 7]
        try:
            collection = Collection(service, f"{name}-s{seed}", features, labels, split(labels, per_anchor, per_target, 1, seed),
                                    steps, "--label-graph", "distance", "--start", "random", "--dim", 2)
        except RuntimeError as error:
            print(f"{name}: {steps} iterations: {str(error).strip()[-200:]}", flush=True)
            continue
        rows = list(range(min(30, len(collection.targets))))
        matches, _, answers = collection.ask(rows, 1, "--labels", collection.query_labels, "--accept-misalignment")
        found.append((answers[0]["expected_recall"], matches.any(1).mean(), matches.mean(), steps))
        collection.delete()
    for expected, recall, precision, steps in sorted(found):
        print(f"{name}: {steps:2} iterations: expected {expected:.3f}, recall@{K} {recall:.3f}, precision@{K} {precision:.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("data_folder")
    parser.add_argument("--data", default="cifar,omniglot,photos")
    parser.add_argument("--trials", type=int, default=0)
    parser.add_argument("--settings", type=int, default=0)
    given = parser.parse_args()
    with Service(given.build) as service:
        for name in given.data.split(","):
            read, per_anchor, per_target = DATA[name]
            features, labels = read(service, given.data_folder)
            if given.trials:
                pairings(service, name, features, labels, per_anchor, per_target, given.trials)
            if given.settings:
                settings(service, name, features, labels, per_anchor, per_target, given.settings)


if __name__ == "__main__":
    main()

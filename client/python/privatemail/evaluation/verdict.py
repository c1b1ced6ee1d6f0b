"""The report's verdict: the scheme that finds most at the study's epsilon, beside downloads that send nothing private.

A scheme is worth its epsilon if it finds more of the true nearest k than k items of every class do, and than a client
does that downloads as many bytes without a query. Such a client has the better of two downloads of B bytes from C
classes of n_c items:

    items that it does not rank   min(k, B / (C listed)) ids of every class, of which it takes those of the target's
                                  class, which it knows, as the joint scheme presumes, too
    items that it ranks           B / (C ranked) items of every class with their vectors

Cells are compared with a third one, too: the items of a cell that is drawn without regard to the query, which is what
they return at epsilon 0. The lists of cells put items first that are near to many queries, so these are found at any
epsilon.

Expected fidelity: the mean over the true nearest k of min(1, items of the class / n_c), of the target's class alone
where it does not rank.

Bytes of an answer, without payloads, TLS and gRPC's framing, for ids of 24 bytes as `privatemail plan` assumes:

    listed            id, label, distance and their tags                     24 + 16
    ranked            id, label, their tags and d values as float16          24 + 6 + 2 d
    joint             k items of every class                                 k C listed
    cells             the items of a cell, with their vectors                items ranked
"""

import math
from typing import Callable, List, NamedTuple, Tuple

import numpy as np

from privatemail.evaluation.experiments.cells import list_length, of_cells
from privatemail.evaluation.experiments.settings import flags
from privatemail.evaluation.study import Band, Experiment, Result, Split, Verdict
from privatemail.evaluation.sweep import (OF_EVERY_CLASS, Condition, Stage, Sweep, asking, exact, of_every_class,
                                          percent, scored, short, with_band)

_ID = 24
_LISTED = _ID + 16
_SHARES = (.1, .01)  # of the gallery, that cells return
_NOTHING = 1e-9  # an epsilon


def _ranked_item(split: Split) -> int:
    return _ID + 6 + 2 * split.gallery.features.shape[1]


def _classes(split: Split) -> int:
    return len(np.unique(split.anchors.labels))


class _Scheme(NamedTuple):
    """A scheme that is measured."""

    condition: Condition
    guarantee: str
    needs_label: bool
    bytes_down: Callable[[Split], int]
    commands: Callable[[Result], Tuple[str, str]]  # arguments of `collection create` and `query`, by a result
    share: float = 0  # of the gallery, that cells return; 0 for other schemes

    @property
    def name(self) -> str:
        return self.condition.name


def _listed_bytes(split: Split, k: int) -> int:
    return k * _classes(split) * _LISTED


def _schemes(stage: Stage) -> List[_Scheme]:
    study, k = stage.study, stage.study.k
    epsilon, delta = exact(study.epsilon), exact(study.delta)

    query = f"--label LABEL --scheme joint --epsilon {epsilon} --delta {delta}"
    joint = _Scheme(asking("joint, gaussian", stage, lambda x: {"epsilon": x, "delta": study.delta}),
                    f"features and class: ({epsilon}, {delta})", True, lambda split: _listed_bytes(split, k),
                    lambda _: (flags(study.settings), query))

    def by_cells(share: float) -> _Scheme:
        return _Scheme(of_cells(stage, share), f"features and class: {epsilon}, no delta", False,
                       lambda split: list_length(share, k, len(split.gallery)) * _ranked_item(split),
                       lambda result: (f"--cells {result['cells'][0]:g} --cell-code float16",
                                       f"--scheme cells --items {result['items'][0]:g} --epsilon {epsilon}"), share)

    trivial = _Scheme(of_every_class(stage), "everything: 0, no delta", True, lambda split: _listed_bytes(split, k),
                      lambda _: ("", ""))
    return [joint, *map(by_cells, _SHARES), trivial]


def _of_a_random_cell(stage: Stage, share: float, seed: int) -> List[float]:
    """The fidelity of cells with a share of the gallery that are asked at an epsilon that decides nothing."""
    trial = stage.trial(seed)
    cells, items, _ = trial.plan_cells(stage.study.epsilon, share)
    found = trial.ask_cells(cells, items, _NOTHING, "verdict")
    return scored(stage, seed, (found, 0, 0))["fidelity"]


def _of_as_many_bytes(stage: Stage, scheme: _Scheme) -> Condition:
    """The expected fidelity of the best of these downloads."""

    def run(_x: float, seed: int, _part: str) -> Result:
        split = stage.split(seed)
        near = split.gallery.labels[stage.trial(seed).nearest]
        labels, sizes = np.unique(split.gallery.labels, return_counts=True)
        size = sizes[np.searchsorted(labels, near)]
        of_class = scheme.bytes_down(split) / _classes(split)
        listed = np.minimum(1, min(stage.study.k, of_class / _LISTED) / size) * (near == split.targets.labels[:, None])
        ranked = np.minimum(1, of_class / _ranked_item(split) / size)
        downloads = [listed.mean(axis=1), ranked.mean(axis=1)]
        if scheme.share:
            downloads.append(np.array(_of_a_random_cell(stage, scheme.share, seed)))
        return {"fidelity": max(downloads, key=np.mean).tolist()}

    return Condition(f"as many bytes as {scheme.name}", run, fixed=True, work=.01)


def _sweep(stage: Stage, schemes: List[_Scheme]) -> Sweep:
    """The schemes, and then as many downloads."""
    conditions = [one.condition for one in schemes] + [_of_as_many_bytes(stage, one) for one in schemes]
    return Sweep("verdict", conditions, [stage.study.epsilon], stage.study.seeds)


def comparison(stage: Stage) -> Experiment:
    """What verdict needs; without figures."""
    return Experiment("verdict", _sweep(stage, _schemes(stage)).jobs(), lambda _: [])


class _Measured(NamedTuple):
    """A scheme's scores. without: the fidelity of as many bytes with nothing private sent."""

    scheme: _Scheme
    recall: Band
    fidelity: Band
    without: Band
    first: Result  # of the first split

    @property
    def is_trivial(self) -> bool:
        return self.scheme.name == OF_EVERY_CLASS


def _rank(measured: List[_Measured]) -> List[_Measured]:
    """By fidelity: those that are worth their epsilon, then the trivial scheme, then the others."""
    trivial = next(one for one in measured if one.is_trivial)

    def order(one: _Measured) -> Tuple[int, float]:
        is_worth_it = one.fidelity.low > max(one.without.high, trivial.fidelity.high)
        place = 0 if is_worth_it else 1 if one is trivial else 2
        return place, math.inf if math.isnan(one.fidelity.mean) else -one.fidelity.mean

    return sorted(measured, key=order)


def _sentence(ranked: List[_Measured], stage: Stage) -> str:
    k, at, best = stage.study.k, f"At epsilon {short(stage.study.epsilon)}", ranked[0]
    trivial = next(one for one in ranked if one.is_trivial)
    beside = (f"{k} items of every class, at epsilon 0, have {with_band(trivial.fidelity)} of them, and the class in "
              f"{percent(trivial.recall.mean)} of queries, if the client knows it.")
    if best is trivial:
        most = ranked[1]
        return (f"{at} no scheme is shown to find more of the true nearest {k} than downloads with nothing private "
                f"sent: \"{most.scheme.name}\" finds {with_band(most.fidelity)}, as many bytes "
                f"{with_band(most.without)}. {beside}")
    known = ", if the client knows it" if best.scheme.needs_label else ""
    return (f"{at} \"{best.scheme.name}\" finds {with_band(best.fidelity)} of the true nearest {k}, and the class in "
            f"{percent(best.recall.mean)} of queries{known}, for {best.scheme.bytes_down(stage.split(1)):,} bytes "
            f"down; as many bytes with nothing private sent have {with_band(best.without)}. {beside}")


def verdict(stage: Stage, results: List[Result]) -> Verdict:
    """results: of comparison(stage)."""
    schemes, study = _schemes(stage), stage.study
    sweep = _sweep(stage, schemes)

    def measured(number: int, scheme: _Scheme) -> _Measured:
        recall, fidelity = (sweep.band(results, number, 0, key) for key in ("hit", "fidelity"))
        without = sweep.band(results, len(schemes) + number, 0, "fidelity")
        return _Measured(scheme, recall, fidelity, without, results[number * study.seeds])

    ranked = _rank([measured(*one) for one in enumerate(schemes)])
    columns = ("scheme", "hidden: epsilon, delta", "label", f"recall@{study.k}", f"fidelity@{study.k}",
               "bytes down, about", f"fidelity@{study.k} of as many bytes, nothing private sent")
    rows: List[Tuple[str, ...]] = [
        (one.scheme.name, one.scheme.guarantee, "must be known" if one.scheme.needs_label else "not needed",
         with_band(one.recall), with_band(one.fidelity), f"{one.scheme.bytes_down(stage.split(1)):,}",
         with_band(one.without)) for one in ranked
    ]
    commands = []
    if not ranked[0].is_trivial:
        create, query = ranked[0].scheme.commands(ranked[0].first)
        commands = [f"privatemail collection create NAME --anchors anchors.npy --anchor-labels labels.npy {create}",
                    f"privatemail query NAME --vectors queries.npy {query} -k {study.k}"]
    return Verdict(_sentence(ranked, stage), columns, rows, commands)

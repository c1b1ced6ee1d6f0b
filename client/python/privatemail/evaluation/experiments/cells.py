"""Cells: recall, precision and fidelity against epsilon, with their ceiling, the joint scheme and fast baselines."""

from typing import List

from privatemail.evaluation import _seeded
from privatemail.evaluation.baselines import Baseline
from privatemail.evaluation.study import Band, Experiment, Figure, Panel, Result, Series
from privatemail.evaluation.sweep import (EPSILON_AXIS, OF_EVERY_CLASS, Condition, Metric, Stage, Sweep, asking,
                                          baseline, chance, closest, curve, feature_search, metrics, of_every_class,
                                          percent, scored, share_axis, short, with_band)

_EPSILONS = [.5, 1, 2, 4, 8]
_SHARES = (.1, .01)  # of the gallery that answer; these conditions come first
_CLEAR = len(_SHARES)  # the condition after them: a search in the clear
_MOST_WORK = 4  # of a baseline

_MESSAGES = {
    "hit": "At epsilon {epsilon} cells with {share} of the items returned find the class in {cells} of queries, the "
           "joint scheme in {joint}; {k} items of every class, with nothing private sent, in {trivial}",
    "class_share": "At epsilon {epsilon}, {cells} of the {k} items that cells find in {share} of the gallery have the "
                   "target's class, {joint} of the joint scheme's; with nothing private sent, {trivial} of {k} items "
                   "picked from {k} of every class",
    "fidelity": "At epsilon {epsilon} cells with {share} of the items returned find {cells} of the true nearest {k}, "
                "the joint scheme {joint}; {k} items of every class, with nothing private sent, {trivial}",
}


def list_length(share: float, k: int, items: int) -> int:
    """Items that answer if `share` of the gallery is to, so that k can come back."""
    return max(k, int(share * items + .5))


def of_cells(stage: Stage, share: float) -> Condition:
    """One query a target, by the plan of highest expected fidelity. Results have the plan, too, as cells and items."""

    def run(epsilon: float, seed: int, part: str) -> Result:
        trial = stage.trial(seed)
        cells, items, _ = trial.plan_cells(epsilon, share)
        found = trial.ask_cells(cells, items, epsilon, part)
        return {**scored(stage, seed, (found, 0, 0)), "cells": [cells], "items": [items]}

    return Condition(f"cells, {percent(share)} returned", run, work=3)


def _beside(metric: Metric, share: float, epsilon: float, band: Band, clear: Band) -> str:
    if metric.key != "fidelity":
        return f", {short(band.mean / clear.mean)} of a search that hides nothing" if clear.mean > 0 else ""
    ceiling = _seeded.cell_ceiling(epsilon, share)
    if not ceiling > share:
        return ""
    way = short((band.mean - share) / (ceiling - share))
    return f", {way} of the way from chance to the ceiling of {short(ceiling)}"


def _words(sweep: Sweep, results: List[Result], metric: Metric, items: int, k: int) -> List[str]:
    words = []
    clear = sweep.band(results, _CLEAR, 0, metric.key)
    for number, nominal in enumerate(_SHARES):
        name, share = sweep.conditions[number].name, list_length(nominal, k, items) / items
        if share > 1.1 * nominal:
            words.append(f'Of {items} items "{name}" means {percent(share)}: as many as are asked for.')
        found = []
        for x, epsilon in enumerate(_EPSILONS[1:], 1):
            band = sweep.band(results, number, x, metric.key)
            found.append(f"{with_band(band)} at epsilon {short(epsilon)}{_beside(metric, share, epsilon, band, clear)}")
        words.append(f"With {name}, {metric.name} is {'; '.join(found)}.")
    return words


def _others(sweep: Sweep, results: List[Result], metric: Metric, at: int) -> str:
    found = [f'"{condition.name}" {with_band(sweep.band(results, number, at, metric.key))}'
             for number, condition in enumerate(sweep.conditions) if number > _CLEAR]
    return (f"Beside them, at epsilon {short(_EPSILONS[at])}: {', '.join(found)}. Private PCA protects rows of the "
            "gallery, and no query.")


def _panels(series: List[Series]) -> List[Panel]:
    shared = [one for one in series if one.mark == "reference"]
    return [Panel("cells", series[:_CLEAR] + shared),
            Panel("the papers' schemes and baselines", [one for one in series[_CLEAR:] if one not in shared] + shared)]


def _ceiling(share: float) -> Series:
    return curve(f"ceiling at {percent(share)}", _EPSILONS, lambda epsilon: _seeded.cell_ceiling(epsilon, share))


def _about_ceilings(sweep: Sweep, results: List[Result], items: int, k: int) -> List[str]:
    words = ["The ceiling is that of a choice among cells that are all equally likely to be the right one, averaged "
             "over them. Items are not: some are among the nearest of many queries, and lists that put these first may "
             "find more than their share at any epsilon. Class and features of the query are both protected, by a pure "
             "guarantee."]
    for number, nominal in enumerate(_SHARES):
        share = list_length(nominal, k, items) / items
        above = [short(epsilon) for x, epsilon in enumerate(_EPSILONS)
                 if sweep.band(results, number, x, "fidelity").low > _seeded.cell_ceiling(epsilon, share)]
        if above:
            words.append(f'The whole band of "{sweep.conditions[number].name}" lies above that ceiling at epsilon '
                         f"{', '.join(above)}.")
    return words


def cells(stage: Stage, baselines: List[Baseline]) -> Experiment:
    """A figure for each score, with the cells in one panel and what they are compared with in another."""
    study = stage.study
    joint = asking("joint, gaussian", stage, lambda epsilon: {"epsilon": epsilon, "delta": study.delta})
    conditions = [
        *(of_cells(stage, share) for share in _SHARES), feature_search(stage), joint,
        *(baseline(stage, one) for one in baselines if one.private and one.work <= _MOST_WORK), of_every_class(stage),
        chance(stage)
    ]
    sweep = Sweep("cells", conditions, _EPSILONS, study.seeds)

    def draw_one(results: List[Result], metric: Metric) -> Figure:
        items, at = len(stage.split(1).gallery), closest(_EPSILONS, study.epsilon)
        means = [percent(sweep.band(results, sweep.index(name), at, metric.key).mean)
                 for name in (conditions[0].name, "joint, gaussian", OF_EVERY_CLASS)]
        title = _MESSAGES[metric.key].format(k=study.k, epsilon=short(_EPSILONS[at]), share=percent(_SHARES[0]),
                                             cells=means[0], joint=means[1], trivial=means[2])
        panel = sweep.panel(results, metric)
        panels = _panels(panel.series)
        words = [*_words(sweep, results, metric, items, study.k), _others(sweep, results, metric, at)]
        if metric.key == "fidelity":
            panels[0].series.extend(_ceiling(list_length(share, study.k, items) / items) for share in _SHARES)
            words += _about_ceilings(sweep, results, items, study.k)
        return Figure(f"cells-{metric.name.split('@')[0]}", title, EPSILON_AXIS, share_axis(panel.title), panels,
                      words + sweep.notes(results))

    return Experiment("cells", sweep.jobs(), lambda results: [draw_one(results, metric) for metric in metrics(study.k)])

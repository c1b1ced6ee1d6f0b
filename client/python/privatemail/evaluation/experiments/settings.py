"""Settings of the embedding: one at a time around the study's, and a search for the best on the rows given alone."""

import concurrent.futures
import dataclasses
import itertools
import math
import os
from typing import Callable, Iterable, List, NamedTuple, Optional

import numpy as np

from privatemail.errors import FailedPrecondition, wrong
from privatemail.evaluation import _seeded
from privatemail.evaluation.stats import band_of_scores
from privatemail.evaluation.study import Axis, Band, Experiment, Figure, Panel, Point, Result, Series, Settings, Study
from privatemail.evaluation.sweep import (STARTS_DIFFER, Condition, Stage, Sweep, building, counted, exact, metrics,
                                          of_every_class, point, share_axis, short, with_band)

_SHOWN = 10  # of the grid
_AS_GOOD = .01  # in precision


class _Knob(NamedTuple):
    """A setting, and the values that are tried."""

    id: str
    name: str
    logarithmic: bool
    values: List[float]
    turned: Callable[[Settings, float], Settings]


def _usual_alpha(study: Study) -> float:
    return _seeded.default_alpha(study.settings.label_graph, study.rows.labels)


def _dims(study: Study, dims: Iterable[int]) -> List[int]:
    """Without those that the classes do not span, which new collections refuse."""
    most = len(np.unique(study.rows.labels)) - 1
    return sorted({min(dim, most) for dim in dims})


def _knobs(study: Study) -> List[_Knob]:
    alpha = study.settings.alpha
    # Around 0 there are no factors: then up to what is usual for the labels.
    alphas = [factor * (alpha or _usual_alpha(study)) for factor in (.25, .5, 1, 2, 4)]
    return [
        _Knob("dim", "embedding_dim (the papers' k)", False, list(map(float, _dims(study, (2, 3, 4, 6, 8)))),
              lambda settings, value: dataclasses.replace(settings, embedding_dim=int(value))),
        _Knob("alpha", "alpha", bool(alpha), alphas if alpha else [0, *alphas],
              lambda settings, value: dataclasses.replace(settings, alpha=value)),
        _Knob("bandwidth", "kernel_bandwidth (s)", True, [.5, 1, 2, 4, 6, 10],
              lambda settings, value: dataclasses.replace(settings, kernel_bandwidth=value)),
    ]


def _sweep(stage: Stage, knob: _Knob) -> Sweep:
    study = stage.study

    def condition(name: str, epsilon: Optional[float]) -> Condition:
        return building(name, stage, lambda value: knob.turned(study.settings, value),
                        {"epsilon": epsilon, "delta": study.delta})

    conditions = [condition(f"epsilon {short(study.epsilon)}", study.epsilon), condition("without noise", None),
                  of_every_class(stage)]
    return Sweep(f"settings/{knob.id}", conditions, knob.values, study.seeds)


def _span(points: List[Point], name: str) -> str:
    least, most = (function(points, key=lambda one: one.y) for function in (min, max))
    ends = [with_band(Band(end.y, end.low, end.high)) for end in (least, most)]
    if least.y == most.y:
        return f"is {ends[0]} at every {name}"
    return f"lies between {ends[0]} at {name} {short(least.x)} and {ends[1]} at {name} {short(most.x)}"


def _draw(knob: _Knob, sweep: Sweep, results: List[Result], study: Study) -> Figure:
    panels, words = [], []
    for metric in metrics(study.k):
        panels.append(sweep.panel(results, metric))
        points = [one for one in panels[-1].series[0].points if not math.isnan(one.y)]
        if points:
            words.append(f"{metric.name.capitalize()} at epsilon {short(study.epsilon)} {_span(points, knob.name)}. "
                         f"{sweep.differences(results, 0, metric.key)}")
    title = words[0].partition(". ")[0] if words else f"No value of {knob.name} could be measured"
    return Figure(f"settings-{knob.id}", title, Axis(knob.name, knob.logarithmic), share_axis("mean over targets"),
                  panels, [*words, STARTS_DIFFER, *sweep.notes(results)])


def settings(stage: Stage) -> Experiment:
    """Three figures: embedding_dim, alpha and kernel_bandwidth, with noise at the study's epsilon and without."""
    sweeps = [(knob, _sweep(stage, knob)) for knob in _knobs(stage.study)]
    jobs = [[dataclasses.replace(job, key=f"{knob.id}: {job.key}") for job in sweep.jobs()] for knob, sweep in sweeps]

    def draw(results: List[Result]) -> List[Figure]:
        rest = iter(results)
        return [_draw(knob, sweep, list(itertools.islice(rest, len(of_knob))), stage.study)
                for (knob, sweep), of_knob in zip(sweeps, jobs)]

    return Experiment("settings", list(itertools.chain.from_iterable(jobs)), draw)


def flags(one: Settings) -> str:
    """As `privatemail collection create` takes them. one: its alpha is a number."""
    assert one.alpha is not None
    text = (f"--dim {one.embedding_dim} --alpha {exact(one.alpha)} --bandwidth {exact(one.kernel_bandwidth)} --steps "
            f"{one.steps} --label-graph {one.label_graph} --start {one.start}")
    if one.kernel != Settings.kernel:
        text += f" --kernel {one.kernel}"
    if one.start_stddev != Settings.start_stddev:
        text += f" --start-stddev {exact(one.start_stddev)}"
    return text if one.normalise else f"{text} --no-normalise"


def tuning_study(study: Study) -> Study:
    """The study with its rows, such as a collection's public anchors, split anew: of every class as many rows as two
    fifths of the smallest one are anchors, up to a fifth of the smallest are targets, the others are the gallery."""
    classes, sizes = np.unique(study.rows.labels, return_counts=True)
    least = int(min(sizes, default=4))
    if least < 4:
        raise wrong("labels", f"must have at least 4 rows of every class to tune on, but class "
                              f"{classes[sizes.argmin()]} has {least}")
    return dataclasses.replace(study, anchors_per_class=2 * least // 5,
                               targets=min(study.targets, len(classes) * max(1, least // 5)))


def _grid(study: Study) -> List[Settings]:
    alpha = study.settings.alpha
    alphas = [alpha / 2, alpha, 2 * alpha] if alpha else [0, _usual_alpha(study) / 2, _usual_alpha(study)]
    grid = itertools.product(_dims(study, (2, 4)), alphas, (1., 3., 6.), (5, 10, 15))
    return [dataclasses.replace(study.settings, embedding_dim=dim, alpha=alpha, kernel_bandwidth=bandwidth, steps=steps)
            for dim, alpha, bandwidth, steps in grid]


class _Tried(NamedTuple):
    """The scores of settings."""

    condition: Condition
    precision: Band
    fidelity: Band


def _ranked(sweep: Sweep, results: List[Result]) -> List[_Tried]:
    """By fidelity among those within a hundredth of the best precision, again and again."""
    tried = []
    for number, condition in enumerate(sweep.conditions):
        precision, fidelity = (sweep.band(results, number, 0, key) for key in ("class_share", "fidelity"))
        if not math.isnan(precision.mean):
            tried.append(_Tried(condition, precision, fidelity))
    ranked = []
    while tried:
        enough = max(one.precision.mean for one in tried) - _AS_GOOD
        ranked.append(max((one for one in tried if one.precision.mean >= enough), key=lambda one: one.fidelity.mean))
        tried.remove(ranked[-1])
    return ranked


def _scored_again(best: Condition, study: Study) -> str:
    """The best settings on other splits than those that chose them."""
    seeds = range(study.seeds + 1, 2 * study.seeds + 1)
    try:
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            fresh = list(pool.map(lambda seed: best.run(0, seed, f"tune/{best.name}"), seeds))
    except FailedPrecondition as error:
        return f"On fresh splits it cannot be measured ({error})."
    precision, fidelity = (with_band(band_of_scores([result[key] for result in fresh], seed=1))
                           for key in ("class_share", "fidelity"))
    return (f"On {counted(study.seeds, 'fresh split')} of the same rows its precision@{study.k} is {precision} and its "
            f"fidelity@{study.k} {fidelity}.")


def _about_best(ranked: List[_Tried], study: Study) -> List[str]:
    worst = min(ranked, key=lambda one: one.precision.mean)
    return [
        f"The best at epsilon {short(study.epsilon)} is {ranked[0].condition.name}.",
        _scored_again(ranked[0].condition, study),
        f"The bars are of the splits that chose, where the best of {len(ranked)} tends to look better than it is. The "
        f"least precision@{study.k} among them is {with_band(worst.precision)}, with {worst.condition.name}.",
        f"Of every class {study.anchors_per_class} rows were anchors here. With another number of anchors, as in the "
        "collection that the settings are for, a release has other noise."
    ]


def _draw_best(sweep: Sweep, results: List[Result], study: Study) -> Figure:
    ranked = _ranked(sweep, results)
    shown = ranked[:_SHOWN]
    bars = {f"precision@{study.k}": [one.precision for one in shown],
            f"fidelity@{study.k}": [one.fidelity for one in shown]}
    series = [Series(name, [point(x, band) for x, band in enumerate(bands)], "bars") for name, bands in bars.items()]
    title, words = f"None of {len(sweep.conditions)} settings could be measured", []
    if ranked:
        best, words = ranked[0], _about_best(ranked, study)
        title = (f"Of {len(sweep.conditions)} settings {best.condition.name} find most at epsilon "
                 f"{short(study.epsilon)}: precision@{study.k} {short(best.precision.mean)}, fidelity@{study.k} "
                 f"{short(best.fidelity.mean)}")
    return Figure("tune", title, Axis(categories=tuple(one.condition.name for one in shown)),
                  share_axis("mean over targets"), [Panel("", series)] if ranked else [],
                  [*words, "Only the rows given were read; if they are a collection's public anchors, this spends no "
                   "budget.", STARTS_DIFFER, *sweep.notes(results)])


def tune(stage: Stage) -> Experiment:
    """A grid over embedding_dim, alpha, kernel_bandwidth and steps. stage: of tuning_study.

    The figure has the ten best, its words their scores on fresh splits.
    """
    study = stage.study

    def condition(one: Settings) -> Condition:
        return building(flags(one), stage, lambda _: one, {"epsilon": study.epsilon, "delta": study.delta}, fixed=True)

    sweep = Sweep("tune", list(map(condition, _grid(study))), [0], study.seeds)
    return Experiment("tune", sweep.jobs(), lambda results: [_draw_best(sweep, results, study)])

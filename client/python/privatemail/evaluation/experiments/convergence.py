"""Iterations: scores and the server's objective against their number; and releases before and after alignment."""

import dataclasses
import functools
import math
from typing import Dict, List, Optional

import numpy as np

from privatemail.evaluation.study import (Axis, Band, Experiment, Figure, Floats, Ints, Job, Panel, Point, Result,
                                          Series, Study)
from privatemail.evaluation.sweep import (Condition, Stage, Sweep, building, chance, counted, exact, metrics,
                                          of_every_class, point, share_axis, short, with_band)

_STEPS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15)
_ITERATIONS = 15  # of the objective
_SMALLEST_RISE = 1e-12  # of its size; less is rounding
_MOST_CLASSES = 10  # that are drawn


def convergence(stage: Stage) -> Experiment:
    """Scores with T iterations on either side, with and without noise; and the server's objective after each.

    The papers claim that the objective never rises: the words say whether it did.
    """
    study = stage.study

    def condition(name: str, epsilon: Optional[float]) -> Condition:
        return building(name, stage, lambda steps: dataclasses.replace(study.settings, steps=int(steps)),
                        {"epsilon": epsilon, "delta": study.delta})

    def objective(seed: int) -> Result:
        return dict(zip(("as_defined", "scaled"), stage.scene(seed).objective(_ITERATIONS)))

    sweep = Sweep("convergence", [condition(f"epsilon {short(study.epsilon)}", study.epsilon),
                                  condition("without noise", None), chance(stage), of_every_class(stage)],
                  list(_STEPS), study.seeds)
    of_scores = sweep.jobs()
    objectives = [Job(f"objective, seed {seed}", functools.partial(objective, seed), work=3, split=seed)
                  for seed in range(1, study.seeds + 1)]
    return Experiment("convergence", of_scores + objectives,
                      lambda results: [_draw_scores(sweep, study, results[:len(of_scores)]),
                                       _draw_objective(results[len(of_scores):])])


def _draw_scores(sweep: Sweep, study: Study, results: List[Result]) -> Figure:
    recall = metrics(study.k)[0]
    panels = [sweep.panel(results, metric) for metric in metrics(study.k)]
    titles, words = [], []
    for number, where in enumerate((f"At {sweep.conditions[0].name}", "Without noise")):
        points = [one for one in panels[0].series[number].points if not math.isnan(one.y)]
        if not points:
            continue  # refused
        most = max(points, key=lambda one: one.y)
        enough = next(one for one in points if one.y >= .95 * most.y)
        if most.y > 0:
            titles.append(f"{where} T = {enough.x:g} gives 95 % of the best {recall.name}")
            reached = (f"{where} {recall.name} is at most {with_band(Band(most.y, most.low, most.high))}, with T = "
                       f"{most.x:g}, and has 95 % of that with T = {enough.x:g}.")
        else:
            titles.append(f"{where} nothing is found with any T")
            reached = f"{where} {recall.name} is 0 with every T."
        words.append(f"{reached} {sweep.differences(results, number, recall.key)}")
    words.append("Each T is a run of its own, in which the server starts elsewhere: the lines are no trajectories.")
    return Figure("convergence-recall", [*titles, f"Not measured: {recall.name} against iterations"][0],
                  Axis("iterations T, of the server and after a release"), share_axis("mean over targets"), panels,
                  words + sweep.notes(results))


def _monotone(objective: str, runs: List[List[float]]) -> str:
    """Whether it never rose, as the papers claim."""
    rises = sum(int((np.diff(run) > _SMALLEST_RISE * np.abs(run[:-1])).sum()) for run in runs)
    steps = counted(sum(max(0, len(run) - 1) for run in runs), "iteration")
    rose = f"is not monotone: it rose in {rises} of" if rises else "never rose in"
    return f"{objective} {rose} {steps} of {counted(len(runs), 'run')}"


def _draw_objective(results: List[Result]) -> Figure:
    measured = [result for result in results if "refused" not in result]
    figure = Figure("convergence-objective", "Not measured: the server's objective against iterations",
                    Axis("iterations"), Axis("objective at norm sqrt(n), divided by n"), [Panel("", [])],
                    [f"Not measured in every run: {one['refused']}." for one in results if "refused" in one][:1])
    if not measured:
        return figure
    scaled = [result["scaled"] for result in measured]
    length = min(map(len, scaled))  # of the runs that still have a finite number
    runs = np.array([run[:length] for run in scaled])
    points = [point(i + 1, Band(*band)) for i, band in enumerate(zip(runs.mean(0), runs.min(0), runs.max(0)))]
    monotone = _monotone("At constant norm, as drawn, the server's objective", scaled)
    as_defined = _monotone("The objective as the papers define it, of the iterate,",
                           [one["as_defined"] for one in measured])
    words = [
        *figure.words, f"{as_defined}.", f"{monotone}.",
        f"A rise by less than {_SMALLEST_RISE} of its size counts as rounding, not as a rise."
    ]
    if points:
        told = [points[i] for i in sorted({0, min(4, length - 1), length - 1})]
        words.append("As drawn it is " + ", ".join(f"{short(one.y)} after iteration {one.x}" for one in told) +
                     ", as a mean over runs.")
    if length < _ITERATIONS:
        words.append(f"After iteration {length} the objective of a run is no finite number: the series ends there.")
    words.append(f"Band: from the least to the greatest of {counted(len(measured), 'run')}, one a split.")
    return dataclasses.replace(figure, title=monotone, panels=[Panel("", [Series("objective", points)])], words=words)


def alignment(stage: Stage) -> Experiment:
    """Dots by class: the server's anchors; one release at the least, middle and largest epsilon, before and after."""
    study = stage.study
    count = len(study.epsilons)
    epsilons = sorted({study.epsilons[i] for i in (0, count // 2, count - 1)})
    classes = _chosen_classes(study.rows.labels)

    def release(epsilon: float, seed: int) -> Result:
        scene, split = stage.scene(seed), stage.split(seed)
        target = int(np.isin(split.targets.labels, classes).argmax())  # the first one whose class is drawn
        released = scene.release(target, epsilon=epsilon, delta=study.delta, part=f"alignment/{exact(epsilon)}")
        result = {"residual": [released["residual"]], "server": _dots(scene.anchor_rows, split.anchors.labels, classes)}
        for when, prefix in (("before", ""), ("after", "aligned_")):
            slots = released[prefix + "slots"]
            own = [released["slot"]]
            result[f"anchors_{when}"] = _dots(released[prefix + "anchors"], split.anchors.labels, classes)
            result[f"slots_{when}"] = _dots(slots, scene.slot_labels, classes)
            result[f"target_{when}"] = _dots(slots[own], scene.slot_labels[own], classes)
        return result

    seeds = range(1, study.seeds + 1)
    jobs = [Job(f"at {exact(epsilon)}, seed {seed}", functools.partial(release, epsilon, seed), work=.05,
                split=seed)
            for epsilon in epsilons for seed in seeds]

    def draw(results: List[Result]) -> List[Figure]:
        by_epsilon = {epsilon: results[i * study.seeds:(i + 1) * study.seeds] for i, epsilon in enumerate(epsilons)}
        names = {label: study.rows.class_names[label] for label in classes if study.rows.class_names}
        return [_draw_alignment(by_epsilon, names)]

    return Experiment("alignment", jobs, draw)


def _chosen_classes(labels: Ints) -> Ints:
    distinct: Ints = np.unique(labels)
    count = min(len(distinct), _MOST_CLASSES)
    chosen: Ints = distinct[np.arange(count) * len(distinct) // count]
    return chosen


def _dots(rows: Floats, labels: Ints, classes: Ints) -> List[float]:
    """x, y and class of every row, n x any, that is of one of the classes, one after the other."""
    plane = np.hstack([rows, np.zeros((len(rows), 1))])[:, :2]
    triples: List[float] = np.column_stack([plane, labels])[np.isin(labels, classes)].ravel().tolist()
    return triples


def _scatter(name: str, dots: List[float]) -> Series:
    triples = np.reshape(dots, (-1, 3)).tolist()
    return Series(name, [Point(x, y, group=int(label)) for x, y, label in triples], "scatter")


def _draw_alignment(by_epsilon: Dict[float, List[Result]], class_names: Dict[int, str]) -> Figure:
    """by_epsilon: one result a split."""
    panels: List[Panel] = []
    residuals, words = [], []
    for epsilon, results in by_epsilon.items():
        at = f"epsilon {short(epsilon)}"
        aligned = [result for result in results if "refused" not in result]
        refused = [result["refused"] for result in results if "refused" in result]
        if aligned:
            shown = aligned[0]
            if not panels:
                panels.append(Panel("the server's anchors", [_scatter("anchors", shown["server"])]))
            for when in ("before", "after"):
                panels.append(Panel(f"{at}, {when} alignment", [
                    _scatter("anchors", shown[f"anchors_{when}"]), _scatter("slots", shown[f"slots_{when}"]),
                    _scatter("the target's slot", shown[f"target_{when}"])
                ]))
            residual = short(float(np.mean([result["residual"] for result in aligned])))
            residuals.append(f"{residual} at {at}")
            words.append(f"At {at} the anchors' residual under the alignment is {residual} as a mean over "
                         f"{counted(len(aligned), 'release')} (0: they fit perfectly; 1: no better than their mean).")
        if refused:
            words.append(f"At {at} {len(refused)} of {counted(len(results), 'release')} could not be made or aligned "
                         f"({refused[0]}).")
    title = f"The anchors' residual under the alignment is {', '.join(residuals)}" if residuals else \
        "No release could be made and aligned"
    return Figure("alignment", title, Axis("first coordinate"), Axis("second coordinate"), panels, words, class_names)

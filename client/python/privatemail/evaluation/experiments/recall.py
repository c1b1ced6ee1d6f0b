"""Recall, precision and fidelity against epsilon: the joint scheme, and what it is compared with."""

from typing import Any, Dict, List

from privatemail.evaluation import _seeded
from privatemail.evaluation.baselines import Baseline
from privatemail.evaluation.stats import label_hiding_ceiling
from privatemail.evaluation.study import Band, Experiment, Figure, Panel, Result, Series, Study
from privatemail.evaluation.sweep import (CHANCE, EPSILON_AXIS, FEATURES, OF_EVERY_CLASS, Condition, Metric, Stage,
                                          Sweep, asking, baseline, chance, closest, curve, feature_search, metrics,
                                          of_every_class, percent, scored_rows, share_axis, short, with_band)

_JOINT, _NO_NOISE = "joint, gaussian", "joint without noise"
_CEILING = "ceiling of answers from one private release"
_SHARED = (_NO_NOISE, FEATURES, OF_EVERY_CLASS, CHANCE, _CEILING)  # in every panel

_MESSAGES = {
    "hit": "At epsilon {epsilon} the joint scheme finds the class in {joint} of queries; {k} items of every class, "
           "with nothing private sent, in {trivial} at epsilon 0",
    "class_share": "At epsilon {epsilon}, {joint} of the joint scheme's {k} items have the target's class; with "
                   "nothing private sent, {trivial} of {k} items picked from {k} of every class",
    "fidelity": "At epsilon {epsilon} the joint scheme returns {joint} of the true nearest {k}; {k} items of every "
                "class, with nothing private sent, {trivial}",
}


def _private(stage: Stage) -> List[Condition]:
    """Neighbours are any two targets; Inference Privacy, which hides less, has an experiment of its own."""

    def condition(mechanism: str, private_iterations: int = 1) -> Condition:
        fixed: Dict[str, Any] = {"delta": stage.study.delta, "mechanism": mechanism,
                                 "private_iterations": private_iterations}
        suffix = f", {private_iterations} private iterations" if private_iterations > 1 else ""
        return asking(f"joint, {mechanism}{suffix}", stage, lambda epsilon: {"epsilon": epsilon, **fixed})

    once = [condition(one["name"]) for one in _seeded.mechanisms() if one["protects"] == "value"]
    # The first paper's scheme: Laplace noise after each of two iterations. Its delta is for their composition alone.
    twice = [condition(name, private_iterations=2) for name in ("laplace", "published-laplace")]
    return once + twice


def _embedded_together(stage: Stage) -> Condition:
    """All rows in one embedding, targets under their labels: what the papers compare with."""
    return Condition("supervised embedding, not private, given the targets' labels",
                     lambda _x, seed, _part: scored_rows(stage, seed, *stage.scene(seed).embed_together()), fixed=True)


def _panels(series: List[Series]) -> List[Panel]:
    """Twenty lines in one plot would cover each other."""
    ours = [one for one in series if one.name.startswith("joint")]
    published = [one for one in ours if "published" in one.name]
    parts = {"PrivateMail, proven": [one for one in ours if one not in published],
             "PrivateMail, as published: no proven guarantee": published,
             "baselines": [one for one in series if one not in ours]}
    return [Panel(title, [one for one in series if one in part or one.name in _SHARED])
            for title, part in parts.items()]


def _noise(at: Dict[str, List[Band]], study: Study, metric: Metric) -> str:
    """at: bands of conditions, by epsilon."""
    joint = at[_JOINT]
    return (f"With proven Gaussian noise at epsilon {short(study.epsilons[0])} {metric.name} is {with_band(joint[0])}, "
            f"at epsilon {short(study.epsilons[-1])} {with_band(joint[-1])}, without noise "
            f"{with_band(at[_NO_NOISE][0])}; a search over the features that hides nothing has "
            f"{short(at[FEATURES][0].mean)}, {study.k} items of every class at epsilon 0 "
            f"{short(at[OF_EVERY_CLASS][0].mean)}, items drawn blindly {short(at[CHANCE][0].mean)}.")


def _ceiling(epsilon: float, study: Study, classes: int, metric: Metric) -> float:
    return label_hiding_ceiling(epsilon, study.delta, classes, study.k if metric.key == "hit" else 1)


def _about_ceiling(study: Study, classes: int, metric: Metric) -> str:
    at = " and ".join(f"{short(_ceiling(epsilon, study, classes, metric))} at epsilon {short(epsilon)}"
                      for epsilon in sorted({study.epsilons[0], study.epsilons[-1]}))
    return (f"The ceiling is the most {metric.name} of answers that are computed from one release alone, where that is "
            f"(epsilon, delta)-DP for two targets of equal or different classes: {at} for {classes} classes, as a mean "
            "over classes of equal weight.")


def _bound(sweep: Sweep, baselines: List[Baseline]) -> str:
    hiding = {CHANCE, *(one.name for one in baselines if one.hides_targets)}
    names = [condition.name for condition in sweep.conditions]
    bound = ", ".join(f'"{name}"' for name in names if name in hiding)
    free = ", ".join(f'"{name}"' for name in names if name not in hiding)
    return (f"It binds {bound}. These it does not bind, or is not known to, and they may stand above it: {free}. The "
            "server answers the joint scheme for every class, and the client picks; so does the client that downloads "
            "items of every class. What is not private, or protects rows of the gallery only, is no such release of a "
            "target.")


def _protected(baselines: List[Baseline]) -> List[str]:
    whom: Dict[str, List[str]] = {}
    for one in baselines:
        if one.private:
            remark = f" {one.remark}" if one.remark else ""
            whom.setdefault(f"{one.protects}.{remark}", []).append(f'"{one.name}"')
    words = ["Lines with `published` in their name follow printed formulas and are no proven guarantee."]
    for text, names in whom.items():
        words.append(f"What {', '.join(names)} protect{'s' if len(names) == 1 else ''}: {text}")
    return words


def _parts(baselines: List[Baseline]) -> List[str]:
    return [f'"{one.name}" embeds {short(one.gallery_share)} of the gallery: the rest never comes back, and its '
            f"fidelity is about {short(one.gallery_share)} at the most." for one in baselines if one.gallery_share < 1]


def recall(stage: Stage, baselines: List[Baseline]) -> Experiment:
    """A figure for each score, with three panels: proven lines, those as published, and baselines."""
    study = stage.study
    conditions = [
        *_private(stage), asking(_NO_NOISE, stage, lambda _: {"epsilon": None}, fixed=True), feature_search(stage),
        _embedded_together(stage), *(baseline(stage, one) for one in baselines), of_every_class(stage), chance(stage)
    ]
    sweep = Sweep("recall", conditions, list(study.epsilons), study.seeds)

    def draw_one(results: List[Result], metric: Metric) -> Figure:
        classes = len(set(study.rows.labels.tolist()))
        panel = sweep.panel(results, metric)
        bands = {one.name: [Band(point.y, point.low, point.high) for point in one.points] for one in panel.series}
        at = closest(study.epsilons, study.epsilon)
        title = _MESSAGES[metric.key].format(epsilon=short(study.epsilons[at]), k=study.k,
                                             joint=percent(bands[_JOINT][at].mean),
                                             trivial=percent(bands[OF_EVERY_CLASS][0].mean))
        words = [_noise(bands, study, metric)]
        if metric.key == "fidelity":
            words += _parts(baselines)
        else:
            panel.series.append(curve(_CEILING, study.epsilons,
                                      lambda epsilon: _ceiling(epsilon, study, classes, metric)))
            words.append(_about_ceiling(study, classes, metric))
            words.append(_bound(sweep, baselines) if metric.key == "hit" else
                         "It binds the lines that the ceiling of the recall binds.")
        if metric.key == "hit":
            words += _protected(baselines)
        return Figure(f"{metric.name.split('@')[0]}-epsilon", title, EPSILON_AXIS, share_axis(panel.title),
                      _panels(panel.series), words + sweep.notes(results))

    return Experiment("recall", sweep.jobs(),
                      lambda results: [draw_one(results, metric) for metric in metrics(study.k)])

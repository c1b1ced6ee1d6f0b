"""Mechanisms of related work: inference privacy (Tian and Tandon) and the bounded Gaussian (Chen and Hale)."""

import dataclasses
from typing import Any, Callable, Dict, List

import numpy as np

from privatemail.evaluation import _seeded
from privatemail.evaluation.study import Axis, Experiment, Figure, Job, Panel, Point, Result, Series, Study
from privatemail.evaluation.sweep import (EPSILON_AXIS, Condition, Stage, Sweep, asking, exact, metrics, share_axis,
                                          short, with_band)

_RADIUS = .5  # of the figure against epsilon
_RADII = (.05, .1, .2, .5, 1, 2)
_FAMILY_RADII = (.1, .2, .5, 1)
_EPSILONS = (.1, .2, .5, 1, 1.5, 2, 2.5, 3)  # of Chen and Hale's table 1
_LAWS = {
    "generalised": "generalised Gaussian, as published",
    "printed": "bounded, as published",
    "exact": "bounded, exact",
    "classical": "unbounded, as published (proven below epsilon 1)",
    "analytic": "unbounded, analytic",
}


def bounded_gaussian(stage: Stage) -> Experiment:
    """Variances that five calibrations give for two values in [0, 10] and [1, 9] that move by 4 and 2, by epsilon."""
    delta = stage.study.delta

    def variances() -> Result:
        by_epsilon = [_seeded.bounded_gaussian_variances(epsilon, delta) for epsilon in _EPSILONS]
        return {law: [variances[law] for variances in by_epsilon] for law in _LAWS}

    job = Job(f"table 1, delta {exact(delta)}", variances, work=.05)
    return Experiment("bounded-gaussian", [job], lambda results: [_draw_variances(results[0], delta)])


def _draw_variances(result: Result, delta: float) -> Figure:
    factors = np.divide(result["printed"], result["exact"])
    words = []
    for i in (0, -1):
        of_law = {law: short(result[law][i]) for law in _LAWS}
        less = short(100 * (1 - 1 / factors[i]))
        unproven = "" if _EPSILONS[i] < 1 else ", which is not proven from epsilon 1 on"
        words.append(
            f"At epsilon {short(_EPSILONS[i])} the printed formula asks for a variance of {of_law['printed']}, the "
            f"exact analysis for {of_law['exact']}, {less} % less at the same claimed epsilon, and the generalised "
            f"Gaussian for {of_law['generalised']}. Unbounded Gaussian noise that is (epsilon, delta)-private at delta "
            f"{short(delta)} needs {of_law['analytic']} by the analytic formula; the published one says "
            f"{of_law['classical']}{unproven}.")
    words.append("The query is the paper's: two values in [0, 10] and [1, 9] with L2 sensitivity sqrt(20).")
    series = [Series(name, list(map(Point, _EPSILONS, result[law]))) for law, name in _LAWS.items()]
    return Figure(
        "bounded-gaussian", f"The printed formula of the bounded Gaussian asks for {short(factors.min())} to "
        f"{short(factors.max())} times the variance that its epsilon needs", EPSILON_AXIS,
        Axis("variance of the noise in each value, before the box cuts it", logarithmic=True), [Panel("", series)],
        words)


def _by_mechanism(stage: Stage, name: str, xs: List[float], cost: Callable[[float], Dict[str, Any]]) -> Sweep:
    """Every proven mechanism on output or input. cost: epsilon and radius."""

    def condition(mechanism: Dict[str, Any]) -> Condition:
        fixed = {"delta": stage.study.delta, "mechanism": mechanism["name"]}
        return asking(mechanism["name"], stage, lambda x: {**fixed, **cost(x)})

    proven = [one for one in _seeded.mechanisms() if one["protects"] != "value" and not one["published"]]
    conditions = [condition(one) for one in proven]
    return Sweep(name, conditions + [_without_noise(stage)], xs, stage.study.seeds)


def _gauss_output(stage: Stage) -> Sweep:
    """The family of Tian and Tandon's figure 5: Gaussian noise on the output, a line a radius, against epsilon."""

    def condition(radius: float) -> Condition:
        cost = {"delta": stage.study.delta, "mechanism": "gauss-output", "radius": radius}
        return asking(f"gauss-output, radius {short(radius)}", stage, lambda epsilon: {**cost, "epsilon": epsilon})

    return Sweep("epsilon by radius", [*map(condition, _FAMILY_RADII), _without_noise(stage)],
                 list(stage.study.epsilons), stage.study.seeds)


def _without_noise(stage: Stage) -> Condition:
    return asking("without noise", stage, lambda _: {}, fixed=True)


def inference_privacy(stage: Stage) -> Experiment:
    """Figures 3 to 5 of Tian and Tandon: against the radius, against epsilon, and against epsilon at several radii."""
    study = stage.study
    radius_axis = dataclasses.replace(EPSILON_AXIS, label="radius within which targets are hidden (unit vectors)")
    by_radius = _by_mechanism(stage, f"radius at epsilon {exact(study.epsilon)}", list(_RADII),
                              lambda radius: {"epsilon": study.epsilon, "radius": radius})
    by_epsilon = _by_mechanism(stage, f"epsilon at radius {exact(_RADIUS)}", list(study.epsilons),
                               lambda epsilon: {"epsilon": epsilon, "radius": _RADIUS})
    parts = (("radius", f"At epsilon {short(study.epsilon)}", "radius", radius_axis, by_radius),
             ("epsilon", f"Within radius {short(_RADIUS)}", "epsilon", EPSILON_AXIS, by_epsilon),
             ("radii", "With noise on the output", "epsilon", EPSILON_AXIS, _gauss_output(stage)))
    jobs = [[dataclasses.replace(job, key=f"{sweep.name}: {job.key}") for job in sweep.jobs()] for *_, sweep in parts]

    def draw(results: List[Result]) -> List[Figure]:
        figures = []
        for (figure, where, quantity, axis, sweep), of_sweep in zip(parts, jobs):
            part, results = results[:len(of_sweep)], results[len(of_sweep):]
            title = f"{where} {_range(sweep, study, part, quantity)}"
            figures.append(Figure(f"inference-privacy-{figure}", title, axis, share_axis("mean over targets"),
                                  [sweep.panel(part, metric) for metric in metrics(study.k)],
                                  _words(sweep, study, part, quantity)))
        return figures

    return Experiment("inference-privacy", [job for of_sweep in jobs for job in of_sweep], draw)


def _range(sweep: Sweep, study: Study, results: List[Result], quantity: str) -> str:
    """The least and the most recall with noise, and where they are. The last condition is that without noise."""
    recall = metrics(study.k)[0]
    means = np.array([[sweep.band(results, condition, x, recall.key).mean for x in range(len(sweep.xs))]
                      for condition in range(len(sweep.conditions))])
    noisy = means[:-1]
    if np.isnan(noisy).all():
        return f"{recall.name} is not known for any mechanism"

    def at(index: int) -> str:
        condition, x = divmod(index, len(sweep.xs))
        return f"{short(noisy[condition, x])} ({sweep.conditions[condition].name} at {quantity} {short(sweep.xs[x])})"

    return (f"{recall.name} is from {at(int(np.nanargmin(noisy)))} to {at(int(np.nanargmax(noisy)))}, without noise "
            f"{short(means[-1, 0])}")


def _words(sweep: Sweep, study: Study, results: List[Result], quantity: str) -> List[str]:
    words = []
    *noisy, without_noise = range(len(sweep.conditions))
    for metric in metrics(study.k):
        for condition in noisy if metric.key != "class_share" else []:
            first, last = (sweep.band(results, condition, x, metric.key) for x in (0, len(sweep.xs) - 1))
            exactly = sweep.band(results, without_noise, 0, metric.key).mean
            words.append(f"{sweep.conditions[condition].name}: {metric.name} goes from {with_band(first)} at "
                         f"{quantity} {short(sweep.xs[0])} to {with_band(last)} at {short(sweep.xs[-1])}; without "
                         f"noise it is {short(exactly)}.")
    return [*words, "The class is not hidden by any of these; slots are in place all the same.", *sweep.notes(results)]

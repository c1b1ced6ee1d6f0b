"""Ablation: the scores without the target's feature, its label or the slots, and with other graphs and kernels."""

import dataclasses
import math
from typing import Any, Callable, Dict, List, Optional

import numpy as np

from privatemail.evaluation import _seeded, stats
from privatemail.evaluation.study import Axis, Band, Experiment, Figure, Panel, Result, Series, Study
from privatemail.evaluation.sweep import (STARTS_DIFFER, Condition, Metric, Stage, Sweep, asking, building, exact,
                                          metrics, of_every_class, percent, point, share_axis, short, with_band)

_AS_IT_IS, _RANDOM_FEATURE, _WRONG_LABEL, _NO_SLOTS = range(4)  # the first conditions
_LABELS = (_AS_IT_IS, _RANDOM_FEATURE, _WRONG_LABEL)  # of which the share of the label is computed
_LABEL_GRAPHS = ("balanced", "distance", "kernel", "one_hot_kernel")
_KERNELS = {"two_sigma_squared": "2 s^2", "sigma": "s", "sigma_squared": "s^2"}
_NOISE, _NO_NOISE = range(2)  # indices of the xs: 1 with noise, 0 without


def ablation(stage: Stage) -> Experiment:
    """Bars with and without proven Gaussian noise at the study's epsilon, one change at a time."""
    study = stage.study

    def asked(name: str, **changes: Any) -> Condition:
        return _with_and_without_noise(study, lambda cost: asking(name, stage, lambda _: {**cost, **changes}))

    def built(name: str, **changes: Any) -> Condition:
        settings = dataclasses.replace(study.settings, **changes)
        return _with_and_without_noise(study, lambda cost: building(name, stage, lambda _: settings, cost))

    conditions = [asked("as it is"), asked("random feature", feature="random"), asked("wrong label", label="wrong"),
                  asked("without slots", slots=False)]
    for graph in _LABEL_GRAPHS:
        if graph != study.settings.label_graph:
            # Each graph has an alpha of its own, which is changed as well.
            alpha = _seeded.default_alpha(graph, study.rows.labels)
            conditions.append(built(f"label graph {graph} with alpha {short(alpha)}", label_graph=graph, alpha=alpha))
    conditions += [built(f"kernel over {formula}", kernel=kernel) for kernel, formula in _KERNELS.items()
                   if kernel != study.settings.kernel]
    sweep = Sweep(f"ablation at {exact(study.epsilon)}", [*conditions, of_every_class(stage)], [1, 0], study.seeds)
    return Experiment("ablation", sweep.jobs(), lambda results: [_Ablation(sweep, study, results).figure()])


def _with_and_without_noise(study: Study, condition: Callable[[Dict[str, Any]], Condition]) -> Condition:
    """The condition of the study's cost where x is 1, and of none where it is 0."""
    noisy, noiseless = condition({"epsilon": study.epsilon, "delta": study.delta}), condition({})
    return dataclasses.replace(noisy, run=lambda x, seed, part: (noisy if x else noiseless).run(x, seed, part))


@dataclasses.dataclass(frozen=True)
class _Ablation:
    """The results of an ablation, drawn and in words."""

    sweep: Sweep
    study: Study
    results: List[Result]

    def figure(self) -> Figure:
        names = tuple(condition.name for condition in self.sweep.conditions if not condition.fixed)
        scores = metrics(self.study.k)
        return Figure("ablation", self._title(scores[0]), Axis(categories=names), share_axis("mean over targets"),
                      [self._bars(metric) for metric in scores], self._words(scores))

    def _mean(self, condition: int, x: int, metric: Metric) -> float:
        return self.sweep.band(self.results, condition, x, metric.key).mean

    def _samples(self, condition: int, x: int, metric: Metric) -> List[float]:
        return self.sweep.samples(self.results, condition, x, metric.key)

    def _bars(self, metric: Metric) -> Panel:
        """Bars of each condition, and of those that are the same at every x a dashed line."""
        changes = [number for number, condition in enumerate(self.sweep.conditions) if not condition.fixed]

        def bars(name: str, x: int) -> Series:
            bands = [self.sweep.band(self.results, number, x, metric.key) for number in changes]
            return Series(name, [point(category, band) for category, band in enumerate(bands)], "bars")

        series = [bars(f"epsilon {short(self.study.epsilon)}", _NOISE), bars("without noise", _NO_NOISE)]
        for number, condition in enumerate(self.sweep.conditions):
            if condition.fixed:
                band = self.sweep.band(self.results, number, 0, metric.key)
                series.append(Series(condition.name, [point(0, band), point(len(changes) - 1, band)], "reference"))
        return Panel(metric.title, series)

    def _label_alone(self, metric: Metric) -> Optional[Band]:
        """The share of the gain over a wrong label that a random feature under the right label retains.

        None: there is not certainly a gain. All three must have been measured.
        """
        own, random, wrong = (self._samples(condition, _NOISE, metric) for condition in _LABELS)
        return stats.band_of_ratio(np.subtract(random, wrong).tolist(), np.subtract(own, wrong).tolist())

    def _measured(self, metric: Metric) -> bool:
        return not any(math.isnan(self._mean(condition, _NOISE, metric)) for condition in _LABELS)

    def _title(self, metric: Metric) -> str:
        if not self._measured(metric):
            return f"Not measured at epsilon {short(self.study.epsilon)}: what {metric.name} owes to the label"
        own, random, wrong = (short(self._mean(condition, _NOISE, metric)) for condition in _LABELS)
        share = self._label_alone(metric)
        alone = f"The label alone gives {percent(share.mean)} of the gain in {metric.name} over a wrong label" \
            if share else f"The label is not shown to raise {metric.name}"
        return f"{alone}: {own} as it is, {random} with a random feature, {wrong} with a wrong label"

    def _words(self, scores: List[Metric]) -> List[str]:
        recall = scores[0]
        words = []
        if self._measured(recall):
            words += [self._label_in_words(metric) for metric in scores]
            over = "splits" if self.study.seeds > 1 else \
                "the targets of the one split, and say nothing of other splits"
            words.append(f"Intervals of such shares, where there are any, are Fieller's, 95 %, over {over}.")
        if not math.isnan(self._mean(_NO_SLOTS, _NOISE, recall)):
            words.append(f"Without slots {recall.name} is {self._beside_as_it_is(_NO_SLOTS, _NOISE, recall)}, and the "
                         "target's class is sent in the clear: the label graph of such a release has the target's "
                         "label in it, so its noise guarantees nothing about the class.")
        for number, condition in enumerate(self.sweep.conditions[_NO_SLOTS + 1:], _NO_SLOTS + 1):
            means = [self._mean(number, x, recall) for x in (_NOISE, _NO_NOISE)]
            if not condition.fixed and not all(map(math.isnan, means)):
                words.append(f"With {condition.name}, {recall.name} is "
                             f"{self._beside_as_it_is(number, _NOISE, recall)} at epsilon {short(self.study.epsilon)} "
                             f"and {self._beside_as_it_is(number, _NO_NOISE, recall)} without noise.")
        alpha = self.study.settings.alpha
        assert alpha is not None  # Stage has chosen it
        return [
            *words, "Differences from as it is have Student's 95 % interval over pairs of the same targets.",
            STARTS_DIFFER, f"As it is, alpha is {short(alpha)}; another label graph takes the alpha that "
            "`privatemail collection create` takes for it.", *self.sweep.notes(self.results)
        ]

    def _label_in_words(self, metric: Metric) -> str:
        share = self._label_alone(metric)
        if share is None:
            alone = (f"How much of {metric.name} the label alone gives cannot be said from these data: with the right "
                     "label it is not shown to be better than with a wrong one")
        else:
            interval = with_band(share) if share.high - share.low > 1e-6 else \
                f"{short(share.mean)} (the same each time, so that there is no interval)"
            alone = f"The label alone gives {interval} of what {metric.name} has above that with a wrong label"
        own, random, wrong = (short(self._mean(condition, _NOISE, metric)) for condition in _LABELS)
        return (f"{alone}. It is {own} with the target's own feature and label, {random} with a random feature, "
                f"{wrong} with a wrong label; without noise {short(self._mean(_AS_IT_IS, _NO_NOISE, metric))}.")

    def _beside_as_it_is(self, condition: int, x: int, metric: Metric) -> str:
        """Such as "0.8 instead of 0.6 (by 0.2 (0.1 to 0.3))": paired, of the same targets."""
        means = self._mean(condition, x, metric), self._mean(_AS_IT_IS, x, metric)
        words = f"{short(means[0])} instead of {short(means[1])}"
        if any(map(math.isnan, means)):
            return words
        more = stats.band_of_difference(self._samples(condition, x, metric), self._samples(_AS_IT_IS, x, metric), .95)
        return f"{words} (by {with_band(more)})" if more else words

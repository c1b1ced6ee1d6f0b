"""Conditions that experiments measure over a range of x, and parts of their figures."""

import dataclasses
import functools
import itertools
import math
import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from privatemail.errors import FailedPrecondition, InvalidArgument, wrong
from privatemail.evaluation import _seeded, data, stats
from privatemail.evaluation.study import (NOT_MEASURED, Axis, Band, Floats, Ints, Job, Panel, Point, Result, Series,
                                          Settings, Split, Study)

if TYPE_CHECKING:
    from privatemail.evaluation.baselines import Baseline  # which imports this module

FEATURES, CHANCE = "features, not private", "chance"
OF_EVERY_CLASS = "k of every class, nothing private sent"
STARTS_DIFFER = ("Every setting has a start of its own on the server, as every collection has: two of them partly "
                 "differ by their starts.")
EPSILON_AXIS = Axis("epsilon of one release (smaller is more private)", logarithmic=True)

_RISK = .05  # that any pair is said to differ, and does not
_TRIALS = 2  # that are cached: of 10,000 rows each has up to two graphs of 400 MB
_RANGES = {"k": (1, 10_000), "seeds": (1, 1000), "epsilon": (1e-6, 1e6), "delta": (1e-300, 1 - 2**-53)}


def share_axis(label: str) -> Axis:
    return Axis(label, low=0, high=1)


def exact(value: float) -> str:
    """The shortest text that reads back as the same number: "10", "0.1"."""
    text = repr(float(value))
    return text[:-2] if text.endswith(".0") else text


def short(value: float) -> str:
    """Three significant digits."""
    return "not known" if math.isnan(value) else f"{value:.3g}"


def percent(share: float) -> str:
    return "an unknown share" if math.isnan(share) else f"{short(100 * share)} %"


def counted(n: int, noun: str) -> str:
    """Such as "1 run" and "3 runs"."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


def with_band(band: Band) -> str:
    """Such as "0.95 (0.93 to 0.97)"."""
    interval = "" if math.isnan(band.mean) else f" ({short(band.low)} to {short(band.high)})"
    return short(band.mean) + interval


def point(x: float, band: Band) -> Point:
    return Point(x, band.mean, band.low, band.high)


def closest(xs: Sequence[float], x: float) -> int:
    """The index of the positive number whose ratio to x is nearest to 1."""
    return int(np.abs(np.log(np.divide(xs, x))).argmin())


def curve(name: str, xs: Sequence[float], height: Callable[[float], float]) -> Series:
    """A known function between the first and the last of ascending positive xs, as a reference."""
    return Series(name, [Point(x, height(x)) for x in np.geomspace(xs[0], xs[-1], 97).tolist()], "reference")


def _check(study: Study) -> None:
    values = [(field, getattr(study, field)) for field in _RANGES]
    for field, value in values + [("epsilons", epsilon) for epsilon in study.epsilons]:
        low, high = _RANGES["epsilon" if field == "epsilons" else field]
        if not low <= value <= high:
            raise wrong(field, f"must be between {low:g} and {high:g}, but is {value:g}")
    if not study.epsilons or not (np.diff(study.epsilons) > 0).all():
        raise wrong("epsilons", f"must be numbers in ascending order, but are {list(study.epsilons)}")


class Stage:
    """The splits, trials and scenes of a study, created at first use. Thread-safe.

    study: its alpha is a number. InvalidArgument: values out of range, named as in Study and Settings.
    """

    def __init__(self, study: Study) -> None:
        _check(study)
        self._labels = study.rows.labels
        self.study = dataclasses.replace(study, settings=self._with_alpha(study.settings))
        _seeded.check_settings(self.study.settings)
        self._lock = threading.Lock()
        self._split = functools.lru_cache(_TRIALS)(self._create_split)
        self._trial = functools.lru_cache(_TRIALS)(self._create_trial)
        items = len(self.split(1).gallery)
        if study.k > items:
            raise wrong("k", f"must be at most {items}, the gallery's rows, but is {study.k}")

    def _with_alpha(self, settings: Settings) -> Settings:
        if settings.alpha is not None:
            return settings
        return dataclasses.replace(settings, alpha=_seeded.default_alpha(settings.label_graph, self._labels))

    def _create_split(self, seed: int) -> Split:
        study = self.study
        return data.split(study.rows, study.anchors_per_class, study.targets, study.gallery_per_class, seed)

    def _create_trial(self, seed: int) -> _seeded.Trial:
        split = self.split(seed)
        return _seeded.Trial(split.anchors.features, split.anchors.labels, split.gallery.features, split.gallery.labels,
                             split.targets.features, split.targets.labels, k=self.study.k, seed=seed)

    def split(self, seed: int) -> Split:
        return self._split(seed)

    def trial(self, seed: int) -> _seeded.Trial:
        with self._lock:  # concurrent misses create one
            return self._trial(seed)

    def scene(self, seed: int, settings: Optional[Settings] = None) -> _seeded.Scene:
        """settings: of the collection; None: the study's. FailedPrecondition: the server refuses to build it."""
        return self.trial(seed).scene(self._with_alpha(settings or self.study.settings))


class Metric(NamedTuple):
    """A score of an answer."""

    key: str  # in a Result
    title: str
    name: str  # in sentences: "recall@8"


def metrics(k: int) -> List[Metric]:
    """Recall, precision and fidelity."""
    return [Metric("hit", f"Recall@{k} (the papers'): at least one of the {k} has the target's class", f"recall@{k}"),
            Metric("class_share", f"Precision@{k}: share of the {k} that have the target's class", f"precision@{k}"),
            Metric("fidelity", f"Fidelity@{k}: share of the non-private top {k} that came back", f"fidelity@{k}")]


@dataclasses.dataclass
class Condition:
    """A line of a figure.

    run: of (x, seed, part). part names sweep, condition and x, for draws that are to differ between them. fixed: the
    same at every x, of which run is told the first; drawn as a reference. work: of one job, beside the others.
    """

    name: str
    run: Callable[[float, int, str], Result]
    fixed: bool = False
    work: float = 1


def scored(stage: Stage, seed: int, asked: Tuple[Ints, float, int]) -> Result:
    """The scores of an answer of Scene.ask."""
    found, residual, unanswered = asked
    split = stage.split(seed)
    return {**stats.scores(found, split.gallery.labels, split.targets.labels, stage.trial(seed).nearest),
            "residual": [residual], "unanswered": [float(unanswered)]}


def scored_rows(stage: Stage, seed: int, gallery: Floats, targets: Floats) -> Result:
    """Scores of the k gallery rows nearest to each target in a common space, n x d and m x d.

    A target that is not finite is not answered, and none is if a gallery row is not finite.
    """
    answered = np.isfinite(targets).all(axis=1) & np.isfinite(gallery).all()
    found = np.full((len(targets), stage.study.k), -1)
    if answered.any():
        found[answered] = _seeded.nearest(targets[answered], gallery, stage.study.k)
    return scored(stage, seed, (found, 0, int((~answered).sum())))


def asking(name: str, stage: Stage, how: Callable[[float], Dict[str, Any]], fixed: bool = False) -> Condition:
    """Queries of the study's collection. how: the arguments of Scene.ask at x."""
    return Condition(name, lambda x, seed, _: scored(stage, seed, stage.scene(seed).ask(**how(x))), fixed)


def building(name: str, stage: Stage, settings: Callable[[float], Settings], how: Dict[str, Any],
             fixed: bool = False) -> Condition:
    """Queries of collections with settings of their own. Where the server refuses to build one, all scores are 0 and
    the result has "not_built"; FailedPrecondition: settings that no collection can have."""

    def run(x: float, seed: int, _: str) -> Result:
        try:
            scene = stage.scene(seed, settings(x))
        except InvalidArgument as error:
            raise FailedPrecondition(str(error)) from error
        except FailedPrecondition:
            count = len(stage.split(seed).targets)
            return {**scored(stage, seed, (np.full((count, stage.study.k), -1), 0, count)), "not_built": [1]}
        return scored(stage, seed, scene.ask(**how))

    return Condition(name, run, fixed, work=2)


def baseline(stage: Stage, one: "Baseline") -> Condition:
    """A baseline's scores at each epsilon, or once where it is not private."""

    def run(epsilon: float, seed: int, part: str) -> Result:
        generator = np.random.default_rng(_seeded.seed_of(part, seed))
        return scored_rows(stage, seed, *one.embed(stage.split(seed), epsilon, stage.study.delta, generator))

    return Condition(one.name, run, fixed=not one.private, work=one.work)


def _expected(scores: Dict[str, Any]) -> Result:
    return {**{name: np.asarray(values, float).tolist() for name, values in scores.items()},
            "residual": [0], "unanswered": [0]}


def feature_search(stage: Stage) -> Condition:
    """A search in the clear."""
    return Condition(FEATURES, lambda _x, seed, _part: scored(stage, seed, (stage.trial(seed).nearest, 0, 0)),
                     fixed=True, work=.01)


def chance(stage: Stage) -> Condition:
    """The expected scores of k items drawn from the gallery."""

    def run(_x: float, seed: int, _part: str) -> Result:
        split = stage.split(seed)
        return _expected(stats.scores_by_chance(split.gallery.labels, split.targets.labels, stage.study.k))

    return Condition(CHANCE, run, fixed=True, work=.01)


def of_every_class(stage: Stage) -> Condition:
    """The trivial scheme, at epsilon 0: downloads k items of every class and draws among those of the target's.

    Its expected scores. Like the joint scheme it presumes that the client knows the target's class.
    """

    def run(_x: float, seed: int, _part: str) -> Result:
        split, k = stage.split(seed), stage.study.k
        of_class = split.targets.labels[:, None] == split.gallery.labels
        near = np.take_along_axis(of_class, stage.trial(seed).nearest, axis=1)
        size = of_class.sum(axis=1)
        drawn = np.minimum(size, k)
        return _expected({"class_share": drawn / k, "hit": drawn > 0, "fidelity": near.mean(axis=1) * drawn / size})

    return Condition(OF_EVERY_CLASS, run, fixed=True, work=.01)


def score_bands(splits: int) -> str:
    """The kind of interval of stats.band_of_scores, in words."""
    extremes = "where scores are all 0 or all 1, the interval had one target come out otherwise"
    if splits == 1:
        return (f"Bands: 95 % bootstrap over the targets of the one split ({extremes}). They say nothing of other "
                "splits or other data.")
    return (f"Bands: 95 % Student t over the means of {splits} splits of this data set (where these are equal, "
            f"bootstrap over targets; {extremes}). They say nothing of other data.")


class Sweep:
    """Conditions, each run at every x and seed. conditions: their names differ.

    Results are those of jobs(), in their order.
    """

    def __init__(self, name: str, conditions: List[Condition], xs: List[float], seeds: int) -> None:
        self.name = name
        self.conditions = conditions
        self.xs = xs
        self.seeds = seeds
        counts = [seeds * (1 if condition.fixed else len(xs)) for condition in conditions]
        self._first = list(itertools.accumulate(counts, initial=0))  # job of each condition, and the end

    def jobs(self) -> List[Job]:
        jobs = []
        for condition in self.conditions:
            for x in self.xs[:1] if condition.fixed else self.xs:
                at = condition.name if condition.fixed else f"{condition.name} at {exact(x)}"
                for seed in range(1, self.seeds + 1):
                    run = functools.partial(condition.run, x, seed, f"{self.name}/{at}")
                    jobs.append(Job(f"{at}, seed {seed}", run, condition.work, seed))
        return jobs

    def index(self, name: str) -> int:
        """Of the condition of this name."""
        return [condition.name for condition in self.conditions].index(name)

    def _jobs_at(self, condition: int, x: int) -> slice:
        first = self._first[condition] + (0 if self.conditions[condition].fixed else x * self.seeds)
        return slice(first, first + self.seeds)

    def band(self, results: List[Result], condition: int, x: int, key: str) -> Band:
        """x: an index of xs. NOT_MEASURED where a job was refused."""
        jobs = self._jobs_at(condition, x)
        if any("refused" in result for result in results[jobs]):
            return NOT_MEASURED
        return stats.band_of_scores([result[key] for result in results[jobs]], seed=jobs.start)

    def samples(self, results: List[Result], condition: int, x: int, key: str) -> List[float]:
        """The mean of each split; of a single split the score of each target. None of the jobs may be refused."""
        by_split = [result[key] for result in results[self._jobs_at(condition, x)]]
        return by_split[0] if self.seeds == 1 else [float(np.mean(values)) for values in by_split]

    def differences(self, results: List[Result], condition: int, key: str) -> str:
        """The number of pairs of xs whose scores differ, in words: Student's t over pairs, with Bonferroni's share of
        the risk."""
        samples = [self.samples(results, condition, x, key) for x in range(len(self.xs))
                   if not math.isnan(self.band(results, condition, x, key).mean)]
        pairs = list(itertools.combinations(samples, 2))
        if not pairs:
            return "There is no other value to compare it with."
        bands = [stats.band_of_difference(one, other, 1 - _RISK / len(pairs)) for one, other in pairs]
        differ = sum(band is not None and (band.low > 0 or band.high < 0) for band in bands)
        over = "splits" if self.seeds > 1 else "targets of the one split"
        test = f"(paired t over the {over}, {100 * _RISK:g} % over all pairs together)."
        if not differ:
            return f"No two of the {len(samples)} values are shown to differ {test}"
        return (f"{differ} of the {counted(len(pairs), 'pair')} of values {'is' if differ == 1 else 'are'} shown to "
                f"differ {test}")

    def notes(self, results: List[Result]) -> List[str]:
        """Sentences on what was not answered, not built and not measured, and on the kind of intervals."""
        unanswered, not_built = [], []
        for condition, first, end in zip(self.conditions, self._first, self._first[1:]):
            measured = [result for result in results[first:end] if "refused" not in result]
            built = [result for result in measured if "not_built" not in result]
            missing = sum(int(result["unanswered"][0]) for result in built)
            if missing:
                unanswered.append(f'{missing} of {sum(len(result["hit"]) for result in built)} of "{condition.name}"')
            if len(built) < len(measured):
                not_built.append(f'{len(measured) - len(built)} of "{condition.name}"')
        words = []
        if unanswered:
            words.append(f"Releases that could not be aligned count as finding nothing: {', '.join(unanswered)}.")
        if not_built:
            words.append("Where the server refuses to build, nothing is released and nothing found; out of "
                         f"{len(self.xs) * self.seeds} settings and splits each, these are {', '.join(not_built)}.")
        return [*words, *self._refused(results), score_bands(self.seeds)]

    def _refused(self, results: List[Result]) -> List[str]:
        """A sentence for every reason. Of each condition the first reason stands for all, which differ in numbers."""
        lines: Dict[str, List[str]] = {}
        for number, condition in enumerate(self.conditions):
            xs = self.xs[:1] if condition.fixed else self.xs
            refused: Dict[float, str] = {}
            for at, x in enumerate(xs):
                for result in results[self._jobs_at(number, at)]:
                    if "refused" in result:
                        refused.setdefault(x, str(result["refused"]))
            if refused:
                at_xs = "" if len(refused) == len(xs) else f" at {', '.join(map(short, refused))}"
                lines.setdefault(next(iter(refused.values())), []).append(f'"{condition.name}"{at_xs}')
        return [f"Not measured: {', '.join(names)} ({reason})." for reason, names in sorted(lines.items())]

    def panel(self, results: List[Result], metric: Metric) -> Panel:
        """One series a condition: a line over xs, or a dashed reference."""
        series = []
        for number, condition in enumerate(self.conditions):
            if condition.fixed:
                band = self.band(results, number, 0, metric.key)
                ends = [point(x, band) for x in (self.xs[0], self.xs[-1])]
                series.append(Series(condition.name, ends, "reference"))
            else:
                points = [point(x, self.band(results, number, at, metric.key)) for at, x in enumerate(self.xs)]
                series.append(Series(condition.name, points))
        return Panel(metric.title, series)

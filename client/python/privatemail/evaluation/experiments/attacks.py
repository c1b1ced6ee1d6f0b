"""Leakage: how often attackers with names are right, what a guess gives and what the guarantee allows anybody."""

import dataclasses
import functools
from typing import List, NamedTuple, Optional

import numpy as np
from scipy.stats import norm

from privatemail.evaluation import _seeded
from privatemail.evaluation.stats import band_of_share, label_hiding_ceiling_over_targets
from privatemail.evaluation.study import Band, Experiment, Figure, Ints, Job, Panel, Point, Result, Series, Study
from privatemail.evaluation.sweep import (EPSILON_AXIS, Stage, closest, counted, curve, exact, point, share_axis, short,
                                          with_band)

_DRAWN = .95  # certainty of the bands
_RISK = 1e-6  # that a report calls any guarantee broken which is not


class _Attack(NamedTuple):
    """name: of Scene.attack. bound: the guarantee's law.

    - "gaussian": two targets that are equally likely, by Gaussian noise.
    - "approximate": a class, by (epsilon, delta) over any two targets.
    - "pure": a class, by epsilon alone; delta is 0 whatever the study's.
    - "": no guarantee bounds it.
    """

    name: str
    who: str
    given: str
    bound: str
    names_class: bool = True  # else one of two targets


_KNOWS_ALL = ("The attacker knows the start, every dummy that was drawn, the target and an item of {} class, with "
              "their classes, and names the one from which the release is likelier: none tells these two apart more "
              "often. The items are drawn; the guarantee holds for the worst pair there could be.")
_ATTACKS = (
    _Attack("likelihood", "an attacker who knows all but whether it was the target or an item of another class",
            _KNOWS_ALL.format("another"), "gaussian", False),
    _Attack("likelihood-of-class", "an attacker who knows all but whether it was the target or an item of its class",
            _KNOWS_ALL.format("the target's"), "gaussian", False),
    _Attack("dummies", "an attacker who knows every dummy",
            "The attacker knows every dummy that was drawn and the start of the iteration, and names the slot whose "
            "row is farthest from the one that its dummy would have given.", "approximate"),
    _Attack("label", "an attacker who sees what the server sees",
            "The attacker has the release and the anchors; it post-processes the release and names the slot that lies "
            "farthest from the anchors of its class. Of a release that vanishes under post-processing it names none.",
            "approximate"),
    _Attack("label-without-slots", "an attacker who sees a release without slots, as in the authors' code",
            "The only row stands under its own label: the attacker answers the query and names the most frequent "
            "class of the answer.", ""),
    _Attack("inversion", "an attacker who inverts the release",
            "The attacker knows the start and the slot; a ridge regression, fitted on the anchors, predicts features "
            "from the slot's row, and the nearer of the target and another item of its class is named.", "gaussian",
            False),
    _Attack("cell", "an attacker who sees which cell is requested",
            "The anchors are divided into as many cells as there are classes, and a query requests one of them. (At a "
            "small epsilon fewer cells tell a little more about a class, at a large one more cells; the line holds "
            "for any.) The attacker has the anchors, the cells and the requested one, and names the class that has "
            "the largest share of its anchors in it.", "pure"),
)


class _Count(NamedTuple):
    right: int
    answers: int

    def band(self, certainty: float = _DRAWN) -> Band:
        """Clopper and Pearson's."""
        return band_of_share(self.right, self.answers, certainty)


def _chunks(results: List[Result], count: int) -> List[List[Result]]:
    """So many parts of equal length."""
    size = len(results) // count
    return [results[i * size:(i + 1) * size] for i in range(count)]


def _count(results: List[Result]) -> _Count:
    right = np.concatenate([result["right"] for result in results])
    return _Count(int(np.count_nonzero(right)), len(right))


@dataclasses.dataclass(frozen=True)
class _Findings:
    """Of one attack. looks: bounded counts in the whole report, over which the risk of an error is shared out."""

    attack: _Attack
    study: Study
    classes: int
    guess: float  # right in this share of the cases without a look at the release
    at: List[_Count]  # each epsilon
    without_noise: _Count
    looks: int

    def allowed(self, epsilon: float) -> float:
        """The largest share of right answers under the guarantee."""
        if self.attack.bound == "gaussian":
            # The optimal test between two equally likely rows that are one sensitivity apart (Dong, Roth, Su 2022):
            # less than (epsilon, delta) alone allows.
            return float(norm.cdf(.5 / _seeded.gaussian_stddev(epsilon, self.study.delta)))
        delta = self.study.delta if self.attack.bound == "approximate" else 0
        return label_hiding_ceiling_over_targets(epsilon, delta, self.classes, self.guess)

    @functools.cached_property
    def broken(self) -> List[int]:
        """Indices of the epsilons at which more than what is allowed was right, at a risk of _RISK in all."""
        if not self.attack.bound:
            return []
        certainty = 1 - _RISK / self.looks
        return [
            index for index, (epsilon, count) in enumerate(zip(self.study.epsilons, self.at))
            if count.band(certainty).low > self.allowed(epsilon)
        ]

    def title(self) -> str:
        """The figure's message."""
        index = self.broken[0] if self.broken else closest(self.study.epsilons, self.study.epsilon)
        epsilon, band = self.study.epsilons[index], self.at[index].band()
        at = f"{{}} right at epsilon {short(epsilon)}"
        who = self.attack.who
        if not self.attack.bound:
            return f"No guarantee binds {who}: {at.format(short(band.mean))}, a guess {short(self.guess)}"
        allowed = f"allowed {short(self.allowed(epsilon))}"
        if self.broken:
            return f"THE GUARANTEE IS BROKEN by {who}: at least {at.format(short(band.low))}, {allowed}"
        if band.high <= self.allowed(epsilon):
            return f"The guarantee holds against {who}: at most {at.format(short(band.high))}, {allowed}"
        return f"The guarantee is not shown to be broken by {who}: {at.format(with_band(band))}, {allowed}"

    def words(self) -> List[str]:
        """What the attacker knows, a guess, the first, nearest and last epsilon, no noise, and the guarantee."""
        told = sorted({0, closest(self.study.epsilons, self.study.epsilon), len(self.at) - 1})
        words = [self.attack.given, f"A guess is right in {short(self.guess)}."]
        for epsilon, count in ((self.study.epsilons[index], self.at[index]) for index in told):
            bound = f"the guarantee allows {short(self.allowed(epsilon))}" if self.attack.bound else \
                "no guarantee bounds it"
            words.append(f"At epsilon {short(epsilon)} it is right in {self._beside_guess(count.band())}; {bound}.")
        band = self.without_noise.band()
        little = "" if band.low > self.guess else ": such an attack says little about what the noise hides"
        words.append(f"On releases without noise it is right in {self._beside_guess(band)}{little}.")
        if self.attack.bound:
            words.append(self._verdict())
        words.append("Band: Clopper and Pearson's interval, 95 % at each epsilon by itself, over the targets of all "
                     "splits.")
        return words

    def _beside_guess(self, band: Band) -> str:
        above = Band(band.mean - self.guess, band.low - self.guess, band.high - self.guess)
        beside = f"{with_band(above)} above a guess" if band.low > self.guess else \
            "not shown to be better than a guess"
        return f"{with_band(band)} of the cases, {beside}"

    def _verdict(self) -> str:
        broken = ", ".join(short(self.study.epsilons[index]) for index in self.broken)
        risk = f"at a risk of error of {short(_RISK)} over {counted(self.looks, 'look')} of this report"
        if broken:
            return f"IT DOES BETTER THAN THE GUARANTEE ALLOWS at epsilon {broken}, {risk}: the guarantee is broken."
        return f"At no epsilon is it shown to do better than the guarantee allows, {risk}."

    def series(self) -> List[Series]:
        """Right answers, and as references no noise, a guess and the guarantee."""
        epsilons = self.study.epsilons
        series = [
            Series("right answers", [point(x, count.band()) for x, count in zip(epsilons, self.at)]),
            Series("without noise", [Point(x, self.without_noise.band().mean) for x in epsilons], "reference"),
            Series("a guess", [Point(x, self.guess) for x in epsilons], "reference"),
        ]
        if self.attack.bound:
            series.append(curve("the guarantee allows", epsilons, self.allowed))
        return series


def _largest_share(labels: Ints, classes: int) -> float:
    """The share of the largest class among the targets of a split.

    1 / classes while no class ran out of rows: which ones have one target more than others is then drawn anew for each
    split, and no attacker knows it.
    """
    counts = np.unique(labels, return_counts=True)[1]
    least = counts.min() if len(counts) == classes else 0
    return 1 / classes if counts.max() - least <= 1 else float(counts.max() / len(labels))


def attacks(stage: Stage) -> Experiment:
    """One figure an attack: the share of right answers against epsilon, a guess, and the guarantee's bound."""
    study = stage.study
    seeds = range(1, study.seeds + 1)

    def run(name: str, epsilon: Optional[float], part: str, seed: int) -> Result:
        return {"right": stage.scene(seed).attack(name, epsilon=epsilon, delta=study.delta, part=part)}

    jobs = []
    for attack in _ATTACKS:
        for epsilon in (*study.epsilons, None):
            part = attack.name + (" without noise" if epsilon is None else f" at {exact(epsilon)}")
            jobs += [Job(f"{part}, seed {seed}", functools.partial(run, attack.name, epsilon, part, seed), work=2,
                         split=seed)
                     for seed in seeds]

    def draw(results: List[Result]) -> List[Figure]:
        classes = len(np.unique(study.rows.labels))
        largest = max(_largest_share(stage.split(seed).targets.labels, classes) for seed in seeds)
        looks = sum(bool(attack.bound) for attack in _ATTACKS) * len(study.epsilons)
        figures = []
        for attack, of_attack in zip(_ATTACKS, _chunks(results, len(_ATTACKS))):
            refused = [result["refused"] for result in of_attack if "refused" in result]
            if refused:
                title, words = f"Not measured: {attack.who}", [attack.given, f"Not measured: {refused[0]}."]
                series = []
            else:
                *at, without_noise = map(_count, _chunks(of_attack, len(study.epsilons) + 1))
                guess = largest if attack.names_class else .5
                found = _Findings(attack, study, classes, guess, at, without_noise, looks)
                title, series, words = found.title(), found.series(), found.words()
            figures.append(Figure(f"attack-{attack.name}", title, EPSILON_AXIS, share_axis("share of targets"),
                                  [Panel("", series)], words))
        return figures

    return Experiment("attacks", jobs, draw)

"""Scores of retrieval, their confidence intervals, and the most that any release can score that hides the label.

- class_share: precision@k, the share of the k items that are of the target's class.
- hit: recall@k as in the papers (Jun et al. 2019), 1 where any of the k is of the class, else 0.
- fidelity: the share of the non-private k nearest that came back.
"""

import dataclasses
import math
from typing import List, Optional, Sequence

import numpy as np
import scipy.stats

from privatemail.errors import wrong
from privatemail.evaluation.study import Band, Ints, Result

_CERTAINTY = .95
_ROUNDING = 1e-9  # means that differ by less are equal


def scores(found: Ints, gallery_labels: Ints, target_labels: Ints, nearest: Ints) -> Result:
    """class_share, hit and fidelity of m targets.

    found: m x k rows of the gallery; a row of -1 is no answer and scores 0. nearest: m x k, the nearest of the target's
    features.
    """
    of_class = (found >= 0) & (gallery_labels[found] == target_labels[:, None])
    near = (found[:, :, None] == nearest[:, None, :]).any(axis=2)
    return {"class_share": of_class.mean(axis=1).tolist(), "hit": of_class.any(axis=1).astype(float).tolist(),
            "fidelity": (near.sum(axis=1) / nearest.shape[1]).tolist()}


def scores_by_chance(gallery_labels: Ints, target_labels: Ints, k: int) -> Result:
    """The expected scores of k rows drawn from the gallery without replacement."""
    count = len(gallery_labels)
    of_class = (gallery_labels[None] == target_labels[:, None]).sum(axis=1)
    return {"class_share": (of_class / count).tolist(),
            "hit": scipy.stats.hypergeom.sf(0, count, of_class, k).tolist(),
            "fidelity": [k / count] * len(target_labels)}


def band_of_scores(values_by_split: List[List[float]], seed: int) -> Band:
    """The mean score over all splits of a data set and its 95 % interval, within [0, 1].

    values_by_split: of some splits with equally many targets each.
    - Several splits: Student's t over their means.
    - One split, or splits with equal means: percentile bootstrap over all targets, 1,000 samples.
    - All scores 0 or all 1: the interval as if one target had come out otherwise.
    """
    values = np.concatenate(values_by_split)
    mean = float(values.mean())
    if values.size == 1:
        return Band(mean, 0, 1)
    if mean in (0, 1):  # without a width
        (_, *rest), *others = values_by_split
        return dataclasses.replace(band_of_scores([[1 - mean, *rest], *others], seed), mean=mean)
    means = [np.mean(split) for split in values_by_split]
    if np.ptp(means) > _ROUNDING:
        low, high = scipy.stats.t.interval(_CERTAINTY, len(means) - 1, mean, scipy.stats.sem(means))
    else:
        low, high = scipy.stats.bootstrap((values,), np.mean, n_resamples=1000, confidence_level=_CERTAINTY,
                                          method="percentile",
                                          random_state=np.random.default_rng(seed)).confidence_interval
    return Band(mean, max(0, float(low)), min(1, float(high)))


def band_of_share(hits: int, answers: int, certainty: float) -> Band:
    """Clopper and Pearson's interval for the chance of an event that came `hits` times in `answers`, at least 1."""
    risk = (1 - certainty) / 2
    low = scipy.stats.beta.ppf(risk, hits, answers - hits + 1) if hits > 0 else 0
    high = scipy.stats.beta.ppf(1 - risk, hits + 1, answers - hits) if hits < answers else 1
    return Band(hits / answers, float(low), float(high))


def band_of_difference(one: Sequence[float], other: Sequence[float], certainty: float) -> Optional[Band]:
    """Student's t of mean(one - other) over pairs. None: fewer than two, or all differ by the same."""
    differences = np.subtract(one, other)
    if len(differences) < 2 or not differences.std(ddof=1) > _ROUNDING:
        return None
    low, high = scipy.stats.ttest_1samp(differences, 0).confidence_interval(certainty)
    mean = float(differences.mean())
    return Band(mean if abs(mean) > _ROUNDING else 0, float(low), float(high))


def band_of_ratio(parts: Sequence[float], wholes: Sequence[float]) -> Optional[Band]:
    """Fieller's 95 % interval of mean(parts) / mean(wholes) over pairs.

    None: wholes are not certainly above 0. The interval has the ratios r with
    (part - r whole)^2 <= reach (var(parts) - 2 r cov + r^2 var(wholes)), that is a r^2 - 2 b r + c <= 0.
    """
    if len(wholes) < 2:
        return None
    part, whole = np.mean(parts), np.mean(wholes)
    (var_parts, cov), (_, var_wholes) = np.cov(parts, wholes)
    reach = scipy.stats.t.ppf((1 + _CERTAINTY) / 2, len(wholes) - 1)**2 / len(wholes)
    a = whole**2 - reach * var_wholes
    if not (whole > 0 and a > 0):
        return None
    b = part * whole - reach * cov
    c = part**2 - reach * var_parts
    root = math.sqrt(max(0, b * b - a * c))
    return Band(float(part / whole), float((b - root) / a), float((b + root) / a))


def _check_guarantee(epsilon: float, delta: float, classes: int) -> None:
    if not (epsilon >= 0 and math.isfinite(epsilon)):
        raise wrong("epsilon", f"must be finite and not negative, but is {epsilon}")
    if not 0 <= delta < 1:
        raise wrong("delta", f"must be at least 0 and below 1, but is {delta}")
    if classes < 2:
        raise wrong("classes", f"must be at least 2, but is {classes}")


def label_hiding_ceiling(epsilon: float, delta: float, classes: int, k: int) -> float:
    """The most recall@k over targets drawn uniformly from C classes, of k rows computed from one release that is
    (epsilon, delta)-DP for any two targets of any classes:

        min(1, (k e^epsilon + (C - 1) delta) / (k e^epsilon + C - k)),      which is 1 from k = C on.

    Proof. The k rows have a set S of at most k classes; let it have k. Let Q(S|c) be its chance for a target of class
    c. The answer is post-processing, so sum_S max(0, Q(S|c) - e^epsilon Q(S|c')) <= delta for every c != c'. For each
    S add up Q(S|c) <= e^epsilon Q(S|c') + excess over c in S and c' not in S, then over all S. With R the sum of Q(S|c)
    over c in S, so that hits are R / C and the rest of all Q is C - R:
    (C - k) R <= k e^epsilon (C - R) + C (C - 1) delta. Solve for R / C. For delta = 0 it is reached by subset selection
    (Ye and Barg, "Optimal Schemes for Discrete Distribution Estimation Under Locally Differential Privacy", 2018).

    precision@k has the bound of k = 1: each row is an answer. With classes of unequal size the bound holds for recall
    averaged over classes, not over targets.
    """
    _check_guarantee(epsilon, delta, classes)
    if k < 1:
        raise wrong("k", f"must be at least 1, but is {k}")
    other = math.exp(-epsilon)  # both sides of the fraction over e^epsilon, which overflows
    return min(1, (k + (classes - 1) * delta * other) / (k + (classes - k) * other))


def label_hiding_ceiling_over_targets(epsilon: float, delta: float, classes: int, largest: float) -> float:
    """The most right answers, one a target, over targets of which class c has the share p_c, at most `largest`:

        min(1, (e^epsilon + (C - 1) delta) / (e^epsilon + (1 - largest) / largest)).

    Proof. Let q_c be the chance that the answer is c for a target of class c, A = sum p_c q_c. For c != c' the answer
    is c for a target of class c' with at least e^-epsilon (q_c - delta), so that wrong answers have
    1 - A >= sum_c (1 - p_c) e^-epsilon (q_c - delta). As (1 - p_c) >= p_c (1 - largest) / largest, and the 1 - p_c add
    up to C - 1, 1 - A >= e^-epsilon (A (1 - largest) / largest - (C - 1) delta). Solve for A.
    """
    _check_guarantee(epsilon, delta, classes)
    if not (1 - 1e-12) / classes <= largest <= 1:
        raise wrong("largest", f"must be between 1 / classes = {1 / classes} and 1, but is {largest}")
    other = math.exp(-epsilon)
    return min(1, (1 + (classes - 1) * delta * other) / (1 + (1 - largest) / largest * other))

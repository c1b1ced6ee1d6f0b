"""Baselines: what other methods, private or not, make of gallery and targets before rows are ranked.

Simulations for comparison, never releases: noise comes from the generator that is passed in and is as seeded as that,
and sensitivities are those of exact arithmetic, without what rounding adds. Nothing here is charged or sent.
"""

import dataclasses
import functools
import math
from typing import Callable, List, NamedTuple, Tuple

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import bisect
from scipy.special import softmax
from sklearn.decomposition import PCA

from privatemail.errors import FailedPrecondition
from privatemail.evaluation import _seeded, tsne
from privatemail.evaluation.study import Floats, Split
from privatemail.evaluation.sweep import counted

Embedded = Tuple[Floats, Floats]  # gallery n x k, targets m x k
Embed = Callable[[Split, float, float, np.random.Generator], Embedded]  # (split, epsilon, delta, rng)

WIDE = 32  # columns
GIBBS_SWEEPS = 20
CANDIDATES = 256  # more hold a better one, which chance picks less often
ANCHORS_EACH = 32  # that a candidate is fitted to, at least

_NOTHING = "nothing: the ranking party sees every target"
_NOTHING_JOINTLY = "nothing: gallery and targets are embedded jointly by the party that has both"
_GALLERY = ("each gallery row, from anyone who sees the subspace; not the projected rows of gallery and targets, which "
            "are ranked as they are")
_TARGETS = ("each target's features, replaced by any others of length 1, from the server and anyone who sees the "
            "sketch; not the gallery, which stays with the server")
_ALL_AT_ONCE = ("gallery and targets, from anyone who sees the embedding and every gradient on the way, as any two "
                "inputs with as many rows: its noise hides all rows at once and not one record alone; not from the "
                "curator who has all features and embeds them")
_NOT_CENTRED = "The axes are those of the rows as they are, as in the paper, where PCA subtracts their mean."


@dataclasses.dataclass(frozen=True)
class Baseline:
    """A method that turns gallery and targets into rows of which the nearest are what comes back."""

    name: str
    private: bool  # False: one run serves every epsilon
    protects: str  # what is hidden, from whom, and what is not
    hides_targets: bool  # answers come from one release that is (epsilon, delta)-DP for any targets of any classes
    work: float  # of one run, in releases of 100 targets
    gallery_share: float  # that is embedded; the rest never comes back
    remark: str  # a sentence, or nothing
    embed: Embed  # FailedPrecondition: too few or too many rows


class _Method(NamedTuple):
    name: str
    embed: Callable[[int, Split, float, float, np.random.Generator], Embedded]  # (columns, split, epsilon, delta, rng)
    protects: str
    work: float
    private: bool = True
    hides_targets: bool = False
    wide_too: bool = False  # takes hardly longer with more columns
    jointly: bool = False
    remark: str = ""


def baselines(split: Split, dimension: int, most_joint_rows: int = 2000) -> List[Baseline]:
    """All of them with min(dimension, d) columns, and the fast ones once more with min(WIDE, d).

    split: any of those to come, for numbers of rows and columns. most_joint_rows: of the gallery, in an embedding of
    gallery and targets together.
    """
    gallery_rows, d = split.gallery.features.shape
    narrow, wide = min(dimension, d), min(WIDE, d)
    found = []
    for method in _methods(most_joint_rows):
        part = method.jointly and gallery_rows > most_joint_rows
        for columns in (narrow, wide) if method.wide_too and wide > narrow else (narrow,):
            rows = f", {most_joint_rows} gallery rows" if part else ""
            found.append(Baseline(
                f"{method.name} ({counted(columns, 'column')}{rows})", method.private, method.protects,
                method.hides_targets, method.work, most_joint_rows / gallery_rows if part else 1, method.remark,
                functools.partial(method.embed, columns)))
    return found


def _methods(most_joint_rows: int) -> List[_Method]:
    cache = tsne.AffinityCache()
    t_sne, dp_dsne = (functools.partial(tsne.embed_jointly, functools.partial(embed, cache), most_joint_rows)
                      for embed in (tsne.tsne, tsne.dp_dsne))
    return [
        _Method("PCA, not private", pca, _NOTHING, 1, private=False, wide_too=True),
        _Method("t-SNE, not private", t_sne, _NOTHING_JOINTLY, 80, private=False, jointly=True),
        _Method("private PCA, analyse-Gauss", analyse_gauss, _GALLERY, 1, wide_too=True, remark=_NOT_CENTRED),
        _Method("private PCA, exponential mechanism, as published", published_ppca, _GALLERY, 10, remark=_NOT_CENTRED),
        _Method("private PCA, exponential mechanism over public candidates", candidate_ppca, _GALLERY, 4,
                wide_too=True, remark=_NOT_CENTRED),
        _Method("private random projections", random_projection, _TARGETS, 1, hides_targets=True, wide_too=True),
        _Method("DP-dSNE", dp_dsne, _ALL_AT_ONCE, 12, hides_targets=True, jointly=True),
    ]


def pca(columns: int, split: Split, _epsilon: float, _delta: float, _rng: np.random.Generator) -> Embedded:
    """Principal component analysis (Pearson 1901) of the gallery. Protects nothing."""
    _check_rows("gallery", len(split.gallery), columns)
    fitted = PCA(columns, svd_solver="full").fit(split.gallery.features)
    return fitted.transform(split.gallery.features), fitted.transform(split.targets.features)


def analyse_gauss(columns: int, split: Split, epsilon: float, delta: float, rng: np.random.Generator) -> Embedded:
    """The heaviest eigenvectors of the gallery's second moments (not centred) with symmetric Gaussian noise.

    Dwork, Talwar, Thakurta and Zhang, "Analyze Gauss: Optimal Bounds for Privacy-Preserving Principal Component
    Analysis", 2014.

    - Protects each gallery row against everyone who sees the subspace; not the projected rows.
    - Neighbours: one gallery row replaced by any other of length 1.
    - Sensitivity: sqrt(2) in L2 over a triangle with its diagonal. For unit x and y the move M = x^T x - y^T y has
      |M|_F^2 = 2 - 2 (x y^T)^2, and a triangle is no longer than M. Two axes reach it in the diagonal.
    """
    noisy = _moments(split) + rng.normal(0, math.sqrt(2) * _seeded.gaussian_stddev(epsilon, delta),
                                         (split.gallery.features.shape[1],) * 2)
    return _projected(split, _heaviest(noisy, columns))


def published_ppca(columns: int, split: Split, epsilon: float, _delta: float, rng: np.random.Generator) -> Embedded:
    """A subspace V of all, with density exp(epsilon / 2 q(V)), q(V) = sum |x V|^2 over gallery rows (not centred).

    Chaudhuri, Sarwate and Sinha, "A Near-Optimal Algorithm for Differentially-Private Principal Components", 2013.

    - As published, not proven: the theorem needs an exact draw, and nobody has bounded the Gibbs sampler's distance
      from the law. For an exact draw it is pure epsilon-DP (exponential mechanism).
    - Protects each gallery row against everyone who sees the subspace; not the projected rows.
    - Neighbours: one gallery row replaced by any other of length 1.
    - Sensitivity of q: 1. Row y for x moves it by |y V|^2 - |x V|^2, both in [0, 1].
    """
    return _projected(split, matrix_bingham(epsilon / 2 * _moments(split), columns, GIBBS_SWEEPS, rng))


def candidate_ppca(columns: int, split: Split, epsilon: float, _delta: float, rng: np.random.Generator) -> Embedded:
    """As published_ppca, but of finitely many public subspaces: the principal axes of random samples of anchors.

    McSherry and Talwar, "Mechanism Design via Differential Privacy", 2007. Proven, as candidates do not depend on the
    gallery. What it protects, neighbours and sensitivity are those of published_ppca.
    """
    anchors = split.anchors.features
    _check_rows("anchors", len(anchors), columns)
    each = min(max(ANCHORS_EACH, columns), len(anchors))
    samples = anchors[rng.integers(len(anchors), size=(CANDIDATES, each))]
    candidates = np.linalg.svd(samples, full_matrices=False)[2][:, :columns]  # CANDIDATES x columns x d
    scores = np.einsum("cij,cij->c", candidates @ _moments(split), candidates)
    return _projected(split, candidates[rng.choice(CANDIDATES, p=softmax(epsilon / 2 * scores))].T)


def random_projection(columns: int, split: Split, epsilon: float, delta: float, rng: np.random.Generator) -> Embedded:
    """A target x as x P + noise, P public with entries of N(0, 1 / columns); the gallery by P, without noise.

    Kenthapadi, Korolova, Mironov and Mishra, "Privacy via the Johnson-Lindenstrauss Transform", 2013.

    - Protects each target's features against everyone who sees its sketch; not the gallery.
    - Neighbours: any two rows of length 1 (the paper's differ by at most 1 in one coordinate).
    - Sensitivity: |(x - y) P| <= 2 |P|_op in L2. Plus and minus the singular vector reach it.
    """
    projection = rng.normal(0, 1 / math.sqrt(columns), (split.gallery.features.shape[1], columns))
    stddev = 2 * np.linalg.norm(projection, 2) * _seeded.gaussian_stddev(epsilon, delta)
    gallery, targets = _projected(split, projection)
    return gallery, targets + rng.normal(0, stddev, targets.shape)


def matrix_bingham(b: Floats, columns: int, sweeps: int, rng: np.random.Generator) -> Floats:
    """d x columns, orthonormal: V with density proportional to exp(tr V^T b V), b symmetric (d x d).

    A Gibbs sampler over columns (Hoff, "Simulation of the Matrix Bingham-von Mises-Fisher Distribution", 2009), from
    the heaviest eigenvectors; exact for one column.
    """
    values, vectors = np.linalg.eigh(b)
    values, vectors = values[::-1], vectors[:, ::-1]
    drawn = np.eye(len(b), columns)  # in the frame of the eigenvectors
    for _ in range(sweeps if columns > 1 else 1):
        for column in range(columns):
            drawn[:, column] = _bingham(values, np.delete(drawn, column, axis=1), rng)
    result: Floats = vectors @ drawn
    return result


def _bingham(values: Floats, others: Floats, rng: np.random.Generator) -> Floats:
    """A unit vector v orthogonal to `others` (d x m, orthonormal), with density exp(g), g = v diag(values) v^T.

    Rejection sampling (Kent, Ganeiber and Mardia, "A new method to simulate the Bingham and related distributions in
    directional data analysis with applications", 2013). Proposals are x / |x|, x normal and orthogonal to `others`
    with precision P = s - 2 diag(values): their density is (s - 2 g)^(-q/2), q = d - m, up to a factor. The quotient of
    both is greatest where s - 2 g = q. Most are accepted where P has an inverse of trace 1, between 1 and q above twice
    the largest eigenvalue of diag(values) without `others`, which is at least values[m] (descending).
    """
    d, m = others.shape
    q = d - m
    s = bisect(lambda s: _Envelope(s, values, others).trace() - 1, 2 * values[m] + .5, 2 * values[0] + q + 1, xtol=.2)
    envelope = _Envelope(s, values, others)
    while True:
        proposals = envelope.draw(16, rng)
        proposals /= np.linalg.norm(proposals, axis=0)
        height = s - 2 * values @ proposals**2
        accepted = np.log(rng.random(16)) < q / 2 * np.log(height / q) - (height - q) / 2
        if accepted.any():
            first: Floats = proposals[:, np.argmax(accepted)]
            return first


class _Envelope:
    """Normal vectors orthogonal to `others` (d x m), of precision s - 2 diag(values) among such vectors.

    Of the precision's entries the first m, J, may be negative. They are lifted above 0 by L, which gives a covariance C
    by conditioning on orthogonality; by Woodbury's identity the one without L is C + C_J (1 / L - C_JJ)^-1 C_J^T, and
    it exists where the matrix in brackets is positive. O(d m^2) time, where compressing the precision takes O(d^3).
    """

    def __init__(self, s: float, values: Floats, others: Floats) -> None:
        m = others.shape[1]
        lift = 2 * (values[:m] - values[m]) + 1
        precision = s - 2 * values
        precision[:m] += lift
        self._others = others
        self._variance = 1 / precision
        self._spread = self._variance[:, None] * others
        self._gain = np.linalg.solve(others.T @ self._spread, self._spread.T)
        added = -self._spread @ self._gain[:, :m]  # C_J
        added[:m] += np.diag(self._variance[:m])
        self._bracket, turn = np.linalg.eigh(np.diag(1 / lift) - added[:m])
        self._added = added @ turn

    def trace(self) -> float:
        """Of the covariance; infinite where there is none."""
        if (self._bracket <= 0).any():
            return math.inf
        conditioned = self._variance.sum() - (self._spread * self._gain.T).sum()
        return float(conditioned + (self._added**2 / self._bracket).sum())

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """d x count."""
        free = np.sqrt(self._variance)[:, None] * rng.normal(size=(len(self._variance), count))
        added = (self._added / np.sqrt(self._bracket)) @ rng.normal(size=(len(self._bracket), count))
        result: Floats = free - self._gain.T @ (self._others.T @ free) + added
        return result


def _check_rows(field: str, rows: int, least: int) -> None:
    if rows < least:
        raise FailedPrecondition(f"{field} must have {least} or more rows, one for each column, not {rows}")


def _moments(split: Split) -> Floats:
    """d x d: the sum of x^T x over gallery rows."""
    result: Floats = split.gallery.features.T @ split.gallery.features
    return result


def _heaviest(symmetric: Floats, count: int) -> Floats:
    """d x count: eigenvectors of the largest eigenvalues. Only the lower triangle is read."""
    d = len(symmetric)
    axes: Floats = eigh(symmetric, subset_by_index=(d - count, d - 1))[1]
    return axes


def _projected(split: Split, axes: Floats) -> Embedded:
    return split.gallery.features @ axes, split.targets.features @ axes

"""t-SNE, and DP-dSNE, its variant with clipped and noised gradients.

Simulations for comparison, never releases, as in baselines.py.
"""

import functools
import hashlib
import math
import threading
from typing import Callable, Dict, Iterator, Tuple

import numpy as np
from scipy.spatial.distance import cdist

from privatemail.errors import FailedPrecondition
from privatemail.evaluation import _seeded
from privatemail.evaluation.study import Floats, Split

MIN_ROWS, MAX_ROWS = 5, 7000  # of gallery and targets together; the most make a matrix of 400 MB
FAR_AWAY = 1e12  # every coordinate of a gallery row that is not embedded
PERPLEXITY = 30  # at most; a third of the other rows where these are few
START_STDDEV = 1e-4
EXAGGERATION = 12
EARLY, LATE = 20, 80  # iterations of DP-dSNE. Each one is paid for, so that there are fewer than of t-SNE.
CLIP = .01  # the Frobenius norm of a whole gradient. The noise is proportional to it.

_CACHE_BYTES = 2**30


def embed_jointly(embed: Callable[[int, Floats, float, float, float, np.random.Generator], Floats],
                  most_gallery_rows: int, columns: int, split: Split, epsilon: float, delta: float,
                  rng: np.random.Generator) -> Tuple[Floats, Floats]:
    """(gallery n x columns, targets m x columns) in one embedding.

    Of a larger gallery `most_gallery_rows` are embedded, evenly taken; the others lie FAR_AWAY.

    embed: of (columns, rows, perplexity, epsilon, delta, rng).
    """
    n = len(split.gallery)
    kept = np.arange(min(n, most_gallery_rows)) * n // min(n, most_gallery_rows)
    rows = np.concatenate([split.gallery.features[kept], split.targets.features])
    if not MIN_ROWS <= len(rows) <= MAX_ROWS:
        raise FailedPrecondition(f"gallery must have {MIN_ROWS} to {MAX_ROWS} rows together with the targets for "
                                 f"an embedding of both, but has {len(rows)}")
    embedding = embed(columns, rows, min(PERPLEXITY, (len(rows) - 1) / 3), epsilon, delta, rng)
    gallery = np.full((n, columns), FAR_AWAY)
    gallery[kept] = embedding[:len(kept)]
    return gallery, embedding[len(kept):]


def tsne(cache: "AffinityCache", columns: int, rows: Floats, perplexity: float, _epsilon: float, _delta: float,
         rng: np.random.Generator) -> Floats:
    """n x columns. van der Maaten and Hinton, "Visualizing Data using t-SNE", 2008, with exact gradients.

    Protects nothing. Scikit-learn's exact TSNE descends alike with 1 or 2 columns. With more, its gradient is not that
    of its objective (1.2.1: off by up to 44 % with 3 columns and 93 % with 8), and rows of a class scatter.
    """
    start = rng.normal(0, START_STDDEV, (len(rows), columns))
    return descend(start, _learning_rate(len(rows)), 250, 500,
                   functools.partial(gradient, cache.get(rows, perplexity)))


def dp_dsne(cache: "AffinityCache", columns: int, rows: Floats, perplexity: float, epsilon: float, delta: float,
            rng: np.random.Generator) -> Floats:
    """n x columns.

    After Saha, Calhoun, Du, Fu, Panta, Kwon, Sarwate and Plis, "Privacy-Preserving Quality Control of Neuroimaging
    Datasets in Federated Environments", 2021. Unlike there, all rows are embedded together, the whole gradient is
    clipped and not each site's, and exact Gaussian composition takes the place of a moments accountant.

    - Protects all rows against everyone who sees the embedding and every gradient; not against the curator who
      computes it from all features.
    - Neighbours: any two inputs with as many rows.
    - Sensitivity: a gradient of norm at most CLIP moves by at most 2 CLIP.
    - Composition: each of T iterations is a Gaussian release with mu / sqrt(T), mu that of (epsilon, delta); together
      they are mu-Gaussian-DP (Dong, Roth and Su 2022). Momentum, gains and schedule are post-processing.
    """
    affinity = cache.get(rows, perplexity)
    stddev = noise_stddev(epsilon, delta)

    def noisy(exaggeration: float, embedding: Floats) -> Floats:
        exact = gradient(affinity, exaggeration, embedding)
        return clipped(exact) + rng.normal(0, stddev, exact.shape)

    start = rng.normal(0, START_STDDEV, (len(rows), columns))
    return descend(start, _learning_rate(len(rows)), EARLY, LATE, noisy)


def _learning_rate(rows: int) -> float:
    """As of scikit-learn's "auto"."""
    return max(rows / EXAGGERATION / 4, 50)


def noise_stddev(epsilon: float, delta: float) -> float:
    """Of every entry of every gradient of DP-dSNE."""
    return math.sqrt(EARLY + LATE) * 2 * CLIP * _seeded.gaussian_stddev(epsilon, delta)


def clipped(matrix: Floats) -> Floats:
    """Scaled down as a whole to the norm CLIP where it is longer."""
    return matrix * (CLIP / max(CLIP, float(np.linalg.norm(matrix))))


def affinities(rows: Floats, perplexity: float) -> Floats:
    """n x n: p of the t-SNE paper's section 3.1; symmetric, zero diagonal, sums to 1.

    p_ij = (p_j|i + p_i|j) / (2 n), at least 2^-52 off the diagonal. p_j|i is proportional to exp(-b_i |x_i - x_j|^2)
    with b_i such that row i has this perplexity, 1 < perplexity < n - 1.
    """
    conditional = np.empty((len(rows), len(rows)))
    for block in _blocks(len(rows)):
        conditional[block] = _conditional(cdist(rows[block], rows, "sqeuclidean"), block.start, perplexity)
    joint: Floats = np.maximum((conditional + conditional.T) / (2 * len(rows)), np.finfo(np.float64).eps)
    np.fill_diagonal(joint, 0)
    return joint


def _blocks(rows: int) -> Iterator[slice]:
    """Slices of rows whose distances to all rows fit into a processor's cache."""
    size = max(1, 2**17 // rows)
    return (slice(first, min(first + size, rows)) for first in range(0, rows, size))


def _conditional(squared: Floats, first: int, perplexity: float) -> Floats:
    """p_j|i of rows first, first + 1, ... with these squared distances to all rows, which are overwritten.

    The precision is doubled until it is too high, and then bisected.
    """
    own = np.arange(len(squared)), first + np.arange(len(squared))
    squared[own] = np.inf
    squared -= squared.min(axis=1, keepdims=True)  # changes no quotient and keeps sums at 1 or more
    squared[own] = 0
    low = np.zeros((len(squared), 1))
    high = np.full_like(low, np.inf)
    precision = np.ones_like(low)
    for _ in range(200):
        weights = np.exp(-precision * squared)
        weights[own] = 0
        total = weights.sum(axis=1, keepdims=True)
        moment = np.einsum("ij,ij->i", weights, squared)[:, None]
        excess = np.log(total) + precision * moment / total - math.log(perplexity)
        if (np.abs(excess) < 1e-8).all():
            break
        low, high = np.where(excess > 0, precision, low), np.where(excess > 0, high, precision)
        precision = np.where(np.isinf(high), 2 * precision, (low + high) / 2)
    conditional: Floats = weights / total
    return conditional


def gradient(affinity: Floats, exaggeration: float, embedding: Floats) -> Floats:
    """Of the Kullback-Leibler divergence (the t-SNE paper's equation 5), n x k.

    4 sum_j (exaggeration p_ij - q_ij) w_ij (y_i - y_j) with w_ij = 1 / (1 + |y_i - y_j|^2), q_ij = w_ij / sum w.
    """
    with_ones = np.column_stack([embedding, np.ones(len(embedding))])
    pull, push = np.empty_like(with_ones), np.empty_like(with_ones)
    total = -float(len(embedding))  # w_ii = 1 is no part of the sum
    for block in _blocks(len(embedding)):
        close = 1 / (1 + cdist(embedding[block], embedding, "sqeuclidean"))
        total += close.sum()
        pull[block] = (affinity[block] * close) @ with_ones
        push[block] = (close * close) @ with_ones
    weighted = exaggeration * pull - push / total
    result: Floats = 4 * (weighted[:, -1:] * embedding - weighted[:, :-1])
    return result


def descend(start: Floats, rate: float, early: int, late: int,
            gradient_at: Callable[[float, Floats], Floats]) -> Floats:
    """Gradient descent with scikit-learn's phases, momenta and gains; gradient_at(exaggeration, embedding)."""
    embedding = start
    for iterations, exaggeration, momentum in ((early, EXAGGERATION, .5), (late, 1, .8)):
        move, gains = np.zeros_like(start), np.ones_like(start)
        for _ in range(iterations):
            slope = gradient_at(exaggeration, embedding)
            gains = np.maximum(np.where(move * slope < 0, gains + .2, gains * .8), .01)
            move = momentum * move - rate * gains * slope
            embedding = embedding + move
    return embedding


class AffinityCache:
    """The affinities computed last, up to 1 GB, for runs on the same rows that differ in their noise. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # held while computing, so that concurrent misses compute once
        self._known: Dict[Tuple[bytes, float], Floats] = {}  # least recently used first

    def get(self, rows: Floats, perplexity: float) -> Floats:
        """`affinities(rows, perplexity)`, not to be written to."""
        key = hashlib.blake2b(rows.tobytes()).digest(), perplexity
        with self._lock:
            affinity = self._known.pop(key, None)
            if affinity is None:
                affinity = affinities(rows, perplexity)
            self._known[key] = affinity
            while len(self._known) > 1 and sum(one.nbytes for one in self._known.values()) > _CACHE_BYTES:
                del self._known[next(iter(self._known))]
            return affinity

#!/usr/bin/python3
"""What scikit-learn and scipy make of the inputs on which the baselines are compared with them.

`./make_baselines_golden.py > baselines_golden.json` writes the file beside it (Debian's
python3-sklearn, 1.2). `./make_baselines_golden.py --check baselines_golden.json` computes anew and
exits 1 where a value differs by more than rounding.
"""
import json
import sys

import numpy as np
from scipy.integrate import dblquad
from scipy.spatial.distance import pdist, squareform
from scipy.special import ive
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.manifold._t_sne import _gradient_descent, _joint_probabilities, _kl_divergence
from sklearn.random_projection import GaussianRandomProjection

N_GALLERY, N_TARGETS, DIM = 24, 6, 5


def unit_rows(rng, n):
    rows = rng.normal(size=(n, DIM)) * [3, 2, 1, 0.5, 0.25] + [1, 0, 0, 0, 0]
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def distances(targets, gallery):
    return np.linalg.norm(targets[:, None] - gallery[None], axis=2)


def principal_components(gallery, targets):
    """Distances between projected rows: the signs of components are arbitrary."""
    centred = PCA(n_components=2, svd_solver="full").fit(gallery)
    plain = TruncatedSVD(n_components=2, algorithm="arpack", random_state=0).fit(gallery)
    return {
        "pca": distances(centred.transform(targets), centred.transform(gallery)),
        "truncated_svd": distances(plain.transform(targets), plain.transform(gallery)),
    }


def random_projection(targets):
    """scikit-learn's components (k x d) and what it makes of the targets."""
    projection = GaussianRandomProjection(n_components=2, random_state=7).fit(targets)
    return {"components": projection.components_, "projected": projection.transform(targets)}


def tsne(rows, rng):
    """scikit-learn's affinities (in single precision), gradient, divergence and descent."""
    squared = squareform(pdist(rows, "sqeuclidean"))
    condensed = _joint_probabilities(squared.astype(np.float32), 8.0, 0)
    affinity = squareform(condensed).astype(np.float64)
    start = rng.normal(size=(len(rows), 2))
    arguments = [squareform(affinity), 1, len(rows), 2]
    divergence, gradient = _kl_divergence(start.ravel(), *arguments)
    near = 1e-2 * start

    def phase(at, steps, momentum, exaggeration):
        return _gradient_descent(
            _kl_divergence, at.ravel(), 0, steps, n_iter_check=10**6, momentum=momentum,
            learning_rate=5.0, args=[arguments[0] * exaggeration] + arguments[1:])[0]

    early = phase(near, 15, 0.5, 12.0)
    late = phase(early, 25, 0.8, 1.0)
    return {
        "perplexity": 8.0, "affinity": affinity, "at": start, "gradient": gradient.reshape(-1, 2),
        "exaggerated": _kl_divergence(
            start.ravel(), arguments[0] * 12, *arguments[1:])[1].reshape(-1, 2),
        "divergence": divergence, "near": near, "learning_rate": 5.0,
        "early": early.reshape(-1, 2), "late": late.reshape(-1, 2),
    }


def bingham():
    """Moments of exp(v B v^T) on the circle (von Mises in twice the angle) and on the sphere."""
    weight = 1.7
    b = np.array([2.5, 0.5, -1.0])

    def moment(f):
        def density(theta, z):
            r = np.sqrt(1 - z * z)
            v = np.array([r * np.cos(theta), r * np.sin(theta), z])
            return f(v) * np.exp(b @ (v * v))
        return dblquad(density, -1, 1, 0, 2 * np.pi, epsabs=1e-11)[0]

    normaliser = moment(lambda v: 1.0)
    squares = [moment(lambda v, i=i: v[i] ** 2) / normaliser for i in range(3)]
    return {"circle_weight": weight, "circle_cosine": ive(1, weight) / ive(0, weight),
            "sphere_diagonal": b, "sphere_squares": squares}


def matrix_bingham():
    """tr V^T B V over planes of three dimensions is tr B minus that of the normal: the normal has
    the law for -B."""
    b = np.array([1.5, 0.0, -1.0])

    def moment(f):
        def density(theta, z):
            r = np.sqrt(1 - z * z)
            v = np.array([r * np.cos(theta), r * np.sin(theta), z])
            return f(v) * np.exp(-b @ (v * v))
        return dblquad(density, -1, 1, 0, 2 * np.pi, epsabs=1e-11)[0]

    normaliser = moment(lambda v: 1.0)
    squares = [1 - moment(lambda v, i=i: v[i] ** 2) / normaliser for i in range(3)]
    return {"diagonal": b, "projection_diagonal": squares}


def plain(value):
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return np.asarray(value).tolist()


def golden():
    rng = np.random.default_rng(20120625)
    gallery, targets = unit_rows(rng, N_GALLERY), unit_rows(rng, N_TARGETS)
    rows = np.vstack([gallery, targets])
    return plain({
        "gallery": gallery, "targets": targets,
        "principal_components": principal_components(gallery, targets),
        "random_projection": random_projection(targets),
        "tsne": tsne(rows, rng),
        "bingham": bingham(),
        "matrix_bingham": matrix_bingham(),
    })


def same(one, other):
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return np.allclose(one, other, rtol=1e-7, atol=1e-10)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--check"]:
        with open(sys.argv[2]) as stored:
            matches = same(golden(), json.load(stored))
        print("same values" if matches else "values differ")
        sys.exit(0 if matches else 1)
    json.dump(golden(), sys.stdout)
    print()

"""The baselines of the evaluation against scikit-learn, closed formulas and brute force."""

import math
import unittest
from unittest import mock

import numpy as np
from scipy.spatial.distance import cdist, pdist, squareform
from scipy.special import ive
from scipy.stats import norm
from sklearn.decomposition import TruncatedSVD
from sklearn.manifold import _t_sne

from privatemail.evaluation import _seeded, baselines, tsne
from privatemail.evaluation.study import Rows, Split

# Tests that count or average allow six deviations: below 2e-9 a value in false alarms.
DEVIATIONS = 6
EPSILON, DELTA = 2, 1e-5


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def unlabelled(features):
    return Rows(np.asarray(features, float), np.zeros(len(features), int))


def cloud(rows, seed, d=5):
    """Rows of length 1 with distinct second moments."""
    rng = np.random.default_rng(seed)
    return unit(rng.normal(size=(rows, d)) * 3 / 2.**np.arange(d) + np.eye(d)[0])


def split_of(gallery, targets=None, anchors=None):
    gallery = unlabelled(gallery)
    return Split(gallery if anchors is None else unlabelled(anchors), gallery,
                 unlabelled(cloud(6, 2, gallery.features.shape[1]) if targets is None else targets))


def ranking(embedded):
    """Distances of targets to gallery rows, which do not depend on signs and order of axes."""
    return cdist(embedded[1], embedded[0])


def ranking_by(fitted, split):
    return cdist(fitted.transform(split.targets.features), fitted.transform(split.gallery.features))


def generator(seed=1):
    return np.random.default_rng(seed)


class Baselines(unittest.TestCase):

    def test_each_gives_a_row_for_each_row_and_depends_on_the_generator_alone(self):
        split = split_of(cloud(40, 1))
        for one in baselines.baselines(split, 2):
            with self.subTest(one.name):
                gallery, targets = one.embed(split, EPSILON, DELTA, generator())
                self.assertEqual((len(gallery), len(targets)), (40, 6))
                self.assertIn(f"({gallery.shape[1]} columns)", one.name)
                self.assertTrue(np.isfinite(gallery).all() and np.isfinite(targets).all())
                for again in one.embed(split, EPSILON, DELTA, generator()):
                    self.assertTrue((again == gallery).all() if len(again) == 40 else (again == targets).all())
                other = one.embed(split, EPSILON, DELTA, generator(2))[0]
                self.assertEqual((other == gallery).all(), one.name.startswith("PCA"))

    def test_epsilon_changes_those_that_are_private(self):
        split = split_of(cloud(40, 1))
        for one in baselines.baselines(split, 2):
            if "(5 columns)" in one.name:
                continue  # five columns are the whole space, so that the axes make no difference
            targets = [one.embed(split, epsilon, DELTA, generator())[1] for epsilon in (.1, 10)]
            self.assertEqual((targets[0] != targets[1]).any(), one.private, one.name)

class Linear(unittest.TestCase):

    def test_pca_ranks_by_singular_vectors_of_centred_rows(self):
        split = split_of(cloud(24, 1))
        mean = split.gallery.features.mean(axis=0)
        axes = np.linalg.svd(split.gallery.features - mean)[2][:2].T
        np.testing.assert_allclose(ranking(baselines.pca(2, split, 0, 0, generator())),
                                   cdist(split.targets.features @ axes, split.gallery.features @ axes), atol=1e-12)

    def test_private_pca_ranks_as_scikit_learn_under_vanishing_noise(self):
        split = split_of(np.tile(cloud(24, 1), (1000, 1)))
        expected = ranking_by(TruncatedSVD(2, algorithm="arpack", random_state=0).fit(split.gallery.features), split)
        for method in (baselines.analyse_gauss, baselines.published_ppca):
            np.testing.assert_allclose(ranking(method(2, split, 1e5, .1, generator())), expected, atol=1e-3)
        # Samples of that many anchors, which are the gallery itself, have nearly its axes.
        with mock.patch.object(baselines, "ANCHORS_EACH", 4000), mock.patch.object(baselines, "CANDIDATES", 64):
            np.testing.assert_allclose(ranking(baselines.candidate_ppca(2, split, 100, 0, generator())), expected,
                                       atol=.03)

    def test_analyse_gauss_adds_symmetric_noise_for_the_furthest_move(self):
        split = split_of(cloud(24, 1))
        exact = split.gallery.features.T @ split.gallery.features
        rng = generator()
        with mock.patch.object(baselines, "_heaviest", return_value=np.eye(5)) as heaviest:
            for _ in range(4000):
                baselines.analyse_gauss(5, split, EPSILON, DELTA, rng)
        lower = np.tril_indices(5)
        noise = np.array([call.args[0] - exact for call in heaviest.mock_calls])[:, lower[0], lower[1]]
        stddev = math.sqrt((noise**2).mean())
        self.assertAlmostEqual(stddev / (math.sqrt(2) * _seeded.gaussian_stddev(EPSILON, DELTA)), 1,
                               delta=DEVIATIONS * math.sqrt(.5 / noise.size))
        correlations = np.corrcoef(noise.T)
        self.assertLess(np.abs(correlations - np.eye(15)).max(), DEVIATIONS / math.sqrt(4000))
        # Rows mostly along one axis move the moments most.
        rows = unit(rng.normal(size=(2, 100_000, 4)) * [9, 1, .1, 9])
        moves = np.einsum("kni,knj->knij", rows, rows)
        furthest = np.linalg.norm((moves[0] - moves[1])[:, np.tril(np.ones((4, 4), bool))], axis=1).max()
        self.assertTrue(.99 * math.sqrt(2) < furthest <= math.sqrt(2))

    def test_heaviest_axes_are_those_of_the_lower_triangle(self):
        given = generator().normal(size=(6, 6))
        values, vectors = np.linalg.eigh(np.tril(given) + np.tril(given, -1).T)
        axes = baselines._heaviest(given, 2)
        np.testing.assert_allclose(axes @ axes.T, vectors[:, -2:] @ vectors[:, -2:].T, atol=1e-12)
        self.assertTrue((np.diff(values) > 0).all())

    def test_random_projection_adds_noise_for_the_furthest_move_to_targets_alone(self):
        # A gallery of the axes shows the projection.
        split = split_of(np.eye(400), np.tile(np.eye(400), (10, 1)))
        projection, targets = baselines.random_projection(4, split, EPSILON, DELTA, generator())
        self.assertAlmostEqual((projection**2).mean(), .25, delta=DEVIATIONS * .25 * math.sqrt(2 / projection.size))
        _, values, turned = np.linalg.svd(projection.T)
        furthest = np.linalg.norm((turned[0] - -turned[0]) @ projection)
        self.assertAlmostEqual(furthest, 2 * values[0])
        noise = (targets - np.tile(projection, (10, 1))) / _seeded.gaussian_stddev(EPSILON, DELTA) / furthest
        self.assertAlmostEqual((noise**2).mean(), 1, delta=DEVIATIONS * math.sqrt(2 / noise.size))
        self.assertAlmostEqual(noise.mean(), 0, delta=DEVIATIONS / math.sqrt(noise.size))


class ExponentialMechanism(unittest.TestCase):

    def assert_squares(self, drawn, diagonal, uniform):
        """The mean squares of drawn vectors or frames (n x d x k): those of `uniform` with weights exp(tr V^T B V)."""
        weights = np.exp(np.einsum("nic,i,nic->n", uniform, diagonal, uniform))
        expected = np.einsum("n,nic->i", weights, uniform**2) / weights.sum()
        squares = (drawn**2).sum(axis=2)
        # Weighing adds up to a hundredth.
        np.testing.assert_array_less(np.abs(squares.mean(axis=0) - expected),
                                     DEVIATIONS * squares.std(axis=0) / math.sqrt(len(drawn)) + .01)

    def test_matrix_bingham_has_the_moments_of_weighted_uniform_frames(self):
        turn = np.linalg.qr(generator().normal(size=(5, 5)))[0]
        for diagonal, columns, draws in (([4, 1.5, 0, 0, -2], 1, 1000), ([4, 3, 0, 0, -2], 2, 200),
                                         ([6, 4, 1, 1, 0], 4, 100)):
            with self.subTest(diagonal=diagonal, columns=columns):
                diagonal = np.array(diagonal, float)
                rng = generator(3)
                # The law turns with its matrix.
                drawn = np.array([baselines.matrix_bingham((turn.T * diagonal) @ turn, columns, 5, rng)
                                  for _ in range(draws)])
                products = np.swapaxes(drawn, 1, 2) @ drawn
                self.assertLess(np.abs(products - np.eye(columns)).max(), 1e-12)
                self.assert_squares(turn @ drawn, diagonal,
                                    np.linalg.qr(rng.normal(size=(50_000, 5, columns)))[0])

    def test_a_column_given_others_has_the_moments_of_weighted_uniform_vectors(self):
        rng = generator(4)
        frame = np.linalg.qr(rng.normal(size=(5, 5)))[0]
        for diagonal in np.array([9., 6, 2, 0, 0]), np.array([40., 30, 1, 0, -9]):
            drawn = np.array([baselines._bingham(diagonal, frame[:, :2], rng) for _ in range(1500)])
            self.assertLess(np.abs(drawn @ frame[:, :2]).max(), 1e-12)
            uniform = unit(rng.normal(size=(50_000, 3))) @ frame[:, 2:].T
            self.assert_squares(drawn[..., None], diagonal, uniform[..., None])

    def test_published_ppca_weighs_the_score_by_half_of_epsilon(self):
        # exp(epsilon / 2 (4 c^2 + 2 s^2)) on the circle: von Mises in twice the angle, with weight epsilon / 2.
        split = split_of(np.repeat(np.eye(2), [4, 2], axis=0), np.eye(2))
        rng = generator(5)
        axes = np.array([baselines.published_ppca(1, split, 3.4, 0, rng)[1] for _ in range(3000)])
        cosine = (axes[:, 0]**2 - axes[:, 1]**2).mean()
        self.assertAlmostEqual(cosine, ive(1, 1.7) / ive(0, 1.7), delta=DEVIATIONS / math.sqrt(len(axes)))

    def test_candidate_ppca_weighs_the_score_by_half_of_epsilon(self):
        split = split_of(np.repeat(np.eye(2), [2, 1], axis=0), np.eye(2))
        rng = generator(6)
        with mock.patch.object(baselines, "CANDIDATES", 2), \
                mock.patch("numpy.linalg.svd", return_value=(None, None, np.eye(2)[:, None])):
            first = np.mean([baselines.candidate_ppca(1, split, 3, 0, rng)[1][0, 0] for _ in range(10_000)])
        self.assertAlmostEqual(first, 1 / (1 + math.exp(-1.5)), delta=DEVIATIONS * .5 / 100)


class Tsne(unittest.TestCase):

    def setUp(self):
        self.rows = cloud(30, 1)
        self.condensed = _t_sne._joint_probabilities(squareform(pdist(self.rows, "sqeuclidean")).astype(np.float32), 8.,
                                                     0).astype(float)
        self.start = generator().normal(size=(30, 2))

    def test_affinities_are_scikit_learns(self):
        affinity = tsne.affinities(self.rows, 8)
        # Scikit-learn computes in single precision and stops at 1e-5 of the entropy.
        np.testing.assert_allclose(affinity, squareform(self.condensed), rtol=1e-3, atol=1e-8)
        self.assertTrue((affinity == affinity.T).all())
        self.assertAlmostEqual(affinity.sum(), 1)

    def test_gradient_is_scikit_learns_in_any_blocks(self):
        affinity = squareform(self.condensed)
        for exaggeration in (1, 12):
            expected = _t_sne._kl_divergence(self.start.ravel(), self.condensed * exaggeration, 1, 30, 2)[1]
            for size in (slice(0, 30),), (slice(0, 7), slice(7, 14), slice(14, 30)):
                with mock.patch.object(tsne, "_blocks", return_value=size):
                    np.testing.assert_allclose(tsne.gradient(affinity, exaggeration, self.start),
                                               expected.reshape(-1, 2), atol=1e-12)
        self.assertEqual([at for block in tsne._blocks(7000) for at in range(7000)[block]], list(range(7000)))

    def test_descends_as_scikit_learn(self):
        near = .01 * self.start
        at = near.ravel()
        for steps, momentum, exaggeration in ((15, .5, 12), (25, .8, 1)):
            at = _t_sne._gradient_descent(_t_sne._kl_divergence, at, 0, steps, n_iter_check=10**6, momentum=momentum,
                                          learning_rate=5., args=[self.condensed * exaggeration, 1, 30, 2])[0]
        affinity = squareform(self.condensed)
        found = tsne.descend(near, 5, 15, 25, lambda exaggeration, at: tsne.gradient(affinity, exaggeration, at))
        np.testing.assert_allclose(found, at.reshape(-1, 2), atol=1e-9)

    def test_classes_are_told_apart_in_two_columns_and_more(self):
        """In one, rows cannot pass each other: from half of all starts classes stay mixed."""
        rows = np.tile(np.eye(5)[:3], (15, 1)) + generator().normal(0, .05, (45, 5))
        for columns in (2, 3, 4):
            embedding = tsne.tsne(tsne.AffinityCache(), columns, rows, 8, 0, 0, generator())
            self.assertEqual(embedding.shape, (45, columns))
            nearest = np.argsort(squareform(pdist(embedding)), axis=1)[:, :10]
            self.assertTrue((nearest % 3 == np.arange(45)[:, None] % 3).all())
        self.assertEqual(tsne.tsne(tsne.AffinityCache(), 1, rows, 8, 0, 0, generator()).shape, (45, 1))

    def test_gallery_rows_that_are_not_embedded_lie_far_away(self):
        gallery, targets = tsne.embed_jointly(lambda columns, rows, *_: rows[:, :columns], 4, 3, split_of(cloud(10, 1)),
                                              0, 0, generator())
        kept = np.flatnonzero((gallery != tsne.FAR_AWAY).all(axis=1))
        self.assertEqual(kept.tolist(), [0, 2, 5, 7])
        self.assertTrue((gallery[kept] == cloud(10, 1)[kept, :3]).all())
        self.assertTrue((targets == cloud(6, 2)[:, :3]).all())

class DpDsne(unittest.TestCase):

    def test_gradients_are_clipped_as_a_whole(self):
        for given, expected in ([.003, -.004], [.003, -.004]), ([30, -40], [.006, -.008]), ([0, 0], [0, 0]):
            np.testing.assert_allclose(tsne.clipped(np.array([given], float)), [expected])

    def test_all_iterations_together_spend_the_cost_and_no_more(self):
        # By Gaussian composition of the single steps, from their noise alone.
        for epsilon in (.1, 2):
            mu = math.sqrt(tsne.EARLY + tsne.LATE) * 2 * tsne.CLIP / tsne.noise_stddev(epsilon, DELTA)
            delta = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
            self.assertAlmostEqual(delta / DELTA, 1, places=3)

    def test_moves_by_clipped_gradients_and_noise(self):
        rows = cloud(30, 1)
        affinity = tsne.affinities(rows, 8)

        def moved(epsilon):
            rng = generator()
            with mock.patch.object(tsne, "EARLY", 1), mock.patch.object(tsne, "LATE", 0), \
                    mock.patch.object(tsne, "START_STDDEV", 1):
                found = tsne.dp_dsne(tsne.AffinityCache(), 2, rows, 8, epsilon, .1, rng)
                noise = tsne.noise_stddev(epsilon, .1)
            start = generator().normal(size=(30, 2))
            exact = tsne.gradient(affinity, tsne.EXAGGERATION, start)
            self.assertGreater(np.linalg.norm(exact), tsne.CLIP)
            # The least learning rate is 50, and a first gain .8.
            return (start - found) / (50 * .8) - tsne.CLIP * exact / np.linalg.norm(exact), noise

        difference, noise = moved(1e5)
        self.assertLess(np.abs(difference).max(), DEVIATIONS * noise)
        self.assertLess(noise, .05 * tsne.CLIP)
        difference, noise = moved(1)
        self.assertAlmostEqual((difference**2).mean() / noise**2, 1, delta=DEVIATIONS * math.sqrt(2 / 60))

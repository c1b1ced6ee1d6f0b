"""Scores, intervals and ceilings against closed formulas, counting and published tables."""

import itertools
import math
import unittest
import warnings

import numpy as np
import scipy.stats

from privatemail.evaluation import stats


class Scores(unittest.TestCase):

    def test_count_the_class_and_the_overlap(self):
        gallery = np.array([1, 1, 2, 2, 3])
        found = np.array([[0, 2, 4, 1], [2, 0, 3, 4], [2, 3, 4, 0], [-1] * 4])
        nearest = np.array([[1, 3, 4, 2], [0, 1, 2, 3], [1, 4, 0, 2], [4, 3, 2, 1]])
        scores = stats.scores(found, gallery, np.array([1, 1, 5, 3]), nearest)
        self.assertEqual(scores, {"class_share": [.5, .25, 0, 0], "hit": [1, 1, 0, 0], "fidelity": [.75, .75, .75, 0]})

    def test_chance_is_the_share_of_all_answers(self):
        gallery = np.array([1, 1, 2, 2, 3])
        for k in range(1, 6):
            answers = np.array(list(itertools.combinations(range(5), k)))
            for label in (1, 2, 3, 4):
                nearest = np.tile(np.arange(k), (len(answers), 1))
                all_scores = stats.scores(answers, gallery, np.full(len(answers), label), nearest)
                chance = stats.scores_by_chance(gallery, np.array([2, label]), k)
                for name, values in all_scores.items():
                    self.assertAlmostEqual(chance[name][1], np.mean(values), msg=(name, k, label))


class BandsOfScores(unittest.TestCase):

    def assert_band(self, band, *expected, places=9):
        for value, one in zip((band.mean, band.low, band.high), expected):
            self.assertAlmostEqual(value, one, places)

    def test_one_split_has_the_width_of_the_standard_error(self):
        values = [((i + .5) / 400) for i in range(400)]
        band = stats.band_of_scores([values], 1)
        self.assertAlmostEqual(band.mean, .5)
        # Each end of 1,000 samples varies by a 25th of the width.
        self.assertAlmostEqual(band.high - band.low, 2 * 1.96 * math.sqrt(1 / 12) / 20, delta=.007)
        self.assertLess(abs(band.high + band.low - 1), .007)
        self.assertEqual(stats.band_of_scores([values], 1), band)
        self.assertNotEqual(stats.band_of_scores([values], 2), band)

    def test_several_splits_are_students_and_within_the_range(self):
        reach = 4.3027 * .1 / math.sqrt(3)  # the table of Student's t, 2 degrees of freedom
        self.assert_band(stats.band_of_scores([[.4, .4], [.5, .5], [.5, .7]], 1), .5, .5 - reach, .5 + reach, places=4)
        reach = 12.7062 * .01
        self.assert_band(stats.band_of_scores([[.49], [.51]], 1), .5, .5 - reach, .5 + reach, places=5)
        self.assert_band(stats.band_of_scores([[.2, 0], [1, .8]], 1), .5, 0, 1)

    def test_splits_with_equal_means_are_resampled_together(self):
        halves = [[0, 1] * 20, [1, 0] * 20]
        self.assertEqual(stats.band_of_scores(halves, 3), stats.band_of_scores([[0, 1] * 20 + [1, 0] * 20], 3))
        self.assertLess(stats.band_of_scores(halves, 3).low, .45)

    def test_scores_that_are_all_alike_are_no_points(self):
        # One split: as wide as with 39 of 40, whose samples miss 1 on average and up to 3. Two: Student's t of the
        # means .95 and 1, 12.7 standard errors of .025 below .975.
        for splits, end in ((1, 37 / 40), (2, .975 - 12.70620474 * .025)):
            ones = [[1.] * (40 // splits) for _ in range(splits)]
            zeros = [[0.] * (40 // splits) for _ in range(splits)]
            self.assert_band(stats.band_of_scores(ones, 1), 1, end, 1, places=8)
            self.assert_band(stats.band_of_scores(zeros, 1), 0, 0, 1 - end, places=8)
            nearly = [[0., *ones[0][1:]], *ones[1:]]
            self.assertEqual(stats.band_of_scores(nearly, 1).low, stats.band_of_scores(ones, 1).low)
            self.assertEqual(ones[0][0], 1, "it was changed")

    def test_one_target_says_nothing(self):
        for score in (0, .5, 1):
            self.assert_band(stats.band_of_scores([[score]], 1), score, 0, 1)

    def test_cover_the_mean_of_all_splits_in_19_of_20_cases(self):
        draws = np.random.default_rng(5)
        for splits, spread, cases in ((5, .2, 2000), (2, .2, 2000), (3, .05, 2000), (1, 0, 500)):
            covered = 0
            for case in range(cases):
                chances = np.clip(.5 + spread * draws.standard_normal((splits, 1)), 0, 1)
                band = stats.band_of_scores((draws.random((splits, 100)) < chances).astype(float).tolist(), case)
                covered += band.low <= .5 <= band.high
            self.assertAlmostEqual(covered / cases, .95, delta=.02 if cases == 2000 else .03, msg=(splits, spread))


class OtherBands(unittest.TestCase):

    def test_share_is_clopper_and_pearsons(self):
        for hits, answers in ((0, 10), (3, 10), (10, 10), (450, 1000)):
            band = stats.band_of_share(hits, answers, .99)
            self.assertEqual(band.mean, hits / answers)
            if hits:  # the chance of so many hits or more is the risk
                self.assertAlmostEqual(scipy.stats.binom.sf(hits - 1, answers, band.low), .005)
            if hits < answers:
                self.assertAlmostEqual(scipy.stats.binom.cdf(hits, answers, band.high), .005)
        self.assertEqual(stats.band_of_share(0, 10, .95).low, 0)
        self.assertAlmostEqual(stats.band_of_share(0, 10, .95).high, 1 - .025**.1)
        self.assertEqual(stats.band_of_share(10, 10, .95).high, 1)

    def test_difference_is_paired(self):
        one, other = [.5, .9, .4, .7], [.4, .7, .1, .5]
        band = stats.band_of_difference(one, other, .95)
        self.assertAlmostEqual(band.mean, .2)
        # scipy.stats.t.ppf(.975, 3) and the deviation of .1, .2, .3, .2
        self.assertAlmostEqual(band.high - .2, 3.182446305284263 * .0816496580927726 / 2)
        self.assertAlmostEqual(band.low + band.high, .4)
        self.assertGreater(stats.band_of_difference(one, other, .99).high, band.high)
        self.assertEqual(stats.band_of_difference([.1, .2, .3], [.2, .3, .1 + 1e-16], .95).mean, 0)

    def test_difference_without_a_width_is_none(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertIsNone(stats.band_of_difference([.5], [.4], .95))
        self.assertNotEqual(.3 - .1, .7 - .5)
        self.assertIsNone(stats.band_of_difference([.3, .7], [.1, .5], .95))

    def test_ends_of_ratio_are_refuted_with_the_risk(self):
        draws = np.random.default_rng(1)
        wholes = 2 + draws.standard_normal(20)
        parts = .7 * wholes + .3 * draws.standard_normal(20)
        band = stats.band_of_ratio(parts, wholes)
        self.assertAlmostEqual(band.mean, parts.mean() / wholes.mean())
        self.assertLess(band.low, band.high)
        for end in (band.low, band.high):
            self.assertAlmostEqual(scipy.stats.ttest_1samp(parts - end * wholes, 0).pvalue, .05)

    def test_ratio_to_wholes_that_may_be_0_is_none(self):
        self.assertIsNone(stats.band_of_ratio([1, 3], [2, 4]))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertIsNone(stats.band_of_ratio([1], [2]))
        self.assertIsNone(stats.band_of_ratio([1, 2, 3], [-2, -2.1, -1.9]))


def subset_selection_hits(epsilon, classes, k):
    """By counting: of all sets of k classes, one with the target's is e^epsilon times as likely as one without."""
    weights = {True: 0., False: 0.}
    for chosen in itertools.combinations(range(classes), k):
        weights[0 in chosen] += math.exp(epsilon) if 0 in chosen else 1
    return weights[True] / sum(weights.values())


class LabelHidingCeiling(unittest.TestCase):

    def test_is_reached_by_subset_selection(self):
        for k, epsilon in itertools.product((1, 2, 5, 9), (.1, 1, 4)):
            self.assertAlmostEqual(stats.label_hiding_ceiling(epsilon, 0, 10, k), subset_selection_hits(epsilon, 10, k))

    def test_delta_buys_the_class_outright(self):
        # Says the class with probability delta, and otherwise selects a subset: the best for k = 1.
        hits = [.05 + .95 * subset_selection_hits(1, 10, k) for k in (1, 3)]
        self.assertAlmostEqual(stats.label_hiding_ceiling(1, .05, 10, 1), hits[0])
        self.assertLess(hits[1], stats.label_hiding_ceiling(1, .05, 10, 3))

    def test_is_one_where_nothing_is_hidden(self):
        self.assertEqual(stats.label_hiding_ceiling(0, 0, 10, 10), 1)
        self.assertEqual(stats.label_hiding_ceiling(0, 0, 10, 11), 1)
        self.assertEqual(stats.label_hiding_ceiling(1e6, 0, 10, 1), 1)
        self.assertEqual(stats.label_hiding_ceiling(0, .99, 10, 9), 1)
        self.assertAlmostEqual(stats.label_hiding_ceiling(0, .99, 10, 1), .1 + .99 * .9, 14)

    def test_over_targets_of_equal_classes_is_the_same(self):
        for epsilon, delta in itertools.product((0, .5, 3, 800), (0, 1e-5, .05)):
            self.assertAlmostEqual(stats.label_hiding_ceiling_over_targets(epsilon, delta, 10, .1),
                                   stats.label_hiding_ceiling(epsilon, delta, 10, 1), 12)
        self.assertAlmostEqual(stats.label_hiding_ceiling_over_targets(0, 0, 10, .7), .7, msg="the guess")
        self.assertEqual(stats.label_hiding_ceiling_over_targets(0, 0, 10, 1), 1)

    def test_over_targets_is_passed_by_no_answer_that_is_allowed(self):
        # Two classes: of naming the larger one, for a target of it and for one of the other.
        one, other = np.meshgrid(np.linspace(0, 1, 201), np.linspace(0, 1, 201))
        for epsilon, delta, largest in itertools.product((0, .3, 1, 3), (0, .1), (.5, .7, .9)):
            allowed = np.ones_like(one, bool)
            for p, q in ((one, other), (other, one), (1 - one, 1 - other), (1 - other, 1 - one)):
                allowed &= p <= math.exp(epsilon) * q + delta
            best = (largest * one + (1 - largest) * (1 - other))[allowed].max()
            ceiling = stats.label_hiding_ceiling_over_targets(epsilon, delta, 2, largest)
            self.assertLessEqual(best, ceiling + 1e-12)
            self.assertGreaterEqual(best, largest)
            if largest == .5:
                self.assertAlmostEqual(best, ceiling, delta=.01, msg="equal classes reach it")

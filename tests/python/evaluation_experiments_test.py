"""Ablation, convergence, alignment, related mechanisms and attacks: of planted results, and of small synthetic data."""

import dataclasses
import math
import tempfile
import unittest

import numpy as np
import scipy.optimize
import scipy.stats

from privatemail.evaluation import runner, stats
from privatemail.evaluation.experiments.ablation import ablation
from privatemail.evaluation.experiments.attacks import attacks
from privatemail.evaluation.experiments.convergence import alignment, convergence
from privatemail.evaluation.experiments.related import bounded_gaussian, inference_privacy
from privatemail.evaluation.study import Rows, Settings, Study
from privatemail.evaluation.sweep import OF_EVERY_CLASS, Stage, short
from evaluation_results import planted, series

CLASSES = 6
TARGETS = 18


def clouds(rows_of_class):
    """Rows around random directions, one a class."""
    random = np.random.default_rng(1)
    centres = random.normal(size=(len(rows_of_class), 6))
    labels = np.repeat(np.arange(len(rows_of_class)), rows_of_class)
    features = centres[labels] + .5 * random.normal(size=(len(labels), 6))
    return Rows(features / np.linalg.norm(features, axis=1, keepdims=True), labels)


def small_study(**changes):
    study = Study(clouds([30] * CLASSES), "clouds", anchors_per_class=5, targets=TARGETS, gallery_per_class=20, k=4,
                  seeds=2, epsilons=(.1, 10), settings=Settings(kernel_bandwidth=1, steps=3))
    return dataclasses.replace(study, **changes)


def heights(panel, name):
    return [point.y for point in series(panel, name).points]


class Ablation(unittest.TestCase):

    def figure(self, by_key, stage=None, results=None):
        experiment = ablation(stage or Stage(small_study()))
        return experiment.draw(results or planted(experiment, by_key, TARGETS))[0]

    def test_does_not_take_chance_for_the_label(self):
        figure = self.figure({"as it is": .1, "random feature": .1, "wrong label": .1})
        self.assertTrue(figure.title.startswith("The label is not shown to raise recall@4: 0.105 as it is"))
        self.assertIn("cannot be said from these data", figure.words[0])

    def test_share_has_the_ratios_that_no_test_rejects(self):
        stage = Stage(small_study(seeds=4))
        scores = {"as it is": [.8, .85, .95, .9], "random feature": [.6, .7, .75, .7], "wrong label": [.1, .2, .1, .15]}
        experiment = ablation(stage)
        results = planted(experiment, {}, TARGETS)
        for job, result in zip(experiment.jobs, results):
            for name, of_seeds in scores.items():
                if job.key.startswith(name + " at 1,"):
                    result["hit"] = [of_seeds[int(job.key[-1]) - 1]] * TARGETS
        band = stats.band_of_ratio(np.subtract(scores["random feature"], scores["wrong label"]),
                                   np.subtract(scores["as it is"], scores["wrong label"]))
        expected = f"The label alone gives {short(band.mean)} ({short(band.low)} to {short(band.high)}) of what recall@4"
        self.assertTrue(self.figure({}, stage, results).words[0].startswith(expected))

    def test_changes_are_compared_in_pairs(self):
        words = self.figure({"as it is at 1,": .8, "kernel over s at 1,": .6, "kernel over s at 0,": .7}).words
        # Splits differ in both alike: the difference has no width.
        self.assertIn("With kernel over s, recall@4 is 0.605 instead of 0.805 at epsilon 1 and 0.705 instead of 0.505 "
                      "without noise.", words)
        experiment = ablation(Stage(small_study()))
        results = planted(experiment, {"kernel over s at 1, seed 1": .7}, TARGETS)
        words = self.figure({}, None, results).words
        band = stats.band_of_difference([.7, .51], [.5, .51], .95)
        self.assertIn(f"0.605 instead of 0.505 (by 0.1 ({short(band.low)} to {short(band.high)})) at", str(words))

    def test_bars_are_of_the_changes(self):
        figure = self.figure({"as it is at 1,": .8, "as it is at 0,": .9, "kernel over s^2": .3, OF_EVERY_CLASS: .7})
        self.assertEqual(figure.x.categories[:4], ("as it is", "random feature", "wrong label", "without slots"))
        self.assertEqual(len(figure.x.categories), 9)  # three graphs and two kernels
        for panel in figure.panels:
            noisy = heights(panel, "epsilon 1")
            np.testing.assert_allclose([noisy[0], noisy[8], heights(panel, "without noise")[0]], [.805, .305, .905])
            self.assertAlmostEqual(heights(panel, OF_EVERY_CLASS)[0], .705)

class Convergence(unittest.TestCase):

    def setUp(self):
        self.experiment = convergence(Stage(small_study()))

    def draw(self, as_defined, scaled, by_key=None):
        """Of objectives of two runs."""
        results = planted(self.experiment, by_key or {}, TARGETS)
        results[-2:] = [{"as_defined": a, "scaled": s} for a, s in zip(as_defined, scaled)]
        return self.experiment.draw(results)

    def test_says_of_any_run_whether_it_rose(self):
        """The mean of the runs falls in every iteration."""
        falling = [100. - 2 * i for i in range(15)]
        for rises in (0, 1, 3):
            other = np.cumsum([100.] + [1 if i < rises else -1 for i in range(14)]).tolist()
            figure = self.draw([falling] * 2, [falling, other])[1]
            told = f"is not monotone: it rose in {rises} of 28 iterations of 2 runs" if rises else \
                "never rose in 28 iterations of 2 runs"
            self.assertEqual(figure.title, f"At constant norm, as drawn, the server's objective {told}")
            self.assertIn("The objective as the papers define it, of the iterate, never rose in 28 iterations of 2 "
                          "runs.", figure.words)
            figure = self.draw([falling, other], [falling] * 2)[1]
            self.assertIn(f"of the iterate, {told}.", str(figure.words))
            self.assertIn("never rose", figure.title)

    def test_rounding_is_no_rise(self):
        settled = [1e3] + [1e3 + 1e-10 * (i % 2) for i in range(14)]
        self.assertIn("never rose", self.draw([settled] * 2, [settled] * 2)[1].title)
        rising = [1e3 + 1e-8 * i for i in range(15)]
        self.assertIn("rose in 28 of 28", self.draw([rising] * 2, [rising] * 2)[1].title)

    def test_names_the_first_number_of_steps_that_is_nearly_the_best(self):
        at = "epsilon 1 at "
        by_key = {at + "1,": .74, at + "2,": .76, at + "3,": .77, at + "4,": .8, "without noise": .6, "epsilon 1": .78}
        figure = self.draw([[1.]] * 2, [[1.]] * 2, by_key)[0]
        self.assertEqual(figure.title, "At epsilon 1 T = 2 gives 95 % of the best recall@4")
        self.assertIn("At epsilon 1 recall@4 is at most 0.805 (", figure.words[0])
        self.assertIn("with T = 4, and has 95 % of that with T = 2. ", figure.words[0])

class Alignment(unittest.TestCase):

    def test_mean_residual_is_of_what_was_aligned(self):
        experiment = alignment(Stage(small_study(seeds=3)))
        dots = {f"{what}_{when}": [1., 2., 0.]
                for what in ("anchors", "slots", "target") for when in ("before", "after")}
        release = {"server": [3., 4., 5.], **dots}
        refused = {"refused": "anchors on a line"}
        figure = experiment.draw([refused, {**release, "residual": [.25]}, {**release, "residual": [.75]},
                                  refused, refused, refused])[0]
        self.assertEqual(figure.title, "The anchors' residual under the alignment is 0.5 at epsilon 0.1")
        for words, epsilon, count in ((figure.words[1], .1, 1), (figure.words[2], 10, 3)):
            self.assertIn(f"At epsilon {epsilon} {count} of 3 releases could not be made or aligned", words)


class Related(unittest.TestCase):

    def test_bounded_gaussian_has_the_published_variances(self):
        experiment = bounded_gaussian(Stage(small_study()))
        figure = experiment.draw([job.run() for job in experiment.jobs])[0]
        variances = {line.name: [point.y for point in line.points] for line in figure.panels[0].series}
        epsilons = [point.x for point in figure.panels[0].series[0].points]
        self.assertEqual(epsilons, [.1, .2, .5, 1, 1.5, 2, 2.5, 3])
        np.testing.assert_allclose(variances["generalised Gaussian, as published"], np.divide(132, epsilons))
        np.testing.assert_allclose(variances["unbounded, as published (proven below epsilon 1)"],
                                   20 * 2 * math.log(1.25 / 1e-5) / np.square(epsilons))
        np.testing.assert_allclose(variances["unbounded, analytic"],
                                   [20 / gaussian_mu(epsilon, 1e-5)**2 for epsilon in epsilons], rtol=1e-6)
        printed, exactly = np.array(variances["bounded, as published"]), np.array(variances["bounded, exact"])
        self.assertAlmostEqual(printed[0], 857.518165, places=4)  # the paper's table 1
        factors = printed / exactly
        self.assertGreater(factors.min(), 1)
        self.assertIn(f"asks for {short(factors.min())} to {short(factors.max())} times the variance", figure.title)

    def test_inference_privacy_tells_the_range(self):
        experiment = inference_privacy(Stage(small_study()))
        self.assertEqual(len({job.key for job in experiment.jobs}), len(experiment.jobs))
        by_key = {"radius at epsilon 1: lap-output at 0.05": .9, "radius at epsilon 1: gauss-output at 2": .4,
                  "epsilon at radius 0.5: gauss-input": .7, "epsilon at radius 0.5: lap-output at 10": .1,
                  "epsilon by radius: gauss-output, radius 0.2 at 10": .8, "epsilon by radius: without noise": .3}
        figures = experiment.draw(planted(experiment, by_key, TARGETS))
        mechanisms = ["lap-output", "gauss-output", "gauss-input", "without noise"]
        by_radius = [*(f"gauss-output, radius {radius}" for radius in (.1, .2, .5, 1)), "without noise"]
        for figure, lines, ends in zip(figures, (mechanisms, mechanisms, by_radius), (
                "from 0.405 (gauss-output at radius 2) to 0.905 (lap-output at radius 0.05), without noise 0.505",
                "from 0.105 (lap-output at epsilon 10) to 0.705 (gauss-input at epsilon 0.1), without noise 0.505",
                "from 0.505 (gauss-output, radius 0.1 at epsilon 0.1) to 0.805 (gauss-output, radius 0.2 at epsilon "
                "10), without noise 0.305")):
            self.assertTrue(figure.title.endswith(ends), figure.title)
            self.assertEqual([line.name for line in figure.panels[0].series], lines)


def gaussian_mu(epsilon, delta):
    """The mu for which mu-Gaussian differential privacy is (epsilon, delta) (Balle and Wang 2018, theorem 8)."""
    cdf = scipy.stats.norm.cdf
    return scipy.optimize.brentq(
        lambda mu: cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * cdf(-mu / 2 - epsilon / mu) - delta, 1e-3, 50,
        xtol=1e-14)


def named_by(epsilon, delta, classes=CLASSES):
    """The most that (epsilon, delta) allows in naming one of some equally frequent classes."""
    return (math.exp(epsilon) + (classes - 1) * delta) / (math.exp(epsilon) + classes - 1)


class Attacks(unittest.TestCase):
    names = ("likelihood", "likelihood-of-class", "dummies", "label", "label-without-slots", "inversion", "cell")

    def draw(self, study, right):
        """Figures by attack. right: of a job's key, the right answers of its targets."""
        experiment = attacks(Stage(study))
        self.assertEqual(len(experiment.jobs), 7 * (len(study.epsilons) + 1) * study.seeds)
        figures = experiment.draw([{"right": right(job.key)} for job in experiment.jobs])
        self.assertEqual([figure.id for figure in figures], [f"attack-{name}" for name in self.names])
        return dict(zip(self.names, figures))

    def test_broken_guarantee_is_told(self):
        figures = self.draw(small_study(), lambda key: [float(key.startswith("dummies at"))] * TARGETS)
        low = .025**(1 / 36)  # Clopper and Pearson's, of 36 answers that are all right
        figure = figures["dummies"]
        self.assertEqual(figure.title, f"THE GUARANTEE IS BROKEN by an attacker who knows every dummy: at least "
                                       f"{short(low)} right at epsilon 0.1, allowed {short(named_by(.1, 1e-5))}")
        self.assertIn("IT DOES BETTER THAN THE GUARANTEE ALLOWS at epsilon 0.1, at a risk of error of 1e-06 over 12 "
                      "looks of this report: the guarantee is broken.", figure.words)
        point = series(figure.panels[0], "right answers").points[1]
        self.assertEqual((point.x, point.y, point.high), (10, 1, 1))
        self.assertAlmostEqual(point.low, low, 9)
        self.assertIn("On releases without noise it is right in 0 (0 to 0.0974) of the cases", str(figure.words))
        for name in set(self.names) - {"dummies"}:
            self.assertNotIn("broken", str(figures[name].words))

    def test_guarantee_holds_where_the_interval_is_below_what_it_allows(self):
        study = small_study(epsilons=(.1, 1, 10))
        title = self.draw(study, lambda key: [0.] * TARGETS)["label"].title
        self.assertEqual(title, f"The guarantee holds against an attacker who sees what the server sees: at most "
                                f"{short(1 - .025**(1 / 36))} right at epsilon 1, allowed {short(named_by(1, 1e-5))}")
        # 12 of 36, at epsilon 1 only: a little less than allowed, and the interval ends above.
        some = self.draw(study, lambda key: [1.] * 6 + [0.] * 12 if " at 1," in key else [0.] * TARGETS)["label"]
        self.assertIn("is not shown to be broken by an attacker who sees what the server sees: 0.333 (", some.title)
        self.assertEqual(heights(some.panels[0], "right answers"), [0, 1 / 3, 0])

    def test_risk_of_a_false_alarm_is_shared_out(self):
        """Of 12 looks each has a half of 1e-6 / 12 below its interval."""
        low = [scipy.stats.beta.ppf(1e-6 / 12 / 2, right, 37 - right) for right in range(1, 37)]
        least = 1 + next(i for i, end in enumerate(low) if end > named_by(.1, 1e-5))
        for right, broken in ((least - 1, False), (least, True)):
            answers = [1.] * (right // 2) + [0.] * TARGETS, [1.] * (right - right // 2) + [0.] * TARGETS
            figure = self.draw(small_study(), lambda key: answers[int(key[-1]) - 1][:TARGETS])["label"]
            self.assertEqual("the guarantee is broken" in str(figure.words), broken)
            self.assertEqual("BROKEN" in figure.title, broken)

    def test_better_than_a_guess_is_a_matter_of_the_interval(self):
        for right, better in ((4, False), (6, True)):  # 8 and 12 of 36, where a guess has 6
            figure = self.draw(small_study(), lambda key: [1.] * right + [0.] * (TARGETS - right))["cell"]
            self.assertEqual("not shown to be better than a guess" in str(figure.words), not better)

    def test_attack_that_nothing_bounds_is_compared_with_a_guess(self):
        figure = self.draw(small_study(), lambda key: [1.] * TARGETS)["label-without-slots"]
        self.assertRegex(figure.title, "^No guarantee binds .*: 1 right at epsilon 0.1, a guess 0.167$")
        self.assertNotIn("the guarantee allows", [line.name for line in figure.panels[0].series])
        self.assertIn("0.833 (0.736 to 0.833) above a guess", str(figure.words))

    def test_each_attack_is_held_to_the_law_of_its_guarantee(self):
        figures = self.draw(small_study(epsilons=(1, 2), delta=.01), lambda key: [0.] * TARGETS)
        expected = {name: named_by(1, .01) for name in ("dummies", "label")}
        expected["cell"] = named_by(1, 0)
        optimal = scipy.stats.norm.cdf(gaussian_mu(1, .01) / 2)
        self.assertAlmostEqual(optimal, .6049798663433418)
        expected.update(dict.fromkeys(("likelihood", "likelihood-of-class", "inversion"), optimal))
        for name, allowed in expected.items():
            self.assertAlmostEqual(heights(figures[name].panels[0], "the guarantee allows")[0], allowed, 8, name)
            guess = .5 if optimal == allowed else 1 / CLASSES
            self.assertEqual(heights(figures[name].panels[0], "a guess")[0], guess)

    def test_what_is_allowed_is_no_breach(self):
        """As good as allowed at 40 epsilons: each interval is above that with a chance of up to 2.5 %."""
        study = small_study(epsilons=tuple(.1 * i for i in range(1, 41)))
        random = np.random.default_rng(7)  # some intervals are above

        def chance(key, breach):
            if not key.startswith("dummies at"):
                return 0
            epsilon = float(key.split()[2][:-1])
            return .95 if breach and epsilon == study.epsilons[2] else named_by(epsilon, 1e-5)

        def figure(breach):
            return self.draw(study, lambda key: (random.random(TARGETS) < chance(key, breach)).tolist())["dummies"]

        fair = figure(breach=False)
        above = [point.x for point in series(fair.panels[0], "right answers").points
                 if point.low > named_by(point.x, 1e-5)]
        self.assertGreater(len(above), 0)
        self.assertNotIn("broken", str(fair.words))
        self.assertIn("ALLOWS at epsilon 0.3, at a risk of error of 1e-06 over 240 looks", str(figure(True).words))

    def test_naming_a_large_class_breaks_no_guarantee(self):
        """A class with many rows, the others with one more than anchors and gallery need."""
        study = small_study(rows=clouds([30] + [7] * 5), targets=25, gallery_per_class=1)
        stage = Stage(study)
        experiment = attacks(stage)
        results = [{"right": (stage.split(int(job.key[-1])).targets.labels == 0).astype(float).tolist()}
                   for job in experiment.jobs]
        share = np.mean(results[0]["right"])
        self.assertAlmostEqual(share, .8)  # 20 of 25
        for figure in experiment.draw(results):
            if figure.id in ("attack-dummies", "attack-label", "attack-cell"):
                self.assertEqual(figure.words[1], "A guess is right in 0.8.")
                self.assertNotIn("broken", str(figure.words))
                self.assertIn("not shown to be better than a guess", figure.words[2])
                expected = math.exp(.1) / (math.exp(.1) + .25)
                self.assertAlmostEqual(heights(figure.panels[0], "the guarantee allows")[0], expected, 4)

    def test_unequal_remainders_are_no_larger_class(self):
        """20 targets of 6 classes: two have one more than the others, drawn anew in every split."""
        figure = self.draw(small_study(targets=20), lambda key: [0.] * 20)["dummies"]
        self.assertEqual(heights(figure.panels[0], "a guess"), [1 / CLASSES] * 2)

class EndToEnd(unittest.TestCase):
    """On six clouds, with the C++ core."""

    @classmethod
    def setUpClass(cls):
        cls.study = small_study()
        cls.stage = Stage(cls.study)
        cls.figures = {}
        for make in (ablation, convergence, alignment, inference_privacy, attacks):
            with tempfile.TemporaryDirectory() as folder:
                for figure in runner.run([make(cls.stage)], folder, "six clouds", None):
                    cls.figures[figure.id] = figure

    def test_figures_are_of_numbers_within_their_bands(self):
        self.assertEqual(len(self.figures), 1 + 2 + 1 + 3 + 7)
        for figure in self.figures.values():
            self.assertNotIn("Not measured", figure.title + str(figure.words))
            for line in (line for panel in figure.panels for line in panel.series):
                points = np.array([(point.x, point.y, point.low, point.high) for point in line.points])
                self.assertTrue(np.isfinite(points[:, :2]).all(), (figure.id, line.name))
                _, y, low, high = points[~np.isnan(points[:, 2])].T
                self.assertTrue((low <= y + 1e-12).all() and (high >= y - 1e-12).all(), (figure.id, line.name))

    def test_figures_agree_about_a_condition(self):
        def at(figure, name, x):
            return {point.x: point.y for point in series(self.figures[figure].panels[2], name).points}[x]

        noisy, exactly = (at("ablation", name, 0) for name in ("epsilon 1", "without noise"))
        self.assertLess(noisy, exactly)
        self.assertEqual(at("convergence-recall", "epsilon 1", 3), noisy)  # the study's steps
        self.assertEqual(at("convergence-recall", "without noise", 3), exactly)
        self.assertEqual(at("inference-privacy-epsilon", "without noise", .1), exactly)
        for figure, x, epsilon, radius in (("radius", .05, 1, .05), ("radius", 2, 1, 2), ("epsilon", .1, .1, .5)):
            self.assertEqual(at(f"inference-privacy-{figure}", "gauss-output", x),
                             self.stage_fidelity(epsilon=epsilon, delta=1e-5, mechanism="gauss-output", radius=radius))

    def stage_fidelity(self, **how):
        """The mean overlap of answers of the core with the nearest."""
        shares = []
        for seed in (1, 2):
            found, _, _ = self.stage.scene(seed).ask(**how)
            shares += [len(set(one) & set(near)) / 4 for one, near in zip(found, self.stage.trial(seed).nearest)]
        return np.mean(shares)

    def test_alignment_brings_the_anchors_to_the_servers(self):
        figure = self.figures["alignment"]
        self.assertEqual(len(figure.panels), 5)  # the server's, and two for each epsilon

        def dots(panel, name="anchors"):
            return np.array([(dot.x, dot.y, dot.group) for dot in series(panel, name).points])

        server = dots(figure.panels[0])
        self.assertEqual(len(server), 30)
        spread = np.linalg.norm(server[:, :2] - server[:, :2].mean(axis=0))
        for before, after in (figure.panels[1:3], figure.panels[3:5]):
            for panel in (before, after):
                np.testing.assert_array_equal(dots(panel)[:, 2], server[:, 2])
                self.assertEqual(dots(panel, "the target's slot")[:, 2].tolist(),
                                 [self.stage.split(1).targets.labels[0]])
            residual = np.linalg.norm(dots(after) - server) / spread
            self.assertLess(residual, min(1.1, np.linalg.norm(dots(before) - server) / spread))
        # The last panels are of the first split at epsilon 10, whose residual the job has, too.
        self.assertAlmostEqual(alignment(self.stage).jobs[2].run()["residual"][0], residual, 9)

    def test_no_attack_breaks_a_guarantee(self):
        for name in Attacks.names:
            figure = self.figures["attack-" + name]
            self.assertNotIn("the guarantee is broken", str(figure.words))
            if name != "label-without-slots":
                line = series(figure.panels[0], "the guarantee allows").points
                for point, allowed in zip(series(figure.panels[0], "right answers").points, (line[0].y, line[-1].y)):
                    self.assertLess(point.y, allowed + 5 * math.sqrt(allowed * (1 - allowed) / 36) + 1e-9, name)

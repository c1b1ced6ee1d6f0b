"""Sweeps, runner, the experiments recall, cells and settings, verdict and command line of the evaluation."""

import contextlib
import dataclasses
import io
import itertools
import math
import os
import pathlib
import tempfile
import unittest
from unittest import mock

import numpy as np

from privatemail.errors import FailedPrecondition, InvalidArgument
from privatemail.evaluation import __main__ as command_line
from privatemail.evaluation import runner, stats, sweep, verdict
from privatemail.evaluation.baselines import Baseline
from privatemail.evaluation.experiments import cells, recall, select, settings
from privatemail.evaluation.study import Experiment, Job, Rows, Settings, Study
from evaluation_results import planted, series


def clouds(classes, each, dim, seed, spread=.5):
    """Rows around random directions, one a class."""
    draws = np.random.default_rng(seed)
    labels = np.arange(classes * each) % classes
    rows = draws.normal(size=(classes, dim))[labels] + spread * draws.normal(size=(classes * each, dim))
    return Rows(rows / np.linalg.norm(rows, axis=1, keepdims=True), labels)


SMALL = Study(clouds(20, 20, 8, 1), "clouds", anchors_per_class=4, targets=20, gallery_per_class=12, k=4, seeds=2,
              epsilons=(.1, 10), settings=Settings(alpha=3, steps=8, label_graph="distance", start="random"))


def run(experiment, folder=None):
    with tempfile.TemporaryDirectory() as name:
        return runner.run([experiment], folder or name, "key", None)


def names(panel):
    return [one.name for one in panel.series]


def joined(figure):
    return "\n".join(figure.words)


class Stages(unittest.TestCase):

    def test_values_out_of_range_are_named(self):
        for field, values in (("epsilon", (1e-7, 2e6, math.nan)), ("delta", (0, 1e-310, 1)), ("k", (0, 241)),
                              ("epsilons", ((1e-7,), (math.nan,), (1, 1), ())), ("seeds", (0,)), ("targets", (1000,)),
                              ("settings", (dataclasses.replace(SMALL.settings, steps=0),))):
            for value in values:
                with self.assertRaisesRegex(InvalidArgument, f"^{field.replace('settings', 'steps')} must be"):
                    sweep.Stage(dataclasses.replace(SMALL, **{field: value}))
        sweep.Stage(dataclasses.replace(SMALL, epsilons=(1e-6, 1e6), k=240))

    def test_alpha_is_that_of_new_collections(self):
        stage = sweep.Stage(dataclasses.replace(SMALL, settings=Settings()))
        self.assertEqual(stage.study.settings.alpha, 20)  # of the balanced graph the number of classes
        np.testing.assert_array_equal(stage.scene(1, Settings()).anchor_rows,
                                      stage.scene(1, Settings(alpha=20)).anchor_rows)


class Conditions(unittest.TestCase):

    def setUp(self):
        self.stage = sweep.Stage(SMALL)

    def test_k_of_every_class_has_the_mean_of_all_draws(self):
        rows = clouds(3, 40, 8, 1)
        few = np.concatenate([np.flatnonzero(rows.labels == label)[:count] for label, count in enumerate((9, 20, 40))])
        stage = sweep.Stage(dataclasses.replace(SMALL, rows=rows.take(few), targets=6))
        result = sweep.of_every_class(stage).run(0, 1, "")
        split, nearest = stage.split(1), stage.trial(1).nearest
        sizes = set()
        for target, label in enumerate(split.targets.labels):
            of_class = np.flatnonzero(split.gallery.labels == label)
            sizes.add(len(of_class))
            draws = [[*draw, *[-1] * (4 - len(draw))]
                     for draw in itertools.combinations(of_class, min(4, len(of_class)))]
            means = stats.scores(np.array(draws), split.gallery.labels, np.full(len(draws), label),
                                 np.tile(nearest[target], (len(draws), 1)))
            for key, values in means.items():
                self.assertAlmostEqual(result[key][target], np.mean(values), msg=key)
        self.assertLess(min(sizes), 4)
        self.assertTrue(any(result["fidelity"][target] > 0 for target in np.flatnonzero(split.targets.labels == 0)))

    def test_rows_that_are_not_finite_are_not_answered(self):
        split = self.stage.split(1)
        gallery, targets = split.gallery.features, split.targets.features.copy()
        self.assertEqual(sweep.scored_rows(self.stage, 1, gallery, targets)["fidelity"], [1] * 20)
        targets[3, 2] = math.nan
        one = sweep.scored_rows(self.stage, 1, gallery, targets)
        self.assertEqual(one["unanswered"], [1])
        self.assertEqual(one["fidelity"], [1] * 3 + [0] + [1] * 16)
        wrong = gallery.copy()
        wrong[0, 0] = math.inf
        none = sweep.scored_rows(self.stage, 1, wrong, targets)
        self.assertEqual((none["unanswered"], none["hit"]), ([20], [0] * 20))

    def test_collection_that_is_not_built_finds_nothing(self):
        def scores(**changes):
            with_changes = dataclasses.replace(Settings(), **changes)
            return sweep.building("b", self.stage, lambda _: with_changes, {"epsilon": None}).run(0, 1, "")

        self.assertNotIn("not_built", scores())
        # So many iterations leave one direction: every anchor lies on a line.
        refused = scores(label_graph="distance", start="random", alpha=1e9, steps=1000)
        self.assertEqual((refused["not_built"], refused["unanswered"], refused["hit"]), ([1], [20], [0] * 20))
        with self.assertRaisesRegex(FailedPrecondition, "steps must be"):
            scores(steps=0)

    def test_baseline_draws_by_its_part_alone(self):
        def embed(split, epsilon, delta, generator):
            self.assertEqual((epsilon, delta), (.5, SMALL.delta))
            return generator.normal(size=(len(split.gallery), 2)), generator.normal(size=(len(split.targets), 2))

        one = sweep.baseline(self.stage, Baseline("b", True, "", False, 3, 1, "", embed))
        self.assertEqual((one.fixed, one.work), (False, 3))
        self.assertEqual(one.run(.5, 1, "part"), one.run(.5, 1, "part"))
        self.assertNotEqual(one.run(.5, 1, "part"), one.run(.5, 1, "other"))
        self.assertTrue(sweep.baseline(self.stage, Baseline("b", False, "", False, 3, 1, "", embed)).fixed)


class Sweeps(unittest.TestCase):

    def setUp(self):
        conditions = [sweep.Condition(name, lambda x, seed, part: {"x": [x, seed], part: []}, name == "b")
                      for name in "abc"]
        self.sweep = sweep.Sweep("s", conditions, [.5, 2], 2)
        self.results = [{"hit": [.5, .5], "unanswered": [0]} for _ in self.sweep.jobs()]

    def test_points_have_the_results_of_their_jobs(self):
        jobs = self.sweep.jobs()
        self.assertEqual([jobs[i].run() for i in (3, 4)], [{"x": [2, 2], "s/a at 2": []}, {"x": [.5, 1], "s/b": []}])
        self.results[8]["hit"] = [1, 0, 1, 1]
        self.results[9]["hit"] = [.25]
        panel = self.sweep.panel(self.results, sweep.metrics(4)[0])
        self.assertEqual([(one.name, one.mark) for one in panel.series],
                         [("a", "line"), ("b", "reference"), ("c", "line")])
        last = panel.series[2].points[1]
        self.assertEqual((last.x, last.low, last.high), (2, 0, 1))
        self.assertEqual(self.sweep.samples(self.results, 2, 1, "hit"), [.75, .25])
        single = sweep.Sweep("s", self.sweep.conditions[:1], [1], 1)
        self.assertEqual(single.samples([{"hit": [0, 1]}], 0, 0, "hit"), [0, 1])

    def test_what_is_refused_or_not_answered_is_told(self):
        self.results[3] = {"refused": "no noise"}
        self.results[0]["unanswered"] = [2]
        self.assertTrue(math.isnan(self.sweep.band(self.results, 0, 1, "hit").mean))
        self.assertEqual(self.sweep.band(self.results, 0, 0, "hit").mean, .5)
        for result in self.results[6:9]:
            result.update(unanswered=[2], not_built=[1])
        notes = self.sweep.notes(self.results)
        self.assertIn('Not measured: "a" at 2 (no noise).', notes)
        self.assertIn('finding nothing: 2 of 6 of "a".', str(notes))
        self.assertIn('3 of "c".', str(notes))

    def test_differences_are_paired(self):
        wide = sweep.Sweep("s", self.sweep.conditions[:1], [1, 2, 3, 4, 5], 2)
        results = [{"hit": [.5 + .01 * (seed - 1)]} for _ in range(5) for seed in (1, 2)]
        self.assertRegex(wide.differences(results, 0, "hit"), "^No two of the 5 values are shown to differ")
        # One value is far from the others in either split, another has the greatest mean and the widest band.
        results[4], results[5] = {"hit": [.2]}, {"hit": [.2099]}
        results[6], results[7] = {"hit": [.4]}, {"hit": [.96]}
        results[8], results[9] = {"hit": [.55]}, {"hit": [.5633]}  # t is 31, and 12.7 would do for one pair
        self.assertRegex(wide.differences(results, 0, "hit"), "^3 of the 10 pairs of values are shown to differ")
        results[2:] = [{"refused": "none"}] * 8
        self.assertRegex(wide.differences(results, 0, "hit"), "^There is no other value")


class Runner(unittest.TestCase):

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def runs_counted(self, key):
        """How many of four jobs are run, each of which must give its number."""
        runs = []

        def job(i):
            return Job(str(i), lambda: runs.append(i) or {"number": [np.float64(i + .1)]})

        results = runner.measure([Experiment("counting", [job(i) for i in range(4)], None)], self.folder, key, None)
        self.assertEqual(results, [[{"number": [i + .1]} for i in range(4)]])
        return len(runs)

    def test_runs_again_what_belongs_to_another_study_or_is_damaged(self):
        self.assertEqual([self.runs_counted(key) for key in ("one", "other", "one")], [4, 4, 0])
        files = list(pathlib.Path(self.folder, "jobs").iterdir())
        self.assertEqual(len(files), 8)
        for text in ('{"settings": "', '{"settings": "one\\ncounting: 0", "result": 3}', "[]",
                     '{"settings": "two", "result": {"number": [5]}}'):
            for file in files:
                file.write_text(text)
            self.assertEqual(self.runs_counted("one"), 4, text)

    def test_refused_job_ends_no_run_and_is_not_cached(self):
        runs = []

        def refused(number):
            runs.append(number)
            if math.isnan(number):
                raise FailedPrecondition("no noise")
            return {"y": [1, number]}

        jobs = [Job(f"of {number}", lambda number=number: refused(number)) for number in (math.inf, math.nan, 2)]
        for count in (3, 5):
            results = runner.measure([Experiment("broken", jobs, None)], self.folder, "key", None)
            self.assertEqual(results, [[{"refused": "its y would be inf"}, {"refused": "no noise"}, {"y": [1, 2]}]])
            self.assertEqual(len(runs), count)

    def test_figures_are_equal_on_any_number_of_cores_and_from_the_cache(self):
        figures = []
        for cores, folder in ((1, "a"), (5, "b"), (5, "b")):
            experiment = recall.recall(sweep.Stage(SMALL), baselines())
            with mock.patch("os.cpu_count", return_value=cores):
                figures.append(repr(run(experiment, os.path.join(self.folder, folder))))
        self.assertEqual(figures[0], figures[1])
        self.assertEqual(figures[0], figures[2])

    def test_study_key_tells_all_studies_apart(self):
        keys = {runner.study_key(SMALL)}
        for field in dataclasses.fields(Settings):
            value = getattr(SMALL.settings, field.name)
            other = f"{value}x" if isinstance(value, str) else value * (1 + 1e-9)
            changed = dataclasses.replace(SMALL.settings, **{field.name: other})
            keys.add(runner.study_key(dataclasses.replace(SMALL, settings=changed)))
        for field in ("anchors_per_class", "targets", "gallery_per_class", "k", "epsilon", "delta"):
            keys.add(runner.study_key(dataclasses.replace(SMALL, **{field: getattr(SMALL, field) * (1 + 1e-9)})))
        keys.add(runner.study_key(dataclasses.replace(SMALL, rows=clouds(20, 20, 8, 2))))
        self.assertEqual(len(keys), 1 + 9 + 6 + 1)
        self.assertIn(runner.study_key(dataclasses.replace(SMALL, epsilons=(2,), seeds=9, about="x")), keys)


def baselines():
    """One that sees everything, one that sees labels alone, and one that hides targets."""
    def everything(split, _epsilon, _delta, _generator):
        return split.gallery.features, split.targets.features

    def by_label(split, _epsilon, _delta, _generator):
        return split.gallery.labels[:, None] * 1., split.targets.labels[:, None] * 1.

    return [Baseline("everything", False, "nobody", False, 1, 1, "", everything),
            Baseline("labels", True, "the features", False, 1, .25, "It remarks.", by_label),
            Baseline("hidden", True, "each target", True, 1, 1, "", everything)]


class Recall(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.figures = run(recall.recall(sweep.Stage(SMALL), baselines()))

    def test_every_line_is_in_its_panel(self):
        proven = {"gaussian", "laplace", "bounded-gaussian", "laplace, 2 private iterations"}
        lines = ({f"joint, {name}" for name in proven}, {f"joint, published-{name}" for name in proven},
                 {"supervised embedding, not private, given the targets' labels", "everything", "labels", "hidden"})
        for number, figure in enumerate(self.figures):
            shared = {"joint without noise", "features, not private", "k of every class, nothing private sent",
                      "chance"} | ({"ceiling of answers from one private release"} if number < 2 else set())
            for panel, own in zip(figure.panels, lines):
                self.assertEqual(set(names(panel)), own | shared)

    def test_lines_have_their_scores(self):
        _, precision, fidelity = (figure.panels[2] for figure in self.figures)
        self.assertEqual(series(precision, "labels").points[0].y, 1)
        self.assertEqual(series(fidelity, "everything").points[0].y, 1)
        self.assertEqual(series(fidelity, "features, not private").points[0].y, 1)
        self.assertAlmostEqual(series(precision, "chance").points[0].y, .05)  # 12 of the gallery's 240 rows
        self.assertEqual(series(precision, "k of every class, nothing private sent").points[0].y, 1)

    def test_ceilings_are_those_of_the_closed_form(self):
        for figure, k in zip(self.figures, (4, 1)):
            points = series(figure.panels[0], "ceiling of answers from one private release").points
            self.assertAlmostEqual(points[0].x, .1)
            self.assertAlmostEqual(points[-1].x, 10)
            self.assertGreater(len(points), 50)
            for point in points:
                odds = k * math.exp(point.x)
                self.assertAlmostEqual(point.y, (odds + 19 * SMALL.delta) / (odds + 20 - k))


CLOUDS = dataclasses.replace(SMALL, rows=clouds(20, 80, 8, 1), anchors_per_class=5, targets=200, gallery_per_class=60)


class Cells(unittest.TestCase):

    def words_with_fidelity(self, score):
        experiment = cells.cells(sweep.Stage(CLOUDS), [])
        results = planted(experiment, {}, 200)
        for result in results:  # bands of no width
            result.update(dict.fromkeys(("class_share", "hit", "fidelity"), [score] * 200))
        return joined(experiment.draw(results)[2])

    def test_lines_ceilings_and_words(self):
        figures = run(cells.cells(sweep.Stage(CLOUDS), []))
        self.assertEqual([figure.id for figure in figures], ["cells-recall", "cells-precision", "cells-fidelity"])
        for figure in figures:
            self.assertEqual(names(figure.panels[0])[:2], ["cells, 10 % returned", "cells, 1 % returned"])
            self.assertEqual(names(figure.panels[1])[0], "joint, gaussian")
        fidelity = figures[2]
        ceiling = series(fidelity.panels[0], "ceiling at 10 %").points
        self.assertGreater(len(ceiling), 40)
        for point in ceiling:
            self.assertAlmostEqual(point.y, .1 * math.exp(point.x) / (1 + .1 * (math.exp(point.x) - 1)))
        found = series(fidelity.panels[0], "cells, 10 % returned").points
        self.assertIn(f"At epsilon 1 cells with 10 % of the items returned find {sweep.percent(found[1].y)} of",
                      fidelity.title)
        self.assertGreater(found[4].y, .8)  # of the own cell, at epsilon 8, nearly all come back
        self.assertGreater(found[4].y, found[0].y)

    def test_band_above_the_ceiling_is_told(self):
        # At epsilon .5, 1, 2, 4, 8 ceilings of a tenth are .15, .23, .45, .86, .997, of a hundredth .02, .03, .07, .36,
        # .97.
        some = self.words_with_fidelity(.3)
        self.assertIn('band of "cells, 10 % returned" lies above that ceiling at epsilon 0.5, 1.', some)
        self.assertIn('band of "cells, 1 % returned" lies above that ceiling at epsilon 0.5, 1, 2.', some)
        self.assertNotIn("lies above", self.words_with_fidelity(.005))

    def test_plan_is_part_of_the_result(self):
        result = cells.of_cells(sweep.Stage(CLOUDS), .1).run(4, 1, "part")
        self.assertEqual(result["items"], [120])  # a tenth of 1,200
        self.assertGreater(result["cells"][0], 1)


class SettingsOneByOne(unittest.TestCase):

    def test_values_are_of_one_setting(self):
        figures = run(settings.settings(sweep.Stage(SMALL)))
        self.assertEqual([figure.id for figure in figures], ["settings-dim", "settings-alpha", "settings-bandwidth"])
        self.assertEqual(names(figures[0].panels[0]),
                         ["epsilon 1", "without noise", "k of every class, nothing private sent"])
        self.assertEqual([point.x for point in figures[1].panels[0].series[0].points], [.75, 1.5, 3, 6, 12])

    def test_experiments_agree_about_a_condition(self):
        stage = sweep.Stage(dataclasses.replace(SMALL, epsilons=(SMALL.epsilon,)))
        in_recall = series(run(recall.recall(stage, []))[2].panels[0], "joint, gaussian").points[0].y
        in_settings = series(run(settings.settings(stage))[0].panels[2], "epsilon 1").points[0].y  # embedding_dim 2
        self.assertEqual(in_recall, in_settings)
        self.assertLess(in_recall, 1)


class Tune(unittest.TestCase):

    def test_best_is_scored_on_splits_that_chose_nothing(self):
        study = settings.tuning_study(SMALL)
        experiment = settings.tune(sweep.Stage(study))
        flags = [job.key.partition(",")[0] for job in experiment.jobs[::2]]
        # .2999 and .3001 are as good as each other, .32 is better than both.
        results = planted(experiment, {}, 20)
        for number, result in enumerate(results):
            precision, fidelity = {7: (.2999, .4), 20: (.3001, .3), 30: (.32, .1)}.get(number // 2, (.1, .9))
            result.update(class_share=[precision] * 20, fidelity=[fidelity] * 20)
        results[2 * 53] = {"refused": "no noise"}
        (figure,) = experiment.draw(results)
        self.assertEqual(list(figure.x.categories[:3]), [flags[30], flags[7], flags[20]])
        # Splits 3 and 4 are asked as a study of four splits would ask them.
        longer = settings.tune(sweep.Stage(dataclasses.replace(study, seeds=4)))
        fresh = [longer.jobs[4 * 30 + split].run()["class_share"] for split in (2, 3)]
        self.assertIn(f"its precision@4 is {sweep.short(np.mean(fresh))} ", figure.words[1])
        self.assertIn(f'Not measured: "{flags[53]}" (no noise).', joined(figure))

    def test_needs_four_rows_of_every_class(self):
        with self.assertRaisesRegex(InvalidArgument, "class 0 has 3"):
            settings.tuning_study(dataclasses.replace(SMALL, rows=clouds(3, 3, 4, 1)))


class Selection(unittest.TestCase):

    def test_experiments_are_found_by_name(self):
        def found(wanted, attacks):
            return [one.name for one in select(sweep.Stage(SMALL), wanted, attacks, [])]

        usual = ["recall", "cells", "ablation", "convergence", "settings", "alignment", "inference-privacy",
                 "bounded-gaussian"]
        self.assertEqual(found("", False), usual)
        self.assertEqual(sorted(found("", True)), sorted([*usual, "attacks"]))
        self.assertEqual(found("cells,recall", False), ["recall", "cells"])
        self.assertEqual(found("ablation", True), ["ablation", "attacks"])


class Verdicts(unittest.TestCase):

    def setUp(self):
        self.stage = sweep.Stage(CLOUDS)
        self.experiment = verdict.comparison(self.stage)

    def decide(self, scores):
        return verdict.verdict(self.stage, planted(self.experiment, scores, 200))

    def test_best_scheme_whose_interval_beats_as_many_bytes(self):
        found = self.decide({"as many bytes as": .02, "joint": .4, "cells, 10 %": .8, "cells, 1 %": .2,
                             "k of every class": .02})
        self.assertEqual([row[0] for row in found.rows], [
            "cells, 10 % returned", "joint, gaussian", "cells, 1 % returned", "k of every class, nothing private sent"])
        self.assertRegex(found.sentence, r'^At epsilon 1 "cells, 10 % returned" finds 0.805 \(0.741 to 0.869\) of the')
        self.assertEqual(found.commands, [
            "privatemail collection create NAME --anchors anchors.npy --anchor-labels labels.npy --cells 7 --cell-code "
            "float16", "privatemail query NAME --vectors queries.npy --scheme cells --items 30 --epsilon 1 -k 4"])
        self.assertTrue(all(len(row) == len(found.columns) for row in found.rows))

    def test_joint_scheme_is_created_with_the_settings_that_were_measured(self):
        found = self.decide({"as many bytes as": .1, "joint": .9})
        self.assertEqual(found.rows[0][0], "joint, gaussian")
        self.assertEqual(found.commands, [
            "privatemail collection create NAME --anchors anchors.npy --anchor-labels labels.npy --dim 2 --alpha 3 "
            "--bandwidth 6 --steps 8 --label-graph distance --start random",
            "privatemail query NAME --vectors queries.npy --label LABEL --scheme joint --epsilon 1 --delta 1e-05 -k 4"])

    def test_nothing_is_recommended_that_does_not_beat_as_many_bytes(self):
        # The bands of .3 reach from .24 to .37.
        found = self.decide({"as many bytes as": .25, "joint": .3, "k of every class": .2, "cells": .1})
        self.assertEqual([row[0] for row in found.rows[:2]],
                         ["k of every class, nothing private sent", "joint, gaussian"])
        self.assertRegex(found.sentence, "^At epsilon 1 no scheme is shown to find more")
        self.assertIn('"joint, gaussian" finds 0.305', found.sentence)
        self.assertEqual(found.commands, [])
        # More than as many bytes, but less than the k items of every class.
        found = self.decide({"as many bytes as k": .4, "as many bytes as": .1, "k of every class": .4, "cells, 1 %": .3,
                             "": .05})
        self.assertEqual((found.rows[0][0], found.commands), ("k of every class, nothing private sent", []))

    def test_as_many_bytes_have_the_mean_of_all_downloads(self):
        """1,200 items of 20 classes: with 8 dimensions a listed item has 40 bytes, a ranked one 46."""
        apart = sweep.Stage(dataclasses.replace(CLOUDS, rows=clouds(20, 80, 8, 1, spread=.05)))
        draws = np.random.default_rng(1)
        for stage, (scheme, bytes_of_class) in itertools.product((self.stage, apart), (
                ("joint, gaussian", 4 * 40),)):
            split, nearest = stage.split(1), stage.trial(1).nearest
            jobs = {job.key: job for job in verdict.comparison(stage).jobs}
            found = jobs[f"as many bytes as {scheme}, seed 1"].run()["fidelity"]
            expected = self.simulated(draws, split.gallery.labels, split.targets.labels, nearest, bytes_of_class)
            self.assertAlmostEqual(np.mean(found), expected, delta=.003, msg=scheme)

    def simulated(self, draws, labels, own, nearest, bytes_of_class):
        """The better of two downloads: of the own class unranked, or of all classes ranked."""
        listed_found, ranked_found = [], []
        for _ in range(200):
            places = np.empty(len(labels))  # of each item in a random order of its class
            for label in range(20):
                rows = np.flatnonzero(labels == label)
                places[rows] = (draws.permutation(len(rows)) + draws.uniform())  # fractions come by chance
            of_class = labels[nearest] == own[:, None]
            listed_found.append(((places[nearest] < min(4, bytes_of_class / 40)) & of_class).mean())
            ranked_found.append((places[nearest] < bytes_of_class / 46).mean())
        return max(np.mean(listed_found), np.mean(ranked_found))


class CommandLine(unittest.TestCase):

    def test_wrong_values_are_named_by_their_flags(self):
        with tempfile.TemporaryDirectory() as folder:
            rows = clouds(6, 20, 6, 7)
            vectors, labels, out = (os.path.join(folder, name) for name in ("v.npy", "l.npy", "refused"))
            np.save(vectors, rows.features)
            np.save(labels, rows.labels)
            data = ["--vectors", vectors, "--labels", labels, "--targets", "12", "--gallery-per-class", "8", "-k", "3",
                    "--out", out]
            for message, words in (
                ("error: --anchors-per-class must .*INVALID_ARGUMENT", ["evaluate", "--anchors-per-class", "100"]),
                ('^error: --epsilons: must be a number, but is "x" .INVALID_ARGUMENT', ["evaluate", "--epsilons", "1,x"]),
                ("^error: unrecognized arguments: --frob .INVALID_ARGUMENT.\n`privatemail tune --help`", ["tune", "--frob"]),
                ("error: expected one source of data", ["evaluate", "--images", "x"]),
                ("error: --epsilons is not accepted with --experiments cells",
                 ["evaluate", "--experiments", "cells", "--epsilons", "1"]),
                ("error: --steps is what tune chooses", ["--tune", "--steps", "3"]),
            ):
                printed, err = io.StringIO(), io.StringIO()
                with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(err):
                    try:
                        code = command_line.main([*words, *data])
                    except SystemExit as end:  # of argparse
                        code = end.code
                self.assertEqual((code, printed.getvalue()), (2, ""), err.getvalue())
                self.assertRegex(err.getvalue(), message)
            self.assertFalse(os.path.exists(out))

"""Sweeps, runner, the experiments recall, cells and settings, verdict and command line of the evaluation."""

import contextlib
import dataclasses
import io
import itertools
import json
import math
import os
import pathlib
import tempfile
import threading
import unittest
from unittest import mock

import numpy as np

from privatemail.errors import FailedPrecondition, InvalidArgument, Unavailable
from privatemail.evaluation import __main__ as command_line
from privatemail.evaluation import runner, stats, sweep, verdict
from privatemail.evaluation.baselines import Baseline
from privatemail.evaluation.experiments import cells, recall, select, settings
from privatemail.evaluation.study import Experiment, Figure, Job, Rows, Settings, Study


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


def series(panel, name):
    return {one.name: one for one in panel.series}[name]


def names(panel):
    return [one.name for one in panel.series]


def joined(figure):
    return "\n".join(figure.words)


def planted(experiment, scores, targets=20):
    """Results with one score for all targets of a job, by the beginning of its key; splits differ alike everywhere."""
    results = []
    for job in experiment.jobs:
        found = next((score for start, score in scores.items() if job.key.startswith(start)), .5)
        values = [found + (.01 if job.key.endswith("seed 2") else 0)] * targets
        results.append({"class_share": values, "hit": values, "fidelity": values, "unanswered": [0], "cells": [7],
                        "items": [30]})
    return results


class Stages(unittest.TestCase):

    def assert_refused(self, message, **changes):
        with self.assertRaisesRegex(InvalidArgument, message):
            sweep.Stage(dataclasses.replace(SMALL, **changes))

    def test_values_out_of_range_are_named(self):
        for epsilon in (1e-7, 2e6, math.nan):
            self.assert_refused(r"^epsilon must be between 1e-06 and 1e\+06", epsilon=epsilon)
            self.assert_refused(r"^epsilons must be between 1e-06 and 1e\+06", epsilons=(epsilon,))
        self.assert_refused("^epsilons must be numbers in ascending order", epsilons=(1, 1))
        self.assert_refused("^epsilons must be", epsilons=())
        for delta in (0, 1e-310, 1):
            self.assert_refused("^delta must be between", delta=delta)
        self.assert_refused("^k must be between", k=0)
        self.assert_refused("^k must be at most 240", k=241)
        self.assert_refused("^seeds must be", seeds=0)
        self.assert_refused("^targets must be", targets=1000)
        self.assert_refused("^steps must be", settings=dataclasses.replace(SMALL.settings, steps=0))
        sweep.Stage(dataclasses.replace(SMALL, epsilons=(1e-6, 1e6), k=240))

    def test_alpha_is_that_of_new_collections(self):
        stage = sweep.Stage(dataclasses.replace(SMALL, settings=Settings()))
        self.assertEqual(stage.study.settings.alpha, 20)  # of the balanced graph the number of classes
        np.testing.assert_array_equal(stage.scene(1, Settings()).anchor_rows,
                                      stage.scene(1, Settings(alpha=20)).anchor_rows)

    def test_concurrent_callers_share_a_trial(self):
        stage, found = sweep.Stage(SMALL), []
        threads = [threading.Thread(target=lambda: found.append(stage.trial(1))) for _ in range(8)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        self.assertEqual(len(set(map(id, found))), 1)
        self.assertIsNot(stage.trial(2), stage.trial(1))


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
        def condition(name, fixed=False):
            return sweep.Condition(name, lambda x, seed, part: {"x": [x, seed], part: []}, fixed)

        self.sweep = sweep.Sweep("s", [condition("a"), condition("b", fixed=True), condition("c")], [.5, 2], 2)
        self.results = [{"hit": [.5, .5], "unanswered": [0]} for _ in self.sweep.jobs()]

    def test_jobs_are_keyed_by_condition_x_and_seed(self):
        jobs = self.sweep.jobs()
        self.assertEqual([job.key for job in jobs], [
            "a at 0.5, seed 1", "a at 0.5, seed 2", "a at 2, seed 1", "a at 2, seed 2", "b, seed 1", "b, seed 2",
            "c at 0.5, seed 1", "c at 0.5, seed 2", "c at 2, seed 1", "c at 2, seed 2"])
        self.assertEqual([job.split for job in jobs[:2]], [1, 2])
        self.assertEqual(jobs[3].run(), {"x": [2, 2], "s/a at 2": []})
        self.assertEqual(jobs[4].run(), {"x": [.5, 1], "s/b": []})

    def test_panel_has_lines_and_references(self):
        self.results[8]["hit"] = [1, 0, 1, 1]
        self.results[9]["hit"] = [.25]
        panel = self.sweep.panel(self.results, sweep.metrics(4)[0])
        self.assertEqual([(one.name, one.mark) for one in panel.series],
                         [("a", "line"), ("b", "reference"), ("c", "line")])
        self.assertEqual([point.x for point in panel.series[1].points], [.5, 2])
        last = panel.series[2].points[1]
        self.assertEqual((last.x, last.low, last.high), (2, 0, 1))
        self.assertEqual(self.sweep.samples(self.results, 2, 1, "hit"), [.75, .25])
        single = sweep.Sweep("s", self.sweep.conditions[:1], [1], 1)
        self.assertEqual(single.samples([{"hit": [0, 1]}], 0, 0, "hit"), [0, 1])

    def test_refused_job_is_not_measured(self):
        self.results[3] = {"refused": "no noise"}
        self.assertTrue(math.isnan(self.sweep.band(self.results, 0, 1, "hit").mean))
        self.assertEqual(self.sweep.band(self.results, 0, 0, "hit").mean, .5)
        self.results[4] = self.results[5] = {"refused": "no noise"}
        self.results[6] = {"refused": "other"}
        notes = self.sweep.notes(self.results)
        self.assertEqual(notes[:2], ['Not measured: "a" at 2, "b" (no noise).', 'Not measured: "c" at 0.5 (other).'])
        self.assertRegex(notes[2], "^Bands: 95 % Student t over the means of 2 splits")

    def test_notes_count_what_was_not_answered_by_condition(self):
        self.assertEqual(len(self.sweep.notes(self.results)), 1)
        self.results[0]["unanswered"] = [2]
        self.results[3]["unanswered"] = [1]
        for result in self.results[6:9]:
            result.update(unanswered=[2], not_built=[1])
        notes = self.sweep.notes(self.results)
        self.assertEqual(notes[0], 'Releases that could not be aligned count as finding nothing: 3 of 8 of "a".')
        self.assertIn('out of 4 settings and splits each, these are 3 of "c".', notes[1])

    def test_differences_are_paired(self):
        wide = sweep.Sweep("s", self.sweep.conditions[:1], [1, 2, 3, 4, 5], 2)
        results = [{"hit": [.5 + .01 * (seed - 1)]} for _ in range(5) for seed in (1, 2)]
        self.assertEqual(wide.differences(results, 0, "hit"), "No two of the 5 values are shown to differ (paired t "
                         "over the splits, 5 % over all pairs together).")
        # One value is far from the others in either split, another has the greatest mean and the widest band.
        results[4], results[5] = {"hit": [.2]}, {"hit": [.2099]}
        results[6], results[7] = {"hit": [.4]}, {"hit": [.96]}
        results[8], results[9] = {"hit": [.55]}, {"hit": [.5633]}  # t is 31, and 12.7 would do for one pair
        self.assertRegex(wide.differences(results, 0, "hit"), "^3 of the 10 pairs of values are shown to differ")
        results[2:] = [{"refused": "none"}] * 8
        self.assertRegex(wide.differences(results, 0, "hit"), "^There is no other value")


def counting(count, runs, fails=None):
    """Each of `count` jobs counts its run and gives its number."""
    def job(i):
        def work():
            runs.append(i)
            if fails:
                fails(i)
            return {"number": [np.float64(i + .1)]}
        return Job(str(i), work)

    return Experiment("counting", [job(i) for i in range(count)],
                      lambda results: [Figure("f", "t", None, None, [], [repr(one["number"][0]) for one in results])])


class Runner(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_counting(self, key="key", **arguments):
        runs = []
        figures = runner.run([counting(4, runs, **arguments)], self.folder, key, None)
        return figures[0].words, len(runs)

    def test_goes_on_where_it_was_interrupted(self):
        def pull_the_plug(i):
            if i == 3:
                raise Unavailable("pulled the plug")

        with self.assertRaisesRegex(Unavailable, "^counting, 3: pulled the plug"):
            self.run_counting(fails=pull_the_plug)
        self.assertEqual(self.run_counting(), (["0.1", "1.1", "2.1", "3.1"], 1))
        self.assertEqual(self.run_counting(), (["0.1", "1.1", "2.1", "3.1"], 0))

    def test_runs_again_what_belongs_to_another_study_or_is_damaged(self):
        self.assertEqual([self.run_counting(key)[1] for key in ("one", "other", "one")], [4, 4, 0])
        files = list(pathlib.Path(self.folder, "jobs").iterdir())
        self.assertEqual(len(files), 8)
        for text in ('{"settings": "', '{"settings": "one\\ncounting: 0", "result": 3}', "[]",
                     '{"settings": "two", "result": {"number": [5]}}'):
            for file in files:
                file.write_text(text)
            self.assertEqual(self.run_counting("one")[1], 4, text)

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
        shared = {"joint without noise", "features, not private", "k of every class, nothing private sent", "chance"}
        self.assertEqual([figure.id for figure in self.figures],
                         ["recall-epsilon", "precision-epsilon", "fidelity-epsilon"])
        for figure in self.figures:
            ceiling = set() if figure is self.figures[2] else {"ceiling of answers from one private release"}
            proven, published, others = (set(names(panel)) - shared - ceiling for panel in figure.panels)
            self.assertEqual(proven, {"joint, gaussian", "joint, laplace", "joint, bounded-gaussian",
                                      "joint, laplace, 2 private iterations"})
            self.assertEqual(published, {"joint, published-gaussian", "joint, published-laplace",
                                         "joint, published-bounded-gaussian",
                                         "joint, published-laplace, 2 private iterations"})
            self.assertEqual(others, {"supervised embedding, not private, given the targets' labels", "everything",
                                      "labels", "hidden"})
            for panel in figure.panels:
                self.assertLessEqual(shared | ceiling, set(names(panel)))
        self.assertEqual(len(series(self.figures[0].panels[0], "joint, laplace").points), 2)

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
            self.assertIn(f"{sweep.short(points[0].y)} at epsilon 0.1 and {sweep.short(points[-1].y)} at epsilon 10",
                          figure.words[1])
        self.assertNotIn("ceiling", joined(self.figures[2]))

    def test_another_kernel_has_no_published_lines(self):
        other = dataclasses.replace(SMALL, settings=dataclasses.replace(SMALL.settings, kernel="sigma"))
        for figure in run(recall.recall(sweep.Stage(other), [])):
            for name in ("joint, published-gaussian", "joint, published-laplace"):
                self.assertTrue(all(math.isnan(point.y) for point in series(figure.panels[1], name).points))
            self.assertFalse(any(math.isnan(point.y) for point in series(figure.panels[0], "joint, gaussian").points))
            self.assertRegex(joined(figure), 'Not measured: "joint, published-gaussian", "joint, published-laplace"')


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
        shared = ["features, not private", "k of every class, nothing private sent", "chance"]
        for figure in figures:
            self.assertEqual(names(figure.panels[0])[:5], ["cells, 10 % returned", "cells, 1 % returned", *shared])
            self.assertEqual(names(figure.panels[1]), ["joint, gaussian", *shared])
        fidelity = figures[2]
        ceiling = series(fidelity.panels[0], "ceiling at 10 %").points
        self.assertGreater(len(ceiling), 40)
        for point in ceiling:
            self.assertAlmostEqual(point.y, .1 * math.exp(point.x) / (1 + .1 * (math.exp(point.x) - 1)))
        found = series(fidelity.panels[0], "cells, 10 % returned").points
        self.assertIn(f"With cells, 10 % returned, fidelity@4 is {sweep.short(found[1].y)}", fidelity.words[0])
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

    def test_values_and_their_span(self):
        figures = run(settings.settings(sweep.Stage(SMALL)))
        self.assertEqual([figure.id for figure in figures], ["settings-dim", "settings-alpha", "settings-bandwidth"])
        for figure in figures:
            self.assertEqual(names(figure.panels[0]),
                             ["epsilon 1", "without noise", "k of every class, nothing private sent"])
            points = figure.panels[0].series[0].points
            self.assertIn(figure.title, figure.words[0])
            self.assertRegex(figure.title, f"and {sweep.short(max(point.y for point in points))} .* at|is .* at every")
        self.assertEqual([point.x for point in figures[1].panels[0].series[0].points], [.75, 1.5, 3, 6, 12])

    def test_experiments_agree_about_a_condition(self):
        stage = sweep.Stage(dataclasses.replace(SMALL, epsilons=(SMALL.epsilon,)))
        in_recall = series(run(recall.recall(stage, []))[2].panels[0], "joint, gaussian").points[0].y
        in_settings = series(run(settings.settings(stage))[0].panels[2], "epsilon 1").points[0].y  # embedding_dim 2
        self.assertEqual(in_recall, in_settings)
        self.assertLess(in_recall, 1)


class Tune(unittest.TestCase):

    def test_ranks_a_grid(self):
        study = settings.tuning_study(dataclasses.replace(SMALL, seeds=1))
        self.assertEqual((study.anchors_per_class, study.targets), (8, 20))  # two fifths of 20
        (figure,) = run(settings.tune(sweep.Stage(study)))
        precision = series(figure.panels[0], "precision@4").points
        self.assertEqual(len(precision), 10)
        for one, other in zip(precision, precision[1:]):
            self.assertLessEqual(other.y, one.y + .01)
        self.assertIn(figure.x.categories[0], figure.words[0])
        self.assertIn(figure.x.categories[0], figure.title)
        self.assertRegex(figure.words[1], "^On 1 fresh split of the same rows")
        self.assertRegex(figure.words[3], "^Of every class 8 rows were anchors here.")

    def test_jobs_are_keyed_by_settings(self):
        third = dataclasses.replace(SMALL, seeds=1, settings=dataclasses.replace(SMALL.settings, alpha=1 / 3))
        keys = {job.key for job in settings.tune(sweep.Stage(third)).jobs}
        self.assertEqual(len(keys), 54)
        self.assertIn("--dim 4 --alpha 0.3333333333333333 --bandwidth 3 --steps 10 --label-graph distance --start "
                      "random, seed 1", keys)

    def test_best_is_scored_on_splits_that_chose_nothing(self):
        study = settings.tuning_study(SMALL)
        experiment = settings.tune(sweep.Stage(study))
        flags = [job.key.partition(",")[0] for job in experiment.jobs[::2]]
        # .2999 and .3001 are as good as each other, .32 is better than both.
        results = planted(experiment, {})
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
        with self.assertRaisesRegex(InvalidArgument, '^--experiments must be some of recall, .*, but has "recal"'):
            found("recal", False)


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
                ("cells, 10 % returned", 6 * 46), ("cells, 1 % returned", .6 * 46), ("joint, gaussian", 4 * 40))):
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

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        rows = clouds(6, 20, 6, 7)
        np.save(os.path.join(cls.folder, "v.npy"), rows.features)
        np.save(os.path.join(cls.folder, "l.npy"), rows.labels)

    def main(self, *words):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = command_line.main(list(words))
            except SystemExit as end:  # of argparse
                code = end.code
        return code, out.getvalue(), err.getvalue()

    def data(self, *words):
        return [*words, "--vectors", os.path.join(self.folder, "v.npy"), "--labels", os.path.join(self.folder, "l.npy"),
                "--seeds", "2", "--targets", "12", "--gallery-per-class", "8", "-k", "3", "--delta", ".001"]

    def assert_refused(self, message, *words):
        code, out, err = self.main(*words)
        self.assertEqual((code, out), (2, ""), err)
        self.assertRegex(err, message)

    def test_wrong_values_are_named_by_their_flags(self):
        out = os.path.join(self.folder, "refused")
        data = self.data("evaluate", "--out", out)
        for message, words in (
            ("error: --anchors-per-class must .*INVALID_ARGUMENT", [*data, "--anchors-per-class", "100"]),
            ("error: --epsilons must be numbers in ascending order", [*data, "--epsilons", "1", ".5"]),
            ('--seeds: must be a whole number, but is ""', [*data, "--seeds", ""]),
            ('--epsilons: must be a number, but is "x"', [*data, "--epsilons", "1,x"]),
            ("error: --classes must be all, first or second", [*data, "--classes", "third"]),
            ("error: expected one source of data", [*data, "--images", "x"]),
            ("error: --input-size is that of --onnx", [*data, "--input-size", "1x1"]),
            ("error: --epsilons is not accepted with --experiments cells",
             [*data, "--experiments", "cells", "--epsilons", "1"]),
            ("error: --attacks is not accepted by tune", self.data("tune", "--out", out, "--attacks")),
            ("error: --steps is what tune chooses", self.data("--tune", "--out", out, "--steps", "3")),
            ("unrecognized arguments: --seed", [*data, "--seed", "3"]),
            ("error: --vectors must be .*/nowhere.npy",
             ["tune", "--vectors", "/nowhere.npy", "--labels", "/nowhere.txt", "--out", out]),
        ):
            self.assert_refused(message, *words)
        self.assertFalse(os.path.exists(out))

    def test_folder_that_cannot_be_made_fails(self):
        code, _, err = self.main(*self.data("--out", os.path.join(self.folder, "v.npy")), "--experiments", "settings")
        self.assertEqual(code, 1)
        self.assertRegex(err, "error: --out must be a folder.*FAILED_PRECONDITION")

    def test_tune_reports_flags(self):
        out = os.path.join(self.folder, "tuned")
        code, printed, err = self.main(*self.data("tune", "--out", out))
        self.assertEqual(code, 0, err)
        self.assertRegex(printed, "^Of 54 settings --dim .* --start classes find most at epsilon 1: precision@3")
        results = json.loads(pathlib.Path(out, "results.json").read_text("utf-8"))
        self.assertIsNone(results["verdict"])
        self.assertEqual(dict(results["settings"])["--anchors-per-class"], "8")  # two fifths of 20

if __name__ == "__main__":
    unittest.main()

"""Calls of the package beside plain searches: connections, options, plans, replays, messages."""

import contextlib
import dataclasses
import os
import pathlib
import tempfile
import unittest
import warnings
from unittest import mock

import numpy as np

import privatemail as pm
from privatemail import _client
from page_service import CLASSES, DIM
from service import Service, gallery

COST = {"epsilon": .1, "delta": 1e-6}


def setUpModule():
    global service, things  # pylint: disable=global-statement
    service = Service()
    things = service.things
    things.budget.grant(epsilon=1000, delta=.1)
    service.wait_until_ready(things)


def tearDownModule():
    service.close()


class Connections(unittest.TestCase):

    def test_environment_says_what_arguments_do_not(self):
        server = service.server
        environment = {"PRIVATEMAIL_SERVER": server.address, "PRIVATEMAIL_TRUST": "00" * 32,
                       "PRIVATEMAIL_KEY_FILE": server.key_file, "PRIVATEMAIL_STATE": service.folder.name + "/other"}
        with mock.patch.dict(os.environ, environment):
            with self.assertRaises(pm.PrivateMailError):  # another certificate is trusted
                pm.connect().collections()
            client = pm.connect(ca_file=server.ca_file)  # wins
            self.assertEqual((len(client.collections()), client.state), (1, environment["PRIVATEMAIL_STATE"]))
            with mock.patch.dict(os.environ, {"PRIVATEMAIL_TRUST": "", "PRIVATEMAIL_CA": server.ca_file}):
                self.assertEqual(len(pm.connect().collections()), 1)
            with self.assertRaises(pm.Unauthenticated):  # the key is for the server of the environment
                pm.connect(server.address.replace("127.0.0.1", "localhost"), ca_file=server.ca_file).collections()
            self.assertEqual(repr(client), f"Client({server.address!r}, state={client.state!r})")
            self.assertEqual(repr(client.collections()[0]), f"Collection('things' of {server.address!r})")
            self.assertEqual(pm.connect("127.0.0.1:9", insecure=True, state=service.state).state, service.state)
            client.close()
            self.assertIn("closed", repr(client))
        with mock.patch.dict(os.environ, {"PRIVATEMAIL_SERVER": ""}):
            self.assertIn("'127.0.0.1:50051'", repr(pm.connect(state=service.state)))

    def test_ledger_of_an_own_server_is_beside_its_data(self):
        with mock.patch.dict(os.environ), tempfile.TemporaryDirectory() as folder:
            os.environ.pop("PRIVATEMAIL_STATE", None)
            with pm.Server.local() as server:
                self.assertEqual(server.client.state, server.data + "-state")
                self.assertEqual(repr(server), f"Server({server.address!r}, data={server.data!r})")
            self.assertFalse(os.path.exists(server.data + "-state"))
            os.environ["PRIVATEMAIL_STATE"] = folder + "/state"
            with pm.Server.local(folder + "/data") as server:
                self.assertEqual(server.client.state, folder + "/state")


class Charges(unittest.TestCase):

    def test_large_charge_is_warned_of_once_before_it(self):
        client = pm.connect(service.server.address, ca_file=service.server.ca_file, key_file=service.server.key_file,
                            state=service.state)
        fresh, before = client.collection("things"), things.budget.spent.epsilon
        buys = (r"^each query spends epsilon 8, which .* 2981 times as sure of a guess; of 8 cells .* probability 0\.998; "
                r"about 0\.9\d of the 8 nearest items are found; a query takes about \d\d\.\d kB$")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with self.assertRaisesRegex(pm.PrivateMailWarning, buys):
                fresh.search(service.rows[3], plan=things.plan(epsilon=8))
            self.assertEqual(things.budget.spent.epsilon, before)
            fresh.search(service.rows[3], label=3, **dict(COST, epsilon=4))
        with self.assertWarnsRegex(pm.PrivateMailWarning, buys):
            fresh.search(service.rows[3], plan=things.plan(epsilon=8))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fresh.search(service.rows[3], scheme="cells", epsilon=9, items=10)


class Progress(unittest.TestCase):

    def test_counts_queries_and_items_and_names_what_is_awaited(self):
        shown = {}

        @contextlib.contextmanager
        def record(what, total=None):
            def show(done=0, of=total, what=None):
                calls.append((what, done, of) if what else (done, of))
            calls = shown.setdefault(what, [])
            yield show

        cells = service.server.create_collection("progress", service.rows[:100], cells=[2], publish_quality=True,
                                                 with_encrypted=True)
        self.addCleanup(cells.delete)
        with mock.patch.object(_client, "progress_bar", record):
            cells.ingest(service.rows)
            cells.build(wait=True)
            cells.budget.grant(epsilon=3)
            cells.search(service.rows[:3], scheme="cells", epsilon=1, items=10)
            cells.search(service.rows[0])
        self.assertEqual(shown["ingest"][-1], (len(service.rows), len(service.rows)))
        self.assertEqual(shown["search"], [(1, 3), (2, 3), (3, 3)])
        self.assertLessEqual({what for what, _, _ in shown["wait"]},
                             {"waiting for the cells", "waiting for the quality of the cells"})
        self.assertTrue(shown.pop("wait"))
        with mock.patch.object(_client, "progress_bar", record), mock.patch.object(_client.Collection, "_session") as session:
            session.wait_until_ready = lambda name, show: (show("the cells", None), show("the cells", .25))
            cells.build(wait=True)
        self.assertEqual(shown["wait"], [("waiting for the cells", 0, None), ("waiting for the cells", .25, 1)])


class Options(unittest.TestCase):

    def test_text_that_the_core_cannot_take_shows_no_target(self):
        half = "\udce4"
        target = np.full(DIM, .7654321)
        calls = {
            "mechanism": lambda: things.search(target, label=3, mechanism=half, **COST),
            "name": lambda: service.server.collection(half).search(target, label=3, **COST),
            "ids": lambda: things.get_items([half]),
        }
        for field, call in calls.items():
            with self.assertRaisesRegex(pm.InvalidArgument, f"^{field} must be text in UTF-8") as caught:
                call()
            self.assertNotIn("765", str(caught.exception))

    def test_budget_names_what_it_hides(self):
        hits = things.search(service.rows[7], label=7, **COST)
        hidden = {one["neighbours"] for one in things.budget.history() if one["kind"] == "charge"}
        self.assertIn(hits.guarantee.neighbours, hidden)
        self.assertEqual(things.budget.neighbours, hidden.pop() if len(hidden) == 1 else None)

    def test_dummies_replace_the_anchors(self):
        dummies, labels = gallery(40, seed=9)
        hits = things.search(service.rows[4], label=4, k=3, dummies=dummies, dummy_labels=labels, **COST)
        self.assertEqual(hits.labels.tolist(), [4] * 3)
        # Used, not ignored: without a dummy of class 5 no release can be made.
        for given in ({"dummies": dummies[labels != 5], "dummy_labels": labels[labels != 5]},
                      {"dummies": dummies}, {"dummies": dummies[:, 1:], "dummy_labels": labels}):
            with self.assertRaises(pm.InvalidArgument):
                things.search(service.rows[4], label=4, **given, **COST)

    def test_label_of_items_without_one_cannot_be_searched_for(self):
        notes = service.server.create_collection("some-labels")
        notes.ingest(service.rows[:4], labels=[3, -2**31, -7, -2**31])
        self.assertEqual(notes.search(service.rows[2], label=-7).labels.tolist(), [-7])
        self.assertEqual(sorted(notes.search(service.rows[2]).labels.filled()), [-2**31, -2**31, -7, 3])
        for label in (-2**31, [-2**31]):
            with self.assertRaisesRegex(pm.InvalidArgument, "^label must be between -2147483647 and 2147483647, but is"):
                notes.search(service.rows[:1], label=label)
        for options in (COST, {"scheme": "cells", "epsilon": 1}):
            with self.assertRaisesRegex(pm.InvalidArgument, "label"):
                things.search(service.rows[7], label=-2**31, **options)
        with self.assertRaisesRegex(pm.InvalidArgument, "but is missing .row 0.; nothing was sent"):
            things.ingest(service.rows[:1], labels=[-2**31], ids=["unlabelled"])

    def test_own_anchors_place_queries_of_another_model(self):
        rotation = np.linalg.qr(np.random.default_rng(3).standard_normal((DIM, DIM)))[0]
        anchors, labels = gallery(100, seed=2)
        points = service.server.create_collection("points", anchors, labels)
        self.addCleanup(points.delete)
        points.ingest(service.rows, labels=service.labels)
        points.build()
        points.budget.grant(epsilon=1000, delta=.1)
        query = np.hstack([service.rows[6] @ rotation, [0, 0, 0]])  # 19 columns
        own = np.hstack([anchors @ rotation, np.zeros((100, 3))])
        hits = points.search(query, k=5, own_anchors=own, **COST)
        self.assertEqual(hits.labels.tolist(), [6] * 5)


class Plans(unittest.TestCase):

    def test_search_follows_its_plan(self):
        plan = things.plan(epsilon=8, recall=.9)
        before = things.budget.spent.epsilon
        self.assertEqual(len(things.search(service.rows[3], plan=plan)), 8)
        self.assertAlmostEqual(things.budget.spent.epsilon, before + 8)
        sent = things.explain()
        self.assertEqual((sent["items"], sent["partition"], sent["epsilon"]), (plan.items, plan.partition, 8))

    def test_plan_of_other_parameters_is_refused(self):
        plan = dataclasses.replace(things.plan(epsilon=8), fingerprint="ab" * 32)
        before = things.budget.spent
        with self.assertRaisesRegex(pm.FailedPrecondition, "^fingerprint must be that of collection things"):
            things.search(service.rows[3], plan=plan)
        self.assertEqual(things.budget.spent, before)


class Replays(unittest.TestCase):

    def test_last_release_is_shown_and_sent_again_at_no_cost(self):
        hits = things.search(service.rows[5], label=5, scheme="joint", k=4, **COST)
        before = things.budget.spent
        self.assertEqual(things.resend(label=5).ids, hits.ids)
        self.assertEqual(things.resend(label=5, k=2).ids, hits.ids[:2])
        self.assertEqual(things.resend(label=3).labels.tolist(), [3] * 4)
        sent = things.explain()
        self.assertEqual((sent["scheme"], sent["bytes"], sent["k"]), ("joint", hits.bytes_up, 4))
        matches = CLASSES * 4  # k of each slot: id, label, distance, payload
        self.assertTrue(20 * matches < hits.bytes_down < 60 * matches, hits.bytes_down)
        self.assertEqual(sent["release"].shape[0], CLASSES + 100)
        self.assertEqual(things.budget.spent, before)
        for wrong in ({}, {"label": 5, "query": service.rows[5]}):
            with self.assertRaisesRegex(pm.InvalidArgument, "label must be given|label does not apply with a target"):
                things.resend(**wrong)
        with self.assertRaisesRegex(pm.InvalidArgument, "label"):
            things.resend(label=99)

class Snapshots(unittest.TestCase):

    def test_restored_collection_answers_with_the_former_budget(self):
        path = os.path.join(service.folder.name, "things.snapshot")
        saved = things.snapshot(path)
        self.assertEqual((saved.items, saved.anchors, saved.bytes), (len(things), 100, os.path.getsize(path)))
        with self.assertRaisesRegex(pm.AlreadyExists, "exists already: replace it with replace=True$"):
            things.snapshot(path)
        self.assertEqual(things.snapshot(path, replace=True), saved)
        with self.assertRaisesRegex(pm.ResourceExhausted, r"^max_bytes must be at least .* but is 1000 "):
            things.snapshot(path, replace=True, max_bytes=1000)
        with Service(items=1) as server:
            copy = server.restore("copy", path)
            self.assertEqual((len(copy), copy.info()["uuid"]), (saved.items, things.info()["uuid"]))
            copy.budget.grant(epsilon=1, delta=1e-4)
            self.assertEqual(copy.search(service.rows[3], label=3, **COST).labels.tolist(), [3] * 8)


class Noise(unittest.TestCase):

    def test_calibration_is_the_analytic_gaussian(self):
        # Balle and Wang 2018 at epsilon 1, delta 1e-5: 3.7306
        noise = pm.calibrate("gaussian", epsilon=1, delta=1e-5, sensitivity=2)
        self.assertAlmostEqual(noise.stddev / 2, 3.7306, places=3)
        self.assertAlmostEqual(noise.variance, noise.stddev**2)
        self.assertTrue(noise.guarantee.proven)
        self.assertAlmostEqual(pm.calibrate("laplace", epsilon=.5, sensitivity=1).stddev, 2 * 2**.5)
        self.assertFalse(pm.calibrate("published-gaussian", epsilon=.5, delta=1e-5, sensitivity=1).guarantee.proven)
        for field, arguments in (("epsilon", {"epsilon": np.nan}), ("dimension", {"dimension": 3}),
                                 ("mechanism", {"mechanism": 5}), ("norm", {"norm": "x"})):
            with self.assertRaisesRegex(pm.InvalidArgument, field):
                pm.calibrate(**dict({"mechanism": "gaussian", "epsilon": 1}, **arguments))

    def test_sensitivity_with_known_anchors_is_at_most_that_of_any(self):
        anchors, labels = gallery(50, seed=2)
        known = pm.sensitivity("known-anchors", anchor_labels=labels, anchors=anchors)
        anywhere = pm.sensitivity("replace-target", anchor_labels=labels)
        self.assertTrue(0 < known.l2 <= anywhere.l2 <= anywhere.l1)
        self.assertEqual((known.rows, known.proven, known.lipschitz_to_l2), (60, True, None))
        self.assertGreater(pm.sensitivity("lipschitz", anchor_labels=labels).lipschitz_to_l1, 0)
        self.assertLess(pm.sensitivity("replace-target", anchor_labels=labels, changed=1).l2, anywhere.l2)
        with self.assertRaisesRegex(pm.InvalidArgument, "alpha"):
            pm.sensitivity("replace-target", anchor_labels=labels, alpha=-1.0)
        with self.assertRaisesRegex(TypeError, "no argument 'alfa': did you mean 'alpha'?"):
            pm.sensitivity("replace-target", anchor_labels=labels, alfa=1)

    def test_audit_finds_most_of_what_is_claimed_and_no_more(self):
        for mechanism in ("laplace", "cells"):
            found, = pm.audit(mechanism, epsilon=1, releases=40_000)
            self.assertTrue(.8 < found.epsilon_lower <= 1, found)
            self.assertFalse(found.exceeded)
            self.assertRegex(repr(found), rf"^Audit\({mechanism}.*: claims epsilon 1, delta 0; at least .*; proven; ")
        with self.assertRaisesRegex(pm.InvalidArgument, "^releases must be"):
            pm.audit("laplace", releases=0)
        with self.assertRaisesRegex(pm.InvalidArgument, "^delta is not accepted"):
            pm.audit("laplace", delta=1e-5)


class Messages(unittest.TestCase):

    def test_calls_with_other_arguments_are_errors_of_the_package(self):
        row = service.rows[0]
        for call, argument, message in (
                (lambda: things.search(row, lable="a"), "lable", "^search.. has no argument 'lable': did you mean 'label'.$"),
                (lambda: service.server.create_collection("x", anchor_lables=[1]), "anchor_lables", "mean 'anchor_labels'"),
                (lambda: service.server.create_collection("x", kernel_bandwith=1), "kernel_bandwith", "mean 'kernel_bandwidth'"),
                (lambda: things.budget.grant(epsilom=1), "epsilom", "mean 'epsilon'"),
                (lambda: things.search(), "queries", "missing a required argument: 'queries'"),
                (lambda: things.search(row, 8), None, "too many positional arguments"),
                (lambda: pm.connect(port=1), "port", "^connect.. has no argument 'port'"),
                (lambda: pm.Server.local(dat="x"), "dat", "mean 'data'"),
                (lambda: pm.Extractor(modle="x"), "modle", "mean 'model'"),
                (lambda: pm.Extractor(model="none-such"), "model", "the name of an installed model .*there is no /.*none-such.onnx"),
                (lambda: pm.calibrate("gaussian"), "epsilon", "missing a required argument")):
            with self.subTest(message), self.assertRaisesRegex(pm.PrivateMailError, message) as caught:
                call()
            self.assertEqual(caught.exception.argument, argument)
        for pictures in (["a.png"], [pathlib.Path("a.png")]):
            with self.assertRaisesRegex(pm.InvalidArgument, "features must .*pm.Extractor describes pictures"):
                things.ingest(pictures)

    def test_warnings_are_of_the_line_that_calls(self):
        with self.assertWarns(pm.PrivateMailWarning) as told:
            things.budget.grant(epsilon=1000)
        self.assertEqual(told.filename, __file__)

    def test_fields_of_the_core_are_arguments(self):
        with self.assertRaisesRegex(pm.InvalidArgument, "^trust does not apply with an authority") as caught:
            pm.connect("a:1", trust="0" * 64, insecure=True)
        error = caught.exception
        self.assertEqual(error.field, "trust")
        for code, field, kind in (("RESOURCE_EXHAUSTED", "budget", pm.BudgetExhausted),
                                  ("RESOURCE_EXHAUSTED", "max_memory", pm.ResourceExhausted),
                                  ("RESOURCE_EXHAUSTED", None, pm.ResourceExhausted)):
            error = pm.errors.of_status(code, "the collection budget has no room", field)
            self.assertIs(type(error), kind)

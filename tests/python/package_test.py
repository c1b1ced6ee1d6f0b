"""The package against a daemon: searches, errors, budgets."""

import asyncio
import copy
import json
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock
import urllib.error
import urllib.request

import numpy as np
from matplotlib.image import imsave

import privatemail as pm
from page_service import DIM
from service import Service, gallery

COST = {"epsilon": .1, "delta": 1e-6}
CALLS = int(os.environ.get("CALLS", "1000"))  # of the test for leaks


def setUpModule():
    global service, things  # pylint: disable=global-statement
    service = Service()
    things = service.things
    things.budget.grant(epsilon=1000, delta=.1)


def tearDownModule():
    service.close()


class Search(unittest.TestCase):

    def test_answer_is_a_sequence_of_items_and_a_table(self):
        hits = things.search(service.rows[3], label=3, k=4, **COST)
        self.assertEqual([one.id for one in hits], hits.ids)
        self.assertEqual((hits[1].label, hits[-1].payload, len(hits[:2])), (3, hits.payloads[-1], 2))
        self.assertEqual(json.loads(json.dumps(hits.to_dict()))["labels"], [3] * 4)
        self.assertEqual(repr(hits), "Hits(4: " + ", ".join(f"'{one}' (3)" for one in hits.ids) + ")")
        self.assertEqual(hits._repr_html_().count("<tr>"), 5)
        notes = service.server.create_collection("notes")
        self.addCleanup(notes.delete)
        notes.ingest(service.rows[:2], labels=[4, -2**31], ids=["<b>", "b"])
        found = notes.search(service.rows[0])
        self.assertEqual((found.labels.tolist(), found[1].label, found.labels.mask.tolist()), ([4, None], None, [False, True]))
        self.assertAlmostEqual(found[0].similarity, 1, 3)
        self.assertEqual(repr(found), f"EncryptedHits(2: '<b>' {found[0].similarity}, 'b' {found[1].similarity})")
        for column in ("similarities", "squared_distances"):
            self.assertTrue(all(len(str(one)) <= 9 for one in found.to_dict()[column]), found.to_dict())
        self.assertIn("<td>&lt;b&gt;</td>", found._repr_html_())
        self.assertEqual(found.to_pandas().columns.tolist(), ["id", "label", "squared_distance", "payload", "similarity"])
        self.assertEqual(found.to_pandas()["similarity"].tolist(), found.similarities.tolist())

    def test_sums_of_epsilon_are_shown_rounded(self):
        with Service(items=200) as server:
            rounded = server.collection("things")
            rounded.budget.grant(epsilon=1, delta=1e-3)
            for _ in range(3):
                hits = rounded.search(service.rows[0], label=0, **COST)
            self.assertEqual(str(hits.spent), "Spending(epsilon=0.3, delta=3e-06)")
            self.assertEqual(str(rounded.budget.left), "Spending(epsilon=0.7, delta=0.000997)")

    def test_joint_finds_the_class(self):
        hits = things.search(service.rows[:5], scheme="joint", label=service.labels[:5], k=4, **COST)
        self.assertEqual([one.labels.tolist() for one in hits], [[label] * 4 for label in service.labels[:5]])
        self.assertEqual(hits[0].payloads[0], {"row": int(hits[0].ids[0])})
        self.assertTrue(hits[0].guarantee.proven)
        self.assertEqual(hits[0].guarantee.epsilon, .1)

    def test_class_is_ranked_without_label(self):
        hits = things.search(service.rows[7], **COST)
        self.assertEqual(hits.labels[0], service.labels[7])
        self.assertEqual(len(hits), 8)

    def test_cells_find_the_item_itself(self):
        service.wait_until_ready(things)
        hits = things.search(service.rows[3], scheme="cells", epsilon=50, k=3)
        self.assertEqual(hits.ids[0], "3")
        self.assertEqual(hits.guarantee.delta, 0)
        self.assertLess(hits.squared_distances[0], 1e-3)

    def test_encrypted_finds_the_exact_nearest_at_no_cost(self):
        rows, queries = service.rows, gallery(6, seed=3)[0]
        plain = service.server.create_collection("plain")
        plain.ingest(rows, labels=service.labels, payloads=[{"row": row} for row in range(len(rows))])
        cosines = queries @ rows.T / np.linalg.norm(rows, axis=1) / np.linalg.norm(queries, axis=1)[:, None]
        found = plain.search(queries, k=5)

        def check(hits, of_query, allowed):
            """Items nearer to each other than the error of a score may change places."""
            ids = [int(one) for one in hits.ids]
            self.assertEqual((len(set(ids)), set(ids) - set(allowed)), (5, set()))
            np.testing.assert_allclose(of_query[ids], np.sort(of_query[allowed])[:-6:-1], atol=1e-3)
            np.testing.assert_allclose(hits.similarities, of_query[ids], atol=1e-3)

        every = np.arange(len(rows))
        for hits, of_query in zip(found, cosines):
            check(hits, of_query, every)
        self.assertEqual((found[0].guarantee.kind, found[0].guarantee.bits), ("computational", 128))
        self.assertEqual(found[0].items, len(rows))
        bytes_without_label = plain.search(queries[1]).query_bytes
        labelled = plain.search(queries[0], k=5, label=4)
        check(labelled, cosines[0], every[service.labels == 4])
        filtered = plain.search(queries[0], k=5, filter={"path": "row", "gte": 1000})
        check(filtered, cosines[0], every[1000:])
        # A label is not sent; of a filter the server sees only that payloads are wanted.
        self.assertEqual(labelled.query_bytes, bytes_without_label)
        again = plain.search(queries[0], k=5, filter={"path": "row", "gte": 1500})
        self.assertEqual(again.query_bytes, plain.search(queries[1], payloads=True).query_bytes)
        with self.assertRaisesRegex(pm.InvalidArgument, "^epsilon does not apply to the scheme encrypted"):
            plain.search(queries[0], epsilon=.1)
        self.assertEqual(plain.budget.spent.epsilon, 0)

    def test_each_query_of_a_batch_is_charged(self):
        before = things.budget.spent
        things.search(service.rows[:3], label=0, **COST)
        self.assertAlmostEqual(things.budget.spent.epsilon, before.epsilon + .3)
        self.assertEqual([one["kind"] for one in things.budget.history()[-3:]], ["charge"] * 3)

    def test_page_is_served_until_its_block_ends(self):
        with pm.page(things) as page:
            self.assertIn(page.address, page._repr_html_())
            urllib.request.urlopen(page.address).close()
        with self.assertRaises(urllib.error.URLError):
            urllib.request.urlopen(page.address)
        with self.assertRaisesRegex(pm.InvalidArgument, "pictures must be a folder, but /nowhere"):
            pm.page(things, pictures="/nowhere")

    def test_coroutines_run_at_the_same_time(self):
        async def search_all():
            return await asyncio.gather(*(things.aio.search(service.rows[row], label=service.labels[row], **COST)
                                          for row in range(4)))
        hits = asyncio.run(search_all())
        self.assertEqual([one.labels[0] for one in hits], service.labels[:4].tolist())
        with self.assertRaises(AttributeError):
            things.aio.name  # pylint: disable=pointless-statement


class Administration(unittest.TestCase):

    def test_items_are_read_as_they_were_ingested(self):
        found = things.get_items(["5", "absent", "3"], features=True)
        self.assertEqual([one["id"] for one in found], ["5", "3"])
        self.assertEqual(found[0]["payload"], {"row": 5})
        np.testing.assert_array_equal(found[1]["features"], service.rows[3])
        self.assertEqual(sorted(one["id"] for one in things.items()), sorted(str(row) for row in range(len(things))))

    def test_interrupt_ends_an_upload_and_stores_no_further_items(self):
        def interrupt(_):
            raise KeyboardInterrupt

        rows = service.rows[:1000]
        upsert = things._session.upsert  # pylint: disable=protected-access
        with self.assertRaises(KeyboardInterrupt):
            upsert("things", rows, service.labels[:1000].astype(np.int32), [], [f"new {row}" for row in range(1000)], [],
                   interrupt, None)
        stored = len(things) - len(service.rows)
        self.assertLessEqual(stored, 512)
        self.assertEqual(things.delete_items([f"new {row}" for row in range(1000)]), stored)
        self.assertEqual(len(things), len(service.rows))

    def test_key_has_its_scope_until_revoked(self):
        key, text = service.server.client.create_key("reader", collections=["things"])
        path = os.path.join(service.folder.name, "reader.key")
        with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
            file.write(text + "\n")
        reader = pm.connect(service.server.address, ca_file=service.server.ca_file, key_file=path, state=service.state)
        self.assertEqual(len(reader.collection("things").search(service.rows[0], label=0, **COST)), 8)
        with self.assertRaises(pm.PermissionDenied):
            reader.collection("things").delete()
        service.server.client.revoke_key(key["id"])
        with self.assertRaises(pm.Unauthenticated):
            reader.collection("things").info()
        self.assertTrue([one for one in service.server.client.keys() if one["id"] == key["id"]][0]["revoked_at"])


class Errors(unittest.TestCase):

    def refused(self, kind, text, call, field=None):
        before = things.budget.spent
        with self.assertRaises(kind) as caught:
            call()
        self.assertIn(text, str(caught.exception))
        if field:
            self.assertEqual(caught.exception.field, field)
        self.assertEqual(things.budget.spent, before, "it was charged")

    def test_bad_queries_name_the_argument_and_cost_nothing(self):
        row = service.rows[0]
        for text, query in (("16 columns", row[:5]), ("finite", row * np.nan), ("dtype of numbers", "text"),
                            ("array of numbers", np.array([{}] * DIM)), ("rows x features", row.reshape(1, 1, DIM)),
                            ("empty", np.zeros((0, DIM))), ("differ in length", [[1, 2], [3]])):
            self.refused(pm.InvalidArgument, text, lambda query=query: things.search(query, **COST), "queries")
        self.refused(pm.InvalidArgument, "zero", lambda: things.search(0 * row, **COST))
        self.refused(pm.InvalidArgument, "number or name", lambda: things.search(row, label="pear", **COST), "label")
        self.refused(pm.InvalidArgument, "10 labels", lambda: things.search(row, label=99, **COST), "label")
        self.refused(pm.InvalidArgument, "shape", lambda: things.search(row, label=[1, 2], **COST), "label")
        self.refused(pm.InvalidArgument, "epsilon", lambda: things.search(row, epsilon=np.nan, delta=1e-6))
        self.refused(pm.InvalidArgument, "delta", lambda: things.search(row, epsilon=.1))
        self.refused(pm.InvalidArgument, "does not apply", lambda: things.search(row, scheme="cells", **COST), "delta")
        self.refused(pm.InvalidArgument, "scheme", lambda: things.search(row, scheme="magic", **COST), "scheme")
        for field, value in (("k", "8"), ("k", 2.5), ("k", 2**70), ("k", True), ("delta", "x"), ("radius", []),
                             ("mechanism", 3), ("classes", 1.5), ("epsilon", "1"), ("epsilon", True), ("scheme", 5),
                             ("filter", {"path": "row"}), ("filter", "row < 3"), ("filter", {"path": "row", "in": {1}})):
            self.refused(pm.InvalidArgument, field, lambda f=field, v=value: things.search(row, **dict(COST, **{f: v})))
        for field in ("partition", "ask", "focus", "items"):
            self.refused(pm.InvalidArgument, field,
                         lambda f=field: things.search(row, scheme="cells", epsilon=1, **{f: "1"}), field)
        self.refused(pm.BudgetExhausted, "exhausted", lambda: things.search(row, epsilon=2000, delta=1e-6))

    def test_errors_show_no_value_of_a_target(self):
        row = np.full(DIM, 123.456, np.float32)
        for arguments in ({"k": "8"}, {"delta": []}, {"label": 777}, {"label": [777, 777]}, {"scheme": "cells"},
                          {"k": 0}, {"mechanism": "lap-output"}, {"epsilon": 1e9},
                          {"items": {}, "scheme": "cells", "delta": None},
                          {"label": 777, "scheme": "cells", "delta": None, "items": 10}):
            for query in (row, row[:3]):
                with self.assertRaises(pm.PrivateMailError) as caught:
                    things.search(query, **dict(COST, **arguments))
                self.assertNotRegex(repr(caught.exception) + repr(caught.exception.__context__), "123|777")

    def test_arrays_of_any_layout_are_read_alike(self):
        rows = np.asfortranarray(service.rows[:4].astype(float))
        for query in (rows, rows.tolist(), service.rows[:8:2][::-1][::-1], rows.astype(np.float16)):
            self.assertEqual(len(things.search(query, label=0, **COST)), 4)

    def test_bad_items_name_the_argument(self):
        rows, labels = service.rows[:2], service.labels[:2]
        for field, call in (("labels", lambda: things.ingest(rows, labels=["a", "b"], ids=["a", "b"])),
                            ("labels", lambda: things.ingest(rows, labels=[1], ids=["a", "b"])),
                            ("ids", lambda: things.ingest(rows, labels=labels, ids=["a", "a"])),
                            ("ids", lambda: things.ingest(rows, labels=labels, ids=["a"])),
                            ("payloads", lambda: things.ingest(rows, labels=labels, ids=["a", "b"], payloads=[1])),
                            ("features", lambda: things.ingest(rows[:, 1:], labels=labels, ids=["a", "b"]))):
            with self.assertRaises(pm.InvalidArgument) as caught:
                call()
            self.assertEqual(caught.exception.field, field)
        with self.assertRaises(pm.AlreadyExists):
            things.ingest(rows, labels=labels)
        self.assertEqual(len(things), len(service.rows))

    def test_errors_of_the_server_have_their_code(self):
        with self.assertRaises(pm.NotFound) as caught:
            service.server.collection("absent").info()
        self.assertEqual(caught.exception.code, "NOT_FOUND")
        client = pm.connect("127.0.0.1:1", insecure=True, state=service.state)
        with self.assertRaises(pm.Unavailable):
            client.collection("things").info()
        client.close()
        with self.assertRaises(pm.FailedPrecondition):
            client.collections()

    def test_copies_are_refused(self):
        for one in (things, service.server.client):
            for make in (copy.copy, copy.deepcopy, pickle.dumps):
                with self.assertRaisesRegex(TypeError, "connect again"):
                    make(one)

    def test_a_fork_refuses_clients_of_its_parent_and_leaves_its_daemon(self):
        program = """
import os, sys, privatemail as pm
server = pm.Server.local()
server.collections()
child = os.fork()
if child == 0:
    refused = 0
    for call in (server.collections, lambda: pm.connect(server.address).collections()):
        try:
            call()
        except pm.FailedPrecondition as error:
            refused += "forked" in str(error)
    sys.exit(5 + refused)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), len(server.collections()), server.data)
"""
        done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True,
                              timeout=60)
        code, collections, data = done.stdout.split()
        self.assertEqual((code, collections), ("7", "0"))
        self.assertFalse(os.path.exists(data), "it was not removed when Python ended")

    def test_daemon_that_cannot_start_says_why(self):
        with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(pm.Unavailable, "did not start: .*max-k"):
            pm.Server.local(folder, arguments=["--max-k", "0"])
        for program, message in (("/nowhere/privatemaild", "PRIVATEMAILD, must be .* No such file"), (None, "PRIVATEMAILD: ")):
            with unittest.mock.patch.dict(os.environ, {"PATH": "/nowhere"}), self.assertRaisesRegex(
                    pm.FailedPrecondition, message) as caught:
                os.environ.pop("PRIVATEMAILD", None)
                pm.Server.local(program=program)
            self.assertEqual(caught.exception.argument, "program")

    def test_every_error_is_one_of_the_package_and_names_argument_and_row(self):
        rows = service.rows[:3].copy()
        rows[2, 1] = np.nan
        client = service.server.client
        names = lambda given: lambda: things.ingest(service.rows[:3], labels=[0, 1, 2], ids=given)
        for call, argument, row in ((lambda: things.search(rows, **COST), "queries", 2),
                                    (names(["a", 5, "c"]), "ids", 1),
                                    (names(7), "ids", None),
                                    (lambda: things.search(0 * service.rows[:1], **COST), "queries", 0),
                                    (lambda: pm.Extractor()([__file__]), "images", 0),
                                    (lambda: pm.connect(5), "server", None),
                                    (lambda: pm.connect(insecure="no"), "insecure", None),
                                    (lambda: pm.connect(ca_file=5), "ca_file", None),
                                    (lambda: client.collection(5), "name", None),
                                    (lambda: client.create_collection(5), "name", None),
                                    (lambda: client.create_collection("n", alfa=1), "alfa", None),
                                    (lambda: client.create_collection("n", class_names=3), "class_names", None),
                                    (lambda: client.create_collection("n", cells=3), "cells", None),
                                    (lambda: client.create_collection("n", metric=3), "metric", None),
                                    (lambda: client.create_key(5), "name", None),
                                    (lambda: client.create_key("n", scopes=5), "scopes", None),
                                    (lambda: client.create_key("n", expires_at="x"), "expires_at", None),
                                    (lambda: client.revoke_key(5), "key_id", None),
                                    (lambda: client.restore("n", 5), "path", None),
                                    (lambda: things.budget.grant(epsilon="x"), "epsilon", None),
                                    (lambda: things.budget.grant(epsilon=1, accounting=5), "accounting", None),
                                    (lambda: things.plan(epsilon="x"), "epsilon", None),
                                    (lambda: things.plan(epsilon=1, recall="x"), "recall", None),
                                    (lambda: things.build(accept_misalignment="x"), "accept_misalignment", None),
                                    (lambda: things.snapshot(5), "path", None),
                                    (lambda: things.get_items(5), "ids", None),
                                    (lambda: things.get_items(["1"], features="x"), "features", None),
                                    (lambda: things.resend(label="x"), "label", None),
                                    (lambda: things.search(rows[:2], label=[[1], [2, 3]], **COST), "label", 0),
                                    (lambda: things.search(rows[0], epsilon=[[1], [2, 3]]), "epsilon", None),
                                    (lambda: things.search(rows[0], plan=5), "plan", None),
                                    (lambda: pm.calibrate("laplace", epsilon=1, lower=["x"]), "lower", None),
                                    (lambda: pm.sensitivity("lipschitz", anchor_labels=[[1], [2, 3]]), "anchor_labels", 1),
                                    (lambda: pm.Extractor(input_size=5), "input_size", None),
                                    (lambda: pm.Extractor("m.onnx", input_size=(2**40, 1)), "input_size", 0),
                                    (lambda: copy.copy(things), None, None)):
            with self.assertRaises(pm.PrivateMailError) as caught:
                call()
            self.assertEqual((caught.exception.argument, caught.exception.row), (argument, row), caught.exception)
        named = "must be one of the collection's names ('row 5', \"query '6'\"), but row 0 isn't"
        self.assertEqual(pm.InvalidArgument(named).row, 0)


class Budgets(unittest.TestCase):

    def test_command_line_and_package_share_one_ledger(self):
        with Service(items=200) as server:
            collection, client = server.collection("things"), server.client
            collection.budget.grant(epsilon=2, delta=1e-3)
            outcomes = []

            def search():
                for _ in range(15):
                    try:
                        collection.search(service.rows[0], label=0, **COST)
                        outcomes.append(True)
                    except pm.BudgetExhausted:
                        outcomes.append(False)

            vector = os.path.join(client.state, "row.npy")
            np.save(vector, service.rows[:1])
            command = [os.environ["PRIVATEMAIL"], "query", "things", "--vectors", vector, "--row", "0", "--label", "0",
                       "--epsilon", ".1", "--delta", "1e-6", "--state", client.state, "--server", server.address,
                       "--ca", server.ca_file, "--key-file", server.key_file]
            searchers = [threading.Thread(target=search) for _ in range(2)]
            for searcher in searchers:
                searcher.start()
            for _ in range(8):
                outcomes.append(subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                               check=False).returncode == 0)
            for searcher in searchers:
                searcher.join()
            self.assertEqual(outcomes.count(True), 20, "exactly what was granted")
            self.assertAlmostEqual(collection.budget.spent.epsilon, 2)

    def test_grant_and_history(self):
        self.assertEqual(things.budget.granted, pm.Spending(1000, .1))
        self.assertEqual(things.budget.history()[0]["kind"], "grant")
        things.budget.grant(epsilon=2000, delta=.2, operator="museum")
        things.search(service.rows[0], label=0, **COST)
        museum = things.budget.operators["museum"]
        self.assertEqual(museum["granted"], {"epsilon": 2000, "delta": .2})
        self.assertGreaterEqual(museum["spent"]["epsilon"], things.budget.spent.epsilon)
        things.budget.grant(epsilon=3000, operator="museum")
        self.assertEqual(things.budget.operators["museum"]["granted"], {"epsilon": 3000, "delta": .2})
        self.assertEqual([one["operator"] for one in things.budget.history() if one["kind"] == "operator-grant"],
                         ["museum", "museum"])
        with self.assertRaisesRegex(ValueError, "operator must be a name"):
            things.budget.grant(epsilon=1, operator="")
        with self.assertRaises(pm.InvalidArgument):
            things.budget.grant(epsilon=-1)


class Memory(unittest.TestCase):

    def test_calls_leak_nothing(self):
        def resident():
            with open("/proc/self/statm", encoding="ascii") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

        row = service.rows[0]
        good = [things.info, things.explain, lambda: things.resend(label=0)]
        bad = [lambda: things.search(row[:3], **COST), lambda: things.search(row, label=99, **COST),
               lambda: things.search(row, epsilon=1e9, delta=1e-6), lambda: things.search(row, filter={"a": 1}, **COST)]
        service.wait_until_ready(things)
        things.search(row, scheme="cells", epsilon=50, items=200)
        things.search(row, label=0, **COST)

        def call():
            for _ in range(CALLS // 8):
                for one in good:
                    one()
                for one in bad:
                    with self.assertRaises(pm.PrivateMailError):
                        one()
        call()
        before = resident()
        call()
        grown = resident() - before
        self.assertLess(grown, 2 << 20, f"{CALLS} calls took {grown} bytes")


class Images(unittest.TestCase):

    def write(self, name, colour):
        """A noisy picture of 32 x 32 pixels around a colour."""
        noise = np.random.default_rng(len(self.paths)).integers(0, 60, (32, 32, 3))
        self.paths.append(os.path.join(self.folder, name))
        imsave(self.paths[-1], (np.array(colour) + noise).astype(np.uint8))

    def setUp(self):
        self.folder, self.paths = self.enterContext(tempfile.TemporaryDirectory()), []

    def test_images_of_a_colour_are_nearest_to_each_other(self):
        labels = np.arange(30) % 3
        for row, label in enumerate(labels):
            self.write(f"{row}.png", 180 * np.eye(3)[label])
        describe = pm.Extractor()
        self.assertEqual((describe.identity, describe.dim), ("builtin:hog-colour/1", 548))
        rows = describe(self.paths)
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)
        np.testing.assert_array_equal(describe(self.paths[::-1]), rows[::-1])
        nearest = (rows @ rows.T - 2 * np.eye(30)).argmax(axis=1)
        np.testing.assert_array_equal(labels[nearest], labels)

    def test_unreadable_images_are_named(self):
        self.write("good.png", [0, 0, 0])
        bad = os.path.join(self.folder, "bad.png")
        with open(bad, "wb") as file:
            file.write(b"no picture")
        for images, message in (([self.paths[0], bad], "must be readable, .*" + bad), ([], "must not be empty"),
                                (bad, "must be a list of paths")):
            with self.assertRaisesRegex(pm.InvalidArgument, "^images " + message):
                pm.Extractor()(images)
        with self.assertRaises(pm.InvalidArgument):
            pm.Extractor(bad)

    def test_bad_model_is_an_error_that_names_it(self):
        """None may end this process."""
        def field(number, data):
            data = data if isinstance(data, bytes) else data.encode()
            return bytes([number << 3 | 2, len(data) & 127 | 128, len(data) >> 7]) + data

        # A convolution of no groups, by which OpenCV 4.6 divides.
        sides = b"".join(field(1, bytes([8, side])) for side in (1, 3, 8, 8))
        groups = (field(5, field(1, "group") + bytes([24, 0, 160, 1, 2])) +
                  field(5, field(1, "kernel_shape") + bytes([64, 1, 64, 1, 160, 1, 7])))
        graph = (field(1, field(1, "x") + field(1, "w") + field(2, "y") + field(4, "Conv") + groups) +
                 field(5, bytes([8, 1, 8, 3, 8, 1, 8, 1, 16, 1]) + field(8, "w") + field(9, bytes(12))) +
                 field(11, field(1, "x") + field(2, field(1, bytes([8, 1]) + field(2, sides)))) +
                 field(12, field(1, "y") + field(2, field(1, bytes([8, 1]) + field(2, sides)))))
        fatal = bytes([8, 6]) + field(7, graph) + field(8, bytes([16, 11]))
        for content, message in ((fatal, "ended before|ends the process that runs it"), (fatal[:-9], "that are none"),
                                 (b"", "empty"), (b"\xd3\x1f\xff" * 99, "that are none"), (b"<html>", "that are none"),
                                 (fatal.replace(b"Conv", b"Con\xff"), "Con")):
            path = os.path.join(self.folder, "model.onnx")
            with open(path, "wb") as file:
                file.write(content)
            with self.assertRaisesRegex(pm.InvalidArgument, f"^{path}: .*({message})"):
                pm.Extractor(path)


class SeededNoise(unittest.TestCase):

    def test_is_never_in_one_process_with_a_client(self):
        client, seeded = "import privatemail as pm; pm.connect", "import privatemail.evaluation._seeded"
        for first, second in ((client, seeded), (seeded, client)):
            ended = subprocess.run([sys.executable, "-c", f"{first}\n{second}"], capture_output=True, text=True)
            self.assertEqual(ended.returncode, 1, ended.stderr)
            self.assertIn("ImportError: privatemail.evaluation computes with seeded noise", ended.stderr)
        for alone in (client, seeded):
            subprocess.run([sys.executable, "-c", alone], check=True)


class NumPy(unittest.TestCase):

    def test_that_the_core_cannot_read_is_refused_at_import(self):
        program = ("import numpy; numpy.__version__ = '2.0.1'\n"
                   "import privatemail; privatemail.connect('127.0.0.1:1', insecure=True)")
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        if pm._core.reads_numpy_2:  # pylint: disable=protected-access
            self.assertEqual(ended.returncode, 0, ended.stderr)
        else:
            self.assertIn("install numpy<2, or build privatemail with a newer pybind11", ended.stderr)

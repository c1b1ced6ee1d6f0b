"""The package against the daemons of two operators."""

import io
import json
import os
import re
import subprocess
import unittest
import urllib.error
import urllib.request

import numpy as np

import privatemail as pm
from service import TwoOperators, gallery

K = 8


def setUpModule():
    global service, things, queries, nearest  # pylint: disable=global-statement
    service = TwoOperators()
    things = service.things
    queries = gallery(30, seed=5)[0]
    nearest = squared_distances().argsort(axis=1)[:, :K]


def tearDownModule():
    service.close()


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def squared_distances():
    """Of every query to every item, between unit vectors; by numpy."""
    return 2 - 2 * unit(queries.astype(float)) @ unit(service.rows.astype(float)).T


def search(rows=None, **options):
    return things.search(queries if rows is None else rows, scheme="two-server", **options)


class Search(unittest.TestCase):

    def fidelity(self, hits):
        """Share of the nearest items that were found."""
        return np.mean([np.isin([int(one) for one in found.ids], true).mean() for found, true in zip(hits, nearest)])

    def test_scores_are_those_of_numpy(self):
        hits = search()
        for found, true, distances in zip(hits, nearest, squared_distances()):
            rows = [int(one) for one in found.ids]
            # Rounding: at most sqrt(16) 2^-14 of a cosine.
            np.testing.assert_allclose(found.squared_distances, distances[rows], atol=5e-4)
            np.testing.assert_allclose(distances[rows], distances[true], atol=5e-4)
            np.testing.assert_array_equal(found.labels, service.labels[rows])
            self.assertEqual((found.mode, found.candidates, found.lists), ("scores", 2000, []))
            self.assertEqual(found.bytes_down, 2 * 3 * 2000)
        self.assertGreater(self.fidelity(hits), .98)
        self.assertEqual(hits[0].operators, ("North", "South"))
        self.assertEqual(hits[0].image, service.image["digest"])
        self.assertEqual(hits[0].payloads, [None] * K)
        self.assertEqual((hits[0].spent, hits[0].left), (None, None))
        guarantee = hits[0].guarantee
        self.assertEqual((guarantee.server_a, guarantee.server_b), ("perfect", "computational"))
        self.assertRegex(guarantee.assumption, "AES")
        self.assertEqual((guarantee.both_learn, guarantee.both_bounded), ("the query", None))

    def test_lists_hold_most_of_the_nearest(self):
        for lists in (4, 8):
            hits = search(lists=lists)
            self.assertGreater(self.fidelity(hits), .98)
            for found, distances in zip(hits, squared_distances()):
                rows = [int(one) for one in found.ids]
                np.testing.assert_allclose(found.squared_distances, distances[rows], atol=1e-3)  # of the code
                np.testing.assert_array_equal(found.labels, service.labels[rows])
                self.assertEqual(len(found.lists), lists)
                self.assertTrue(400 <= found.candidates <= 400 * lists, found.candidates)
                self.assertEqual(found.bytes_down, 2 * lists * service.image["partitions"][0]["list_bytes"])
        with self.assertRaisesRegex(pm.InvalidArgument, "lists is of no use with mode scores"):
            search(mode="scores", lists=4)
        guarantee = hits[0].guarantee
        self.assertEqual((guarantee.server_a, guarantee.server_b), ("perfect", "perfect"))
        self.assertRegex(guarantee.both_learn, "8 fetched lists, which are those of the cells nearest")

    def test_payloads_are_those_of_the_items(self):
        for mode in ("scores", "lists"):
            hits = search(queries[0], mode=mode, payloads=True)
            self.assertEqual(hits.payloads, [{"row": int(one)} for one in hits.ids])

    def test_epsilon_is_charged_and_bounds_what_both_learn(self):
        with self.assertRaisesRegex(pm.FailedPrecondition, r"set one with: budget.grant\(epsilon=E, delta=D\)$"):
            search(queries[0], epsilon=4)
        things.budget.grant(epsilon=10)
        hits = search(queries[:2], epsilon=4)
        self.assertEqual([one.mode for one in hits], ["lists"] * 2)
        self.assertEqual([one.spent.epsilon for one in hits], [4, 8])
        self.assertEqual(things.budget.left.epsilon, 2)
        bounded = hits[0].guarantee.both_bounded
        self.assertEqual((bounded.epsilon, bounded.delta, bounded.proven), (4, 0, True))
        with self.assertRaisesRegex(pm.InvalidArgument, "payloads must not be fetched with epsilon"):
            search(queries[0], epsilon=1, payloads=True)
        with self.assertRaisesRegex(pm.InvalidArgument, "epsilon must not be given with mode scores"):
            search(queries[0], epsilon=1, mode="scores")
        with self.assertRaisesRegex(pm.InvalidArgument, "^epsilon must be finite and positive"):
            search(queries[0], epsilon=float("nan"))
        with self.assertRaises(pm.BudgetExhausted):
            search(queries[0], epsilon=4)
        self.assertEqual(things.budget.left.epsilon, 2)


class Explain(unittest.TestCase):

    def test_names_what_each_server_was_to_see(self):
        for options, calls, shares in (
            ({"mode": "scores"}, ["Score"], ("a seed of 16 uniform bytes", "16 words of 32 bits")),
            ({"mode": "lists", "lists": 3, "payloads": True}, ["FetchLists"] * 2,
             ("3 selections of 8 bits, each bit a fair coin", "3 selections of 8 bits, each bit a fair coin"))):
            hits = search(queries[0], **options)
            told = things.explain()
            self.assertEqual((told["scheme"], told["mode"], told["image"]),
                             ("two-server", options["mode"], service.image["digest"]))
            self.assertEqual([one["operator"] for one in told["servers"]], ["North", "South"])
            self.assertEqual([one["server"] for one in told["servers"]],
                             [service.server.address, service.second.address])
            for server, share in zip(told["servers"], shares):
                self.assertEqual([call["call"] for call in server["calls"]], calls)
                self.assertIn(share, server["calls"][0]["share"])
            self.assertEqual(sum(call["bytes"] for server in told["servers"] for call in server["calls"]),
                             hits.bytes_up)
            self.assertEqual(service.run("explain")["servers"], told["servers"])
        with self.assertRaisesRegex(pm.FailedPrecondition, "its shares, which together are the query, are not saved"):
            things.resend(queries[0])


class Plan(unittest.TestCase):

    SECOND = ("--second-server", "--second-ca", "--second-key-file")

    def plan(self, *words):
        second = (service.second.address, service.second.ca_file, service.second.key_file)
        return service.run("plan", "things", *words, *(word for pair in zip(self.SECOND, second) for word in pair))

    def test_tells_the_bytes_of_searches(self):
        plan = self.plan()
        self.assertEqual((plan["operators"], plan["of_items"]), (["North", "South"], 2000))
        hits = search(queries[0], mode="scores")
        self.assertEqual(plan["scores"]["bytes"], {"up": hits.bytes_up, "down": hits.bytes_down})
        self.assertTrue(plan["scores"]["exact"])
        self.assertEqual([one["lists"] for one in plan["lists"]], [1, 2, 4, 8])
        for one in plan["lists"]:
            hits = search(queries[0], mode="lists", lists=one["lists"])
            self.assertEqual(one["bytes"], {"up": hits.bytes_up, "down": hits.bytes_down})
        self.assertIn("not told", plan["lists_quality"])

    def test_of_cells_is_not_mixed_with_it(self):
        for call in (lambda: self.plan("--fidelity", ".5"),
                     lambda: service.run("plan", "things", "--second-ca", service.second.ca_file)):
            with self.assertRaises(subprocess.CalledProcessError) as caught:
                call()
            self.assertRegex(json.loads(caught.exception.stdout)["error"]["message"],
                             "is of no use with(out)? --second-server: expected none")


class Page(unittest.TestCase):

    def setUp(self):
        self.browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())

    def open(self, page):
        """Opens the page once."""
        self.origin = "/".join(page.address.split("/")[:3])
        with self.browser.open(page.address) as opened:
            self.inside = self.origin + re.search('url=([^"]*)', opened.read().decode())[1]

    def call(self, path, body=None):
        request = urllib.request.Request(f"{self.inside}api/{path}", body, {"Origin": self.origin})
        with self.browser.open(request) as answer:
            return json.load(answer)

    def ask(self, mode="auto", lists=4):
        shown = "digest=" + self.call("collection?name=things")["digest"]
        file = io.BytesIO()
        np.save(file, queries)
        target = self.call(f"target?name=queries.npy&row=3&{shown}", file.getvalue())["target"]
        asked = {"target": target, "scheme": "two-server", "epsilon": 1, "payloads": True, "mode": mode, "lists": lists}
        return self.call(f"ask?{shown}", json.dumps(asked).encode())

    def test_asks_two_operators(self):
        spent = things.budget.spent
        with pm.page(things) as page:
            self.open(page)
            self.assertEqual(self.call("collections")["second_server"], service.second.address)
            answer = self.ask()
            of_lists = self.ask("lists", 3)
            self.assertIn("lists must be between 1 and 8, but is 9", self.refused("lists", 9))
            self.assertIn("mode must be auto, lists or scores", self.refused("both", 3))
        rows, distances = [int(one["id"]) for one in answer["matches"]], squared_distances()[3]
        np.testing.assert_allclose(distances[rows], distances[nearest[3]], atol=5e-4)
        self.assertEqual(answer["matches"][0]["payload"], {"row": rows[0]})
        self.assertEqual([one["operator"] for one in answer["servers"]], ["North", "South"])
        self.assertEqual([one["call"] for one in answer["servers"][0]["calls"]], ["Score", "FetchLists"])
        self.assertRegex(answer["sentence"], r"^North alone learns nothing of your target \(perfect\), nor does South")
        self.assertEqual((of_lists["mode"], len(of_lists["lists"])), ("lists", 3))
        self.assertRegex(of_lists["servers"][1]["calls"][0]["share"], "^3 selections of 8 bits")
        self.assertEqual(things.budget.spent, spent)

    def refused(self, *asked):
        """The message of an answer that is an error."""
        with self.assertRaises(urllib.error.HTTPError) as caught:
            self.ask(*asked)
        with caught.exception as refused:
            return json.load(refused)["error"]["message"]

    def test_without_a_second_server_offers_none(self):
        with pm.page(service.client().collection("things")) as page:
            self.open(page)
            self.assertEqual(self.call("collections")["second_server"], "")
            self.assertIn("--second-server", self.refused())


class Errors(unittest.TestCase):

    def refused(self, kind, text, **options):
        with self.assertRaisesRegex(kind, text) as caught:
            search(queries[0], **options)
        return caught.exception

    def test_arguments_are_checked(self):
        for options, text in (({"mode": "both"}, '^mode must be None, "lists" or "scores", but is "both"'),
                              ({"mode": 3}, "^mode must be a string"),
                              ({"mode": "lists", "lists": 9}, "^lists must be between 1 and 8"),
                              ({"mode": "lists", "partition": 1}, "^partition must be"),
                              ({"k": 0}, "^k must be"),
                              ({"epsilon": "1"}, "^epsilon must be a number")):
            self.assertIsNotNone(self.refused(pm.InvalidArgument, text, **options).field, text)
        for name, value in (("filter", {}), ("delta", .1), ("ask", 2), ("items", 9), ("label", 1),
                            ("own_anchors", queries), ("accept_misalignment", True)):
            self.refused(pm.InvalidArgument, f'^{name} is of no use with scheme="two-server"', **{name: value})
        for name, value in (("mode", "lists"), ("lists", 2), ("trust_again", True)):
            for scheme in ("joint", "anchored", "cells"):
                with self.assertRaisesRegex(pm.InvalidArgument, f'^{name} is of no use with scheme="{scheme}"'):
                    things.search(queries[0], epsilon=1, scheme=scheme, **{name: value})
        with self.assertRaisesRegex(pm.InvalidArgument, "must have 16 columns, as the collection, but have 3"):
            search(queries[0][:3])

    def test_second_must_be_another_server_that_answers(self):
        options = {"scheme": "two-server"}
        with self.assertRaisesRegex(pm.InvalidArgument, "^second must be given to `connect`"):
            service.client().collection("things").search(queries[0], **options)
        key = os.path.join(service.folder.name, "other.key")
        service.run("key", "create", "other", "--scope", "search", "--out", key)
        for other in (service.client(), pm.connect("localhost:" + service.server.address.split(":")[1],
                                                   ca_file=service.server.ca_file, key_file=key)):
            with self.assertRaisesRegex(pm.FailedPrecondition, "^server and second must be two servers, but both have"):
                service.client(second=other).collection("things").search(queries[0], **options)
        copied = os.path.join(service.folder.name, "copied.key")
        with open(service.server.key_file, encoding="ascii") as key, open(copied, "w", encoding="ascii") as copy:
            copy.write(key.read().strip())
        os.chmod(copied, 0o600)
        other = pm.connect(service.second.address, ca_file=service.second.ca_file, key_file=copied)
        with self.assertRaisesRegex(pm.InvalidArgument, "^key_file and key_file of second must hold two keys"):
            service.client(second=other).collection("things").search(queries[0], **options)
        with self.assertRaisesRegex(pm.Unavailable, "did not start: --key-file and --second-key-file"):
            pm.page(service.client(second=other).collection("things"))
        for words in (["mirror", "things", "--pin", service.image["signer"]], ["plan", "things"]):
            with self.assertRaises(subprocess.CalledProcessError) as caught:
                service.run(*words, "--second-server", service.second.address, "--second-ca", service.second.ca_file,
                            "--second-key-file", copied)
            self.assertIn("--second-key-file must hold two keys", caught.exception.stdout.decode())
        absent = pm.connect("127.0.0.1:1", insecure=True)
        with self.assertRaisesRegex(pm.Unavailable, r"^server B \(127.0.0.1:1\)"):
            service.client(second=absent).collection("things").search(queries[0], **options)
        absent.close()
        with self.assertRaisesRegex(pm.FailedPrecondition, "client is closed"):
            service.client(second=absent).collection("things").search(queries[0], **options)
        stranger = pm.connect(service.second.address, ca_file=service.second.ca_file)
        with self.assertRaisesRegex(pm.Unauthenticated, r"^server B .*: connect\(key_file=FILE\) sends one$"):
            service.client(second=stranger).collection("things").search(queries[0], **options)
        with self.assertRaises(pm.NotFound):
            service.client(second=service.second.client).collection("absent").search(queries[0], **options)

    def test_of_wrong_answers_name_the_argument(self):
        message = "they are not used together until you say --trust-again"
        self.assertEqual(str(pm.errors.of_status("FAILED_PRECONDITION", message)),
                         "they are not used together until you say trust_again")


if __name__ == "__main__":
    unittest.main()

"""HTTP of `privatemail page` without a browser: queries, and what they must not spend. local_server_test.cc has the requests that it refuses."""

import http.client
import json
import pathlib
import re
import subprocess
import tempfile
import threading
import time
import unittest
from concurrent import futures

import grpc

from page_service import COLOURS, LOOPBACK, Page, Service, png, vectors

RED = png(COLOURS["red"], 5)


class Between(grpc.GenericRpcHandler):
    """A server before an insecure daemon, which records searches and may refuse them or hold them back."""

    def __init__(self, daemon):
        self.channel, self.searches, self.refuses = grpc.insecure_channel(daemon), [], None
        self.has_search, self.may_go_on = threading.Semaphore(0), threading.Event()
        self.may_go_on.set()
        self.server = grpc.server(futures.ThreadPoolExecutor(4))
        self.server.add_generic_rpc_handlers((self,))
        self.address = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.server.start()

    def service(self, details):
        def handle(request, context):
            if details.method.endswith(("/SearchEncrypted", "/Retrieve")):
                self.searches.append(request)
                self.has_search.release()
                self.may_go_on.wait()
                if self.refuses:
                    context.abort(self.refuses, "leaving")
            try:
                yield from self.channel.unary_stream(details.method)(request)
            except grpc.RpcError as error:
                context.abort(error.code(), error.details())
        return grpc.unary_stream_rpc_method_handler(handle)

    def stop(self):
        self.server.stop(None).wait()
        self.channel.close()


class PageHttpTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="privatemail_http_")))
        cls.service = Service(cls.folder, "--insecure")
        cls.addClassCleanup(cls.service.stop)
        cls.between = Between(cls.service.address)
        cls.addClassCleanup(cls.between.stop)
        cls.service.command[2] = cls.between.address

    def setUp(self):
        self.page = Page(self.service, "colours", self.folder / "gallery")
        self.addCleanup(self.page.stop)
        self.host = self.page.address.removeprefix("http://")

    def request(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection(self.host, timeout=60)
        self.addCleanup(connection.close)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer, answer.read()

    def enter(self):
        """Exchanges the token for the cookie; returns the page's folder."""
        address = re.search("url=([^\"]*)", self.page.file.read_text(encoding="utf-8")).group(1)
        self.token = address.removeprefix(self.page.address)
        answer, body = self.request("GET", self.token)
        self.assertEqual(answer.status, 200)
        cookie, *attributes = answer.getheader("Set-Cookie").split("; ")
        inside = re.search("url=([^\"]*)", body.decode()).group(1)
        self.assertEqual(set(attributes), {f"Path={inside}", "HttpOnly", "SameSite=Strict"})
        self.mine = {"Cookie": cookie, "Origin": self.page.address}
        return inside

    def open_collection(self, inside, name):
        """Returns what tells the program which collection a tab shows."""
        answer, body = self.request("GET", inside + f"api/collection?name={name}", **self.mine)
        self.assertEqual(answer.status, 200)
        return "digest=" + json.loads(body)["digest"]

    def pick(self, inside, shown, more=""):
        _, picked = self.request("POST", f"{inside}api/target?name=red.png&{shown}{more}", RED, **self.mine)
        return json.loads(picked)["target"]

    def ask(self, inside, shown, scheme="joint", target=None, answers=0):
        """answers: how many of this target have come."""
        asked = {"target": target or self.pick(inside, shown), "scheme": scheme, "answers": answers}
        answer, body = self.request("POST", f"{inside}api/ask?{shown}", json.dumps(asked).encode(), **self.mine)
        return answer.status, json.loads(body)

    def test_unknown_collection_ends_the_program(self):
        ended = subprocess.run([*self.service.command, "page", "--collection", "absent", "--no-browser"],
                               capture_output=True, text=True, timeout=60)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("absent", ended.stderr)

    def test_missing_model_is_warned_of(self):
        self.service.run("collection", "create", "modelled", "--extractor",
                         f"onnx:sha256={'0' * 64};input=4x2;mean=1,2,3;scale=1;channels=rgb;layer=")
        with subprocess.Popen([*self.service.command, "page", "--collection", "modelled", "--no-browser"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as page:
            page.stdout.readline()
            page.kill()
            self.assertRegex(page.stderr.read(), "modelled are described by a model that .*give --model")

    def test_budget_of_encrypted_searches_is_not_asked_for(self):
        command = [word for word in self.service.command if word != "--json"]
        shown = subprocess.run([*command, "budget", "show", "plain"], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertIn("encrypted and need no budget", shown)
        self.assertNotIn("refused", shown)

    def test_query_stays_on_loopback(self):
        inside = self.enter()
        for path in ("", "page.js", "operators.html", "api/collections"):
            self.assertEqual(self.request("GET", inside + path, **self.mine)[0].status, 200, path)
        shown = self.open_collection(inside, "colours")
        peers, done = set(), threading.Event()

        def watch():
            while not done.wait(.002):
                peers.update(self.page.peers())
                if "0100007F" in peers:
                    self.between.may_go_on.set()

        watcher = threading.Thread(target=watch)
        self.between.may_go_on.clear()  # so that it looks at least once while the page is asked
        watcher.start()
        spent = len(self.service.charges("colours"))
        try:
            status, entry = self.ask(inside, shown)
        finally:
            done.set()
            watcher.join()
            self.between.may_go_on.set()
        self.assertEqual((status, len(entry["answer"]["matches"])), (200, 8))
        _, sent = self.request("GET", f"{inside}sent?target={entry['target']}", **self.mine)
        self.assertEqual(len(sent), self.service.run("explain")["bytes"])
        self.assertEqual(len(self.service.charges("colours")), spent + 1)
        self.assertIn("0100007F", peers)
        self.assertLessEqual(peers, LOOPBACK)
        # A wrong request costs nothing.
        for scheme, code in (("cells", "FAILED_PRECONDITION"), ("none", "INVALID_ARGUMENT")):
            status, answer = self.ask(inside, shown, scheme)
            self.assertEqual(answer["error"]["code"], code)
        for body in (b"", b"{}", b"[1]", b"\xff", b'{"target": 1e99}'):
            answer, _ = self.request("POST", f"{inside}api/ask?{shown}", body, **self.mine)
            self.assertEqual(answer.status, 400, body)
        self.assertEqual(len(self.service.charges("colours")), spent + 1)

    def test_tab_of_another_collection_spends_nothing(self):
        inside = self.enter()
        first = self.open_collection(inside, "colours")
        target = self.pick(inside, first)
        second = self.open_collection(inside, "things")
        spent = [len(self.service.charges(name)) for name in ("colours", "things")]
        asked = {"target": target, "scheme": "joint", "answers": 0}
        for method, path, body in (("POST", "api/ask?", json.dumps(asked).encode()), ("GET", "api/budget?", None),
                                   ("POST", "api/target?name=red.png&", RED),
                                   ("GET", "api/history?", None)):
            answer, said = self.request(method, inside + path + first, body, **self.mine)
            self.assertEqual(answer.status, 422, path)
            self.assertIn("another tab has opened collection things", json.loads(said)["error"]["message"])
        answer, said = self.request("POST", f"{inside}api/ask?{second}", json.dumps(asked).encode(), **self.mine)
        self.assertEqual((answer.status, json.loads(said)["error"]["code"]), (400, "FORGOTTEN"))
        self.assertEqual([len(self.service.charges(name)) for name in ("colours", "things")], spent)

    def test_search_from_a_match_leaves_at_a_whole_second(self):
        """Its picture is read after the click, so that time must not show."""
        inside = self.enter()
        shown = self.open_collection(inside, "colours")
        began = time.monotonic()
        self.pick(inside, shown, "&follows=1")
        self.assertGreaterEqual(time.monotonic() - began, 1)

    def test_history_keeps_the_last_searches_until_it_is_forgotten(self):
        inside = self.enter()
        shown = self.open_collection(inside, "colours")
        asked = [self.ask(inside, shown, "encrypted")[1] for _ in range(13)]
        self.pick(inside, shown)  # without a search
        history = f"{inside}api/history?{shown}"
        kept = json.loads(self.request("GET", history, **self.mine)[1])
        self.assertEqual(kept, asked[-len(kept):])
        self.assertEqual(len(kept), 11)
        picture = f"{inside}target?target={asked[-1]['target']}"
        self.assertEqual(self.request("GET", picture, **self.mine)[1], RED)
        self.assertEqual(self.request("POST", f"{inside}api/forget?{shown}", b"", **self.mine)[0].status, 200)
        self.assertEqual(json.loads(self.request("GET", history, **self.mine)[1]), [])
        self.assertEqual(self.request("GET", picture, **self.mine)[0].status, 404)

    def test_asking_again_after_an_error_sends_the_same_bytes_and_charges_once(self):
        inside = self.enter()
        shown = self.open_collection(inside, "colours")
        for scheme in ("encrypted", "joint"):
            spent = len(self.service.charges("colours"))
            self.between.searches.clear()
            target = self.pick(inside, shown)
            busy, full = grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED
            for refuses, answers in ((busy, 0), (full, 0), (busy, 0), (None, 0), (None, 1)):
                self.between.refuses = refuses
                _, said = self.ask(inside, shown, scheme, target, answers)
                # RESOURCE_EXHAUSTED, which a server says, is not SPENT.
                self.assertEqual(said.get("error", {}).get("code"), refuses and refuses.name)
            *lost, answered, other = self.between.searches
            self.assertGreaterEqual(len(lost), 3)
            self.assertEqual(set(lost), {answered})
            self.assertNotEqual(other, answered)  # a search after an answer is a new one
            self.assertEqual(len(self.service.charges("colours")), spent + (2 if scheme == "joint" else 0))

    def test_answer_that_nobody_waited_for_is_kept_for_the_next_search_and_charged_once(self):
        inside = self.enter()
        shown = self.open_collection(inside, "colours")
        address = f"{inside}api/ask?{shown}"
        for scheme, other in (("joint", "encrypted"), ("encrypted", "joint")):
            spent = len(self.service.charges("colours"))
            self.between.searches.clear()
            target = self.pick(inside, shown)
            while self.between.has_search.acquire(blocking=False):
                pass
            self.between.may_go_on.clear()
            connection = http.client.HTTPConnection(self.host, timeout=60)
            connection.request("POST", address, json.dumps({"target": target, "scheme": scheme, "answers": 0}), self.mine)
            self.assertTrue(self.between.has_search.acquire(timeout=60))
            connection.close()
            self.between.may_go_on.set()
            kept = [self.ask(inside, shown, scheme, target) for _ in range(2)]
            self.assertEqual((len(self.between.searches), len(self.service.charges("colours"))),
                             (1, spent + (scheme == "joint")))
            self.assertEqual(kept[0], kept[1])
            self.assertEqual((kept[0][0], kept[0][1]["answer"]["scheme"]), (200, scheme))
            # Another scheme is another search, and so is one after the answer has come.
            self.assertEqual(self.ask(inside, shown, other, target)[1]["answers"], 2)
            self.assertEqual(self.ask(inside, shown, other, target, 2)[1]["answers"], 3)
            self.assertEqual(len(self.between.searches), 3)

    def test_spent_budget_has_a_code_of_its_own(self):
        inside = self.enter()
        shown = self.open_collection(inside, "things")
        row = vectors(1)[0]
        text = ",".join(map(str, row[0])).encode()
        _, picked = self.request("POST", f"{inside}api/target?name=row.csv&row=0&{shown}", text, **self.mine)
        target = json.loads(picked)["target"]
        codes = [self.ask(inside, shown, "cells", target, i)[1].get("error", {}).get("code") for i in range(3)]
        self.assertEqual(codes, [None, None, "SPENT"])
        self.assertEqual(self.service.charges("things"), [2, 2])

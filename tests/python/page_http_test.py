"""HTTP of `privatemail page` without a browser: queries, and what they must not spend. local_server_test.cc has the requests that it refuses."""

import http.client
import json
import pathlib
import re
import subprocess
import tempfile
import threading
import unittest

from page_service import COLOURS, LOOPBACK, Page, Service, png

RED = png(COLOURS["red"], 5)


class PageHttpTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="privatemail_http_")))
        cls.service = Service(cls.folder)
        cls.addClassCleanup(cls.service.stop)

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

    def ask(self, inside, shown, scheme="joint", epsilon=2.):
        _, picked = self.request("POST", f"{inside}api/target?name=red.png&{shown}", RED, **self.mine)
        asked = {"target": json.loads(picked)["target"], "scheme": scheme, "epsilon": epsilon, "payloads": False}
        answer, body = self.request("POST", f"{inside}api/ask?{shown}", json.dumps(asked).encode(), **self.mine)
        return answer.status, json.loads(body)

    def test_unknown_collection_ends_the_program(self):
        ended = subprocess.run([*self.service.command, "page", "--collection", "absent", "--no-browser"],
                               capture_output=True, text=True, timeout=60)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("absent", ended.stderr)

    def test_query_stays_on_loopback(self):
        inside = self.enter()
        for path in ("", "page.js", "api/collections"):
            self.assertEqual(self.request("GET", inside + path, **self.mine)[0].status, 200, path)
        shown = self.open_collection(inside, "colours")
        peers, done = set(), threading.Event()

        def watch():
            while not done.wait(.002):
                peers.update(self.page.peers())

        watcher = threading.Thread(target=watch)
        watcher.start()
        spent = len(self.service.charges("colours"))
        try:
            status, answer = self.ask(inside, shown)
        finally:
            done.set()
            watcher.join()
        self.assertEqual((status, len(answer["matches"])), (200, 8))
        self.assertEqual(answer["seen"]["releases"][0]["name"], "red")
        self.assertEqual(answer["seen"]["releases"][0]["own"], sorted(COLOURS).index("red"))
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
        _, picked = self.request("POST", f"{inside}api/target?name=red.png&{first}", RED, **self.mine)
        target = json.loads(picked)["target"]
        second = self.open_collection(inside, "things")
        spent = [len(self.service.charges(name)) for name in ("colours", "things")]
        asked = {"target": target, "scheme": "joint", "epsilon": 2, "payloads": False}
        for method, path, body in (("POST", "api/ask?", json.dumps(asked).encode()), ("GET", "api/budget?", None),
                                   ("POST", "api/target?name=red.png&", RED),
                                   ("GET", f"api/nearest?target={target}&", None)):
            answer, said = self.request(method, inside + path + first, body, **self.mine)
            self.assertEqual(answer.status, 422, path)
            self.assertIn("another tab has opened collection things", json.loads(said)["error"]["message"])
        answer, said = self.request("POST", f"{inside}api/ask?{second}", json.dumps(asked).encode(), **self.mine)
        self.assertEqual(answer.status, 400)
        self.assertIn("pick the picture or row again", json.loads(said)["error"]["message"])
        answer, _ = self.request("GET", f"{inside}api/nearest?target={target + 1}&{second}", **self.mine)
        self.assertEqual(answer.status, 422)
        self.assertEqual([len(self.service.charges(name)) for name in ("colours", "things")], spent)

    def test_targets_to_compare_with_are_independent_of_the_target(self):
        """Else they would tell which class it is not. False alarms: (5/6)^60 = 2e-5."""
        inside = self.enter()
        shown = self.open_collection(inside, "colours")
        drawn = [[one["own"] for one in self.ask(inside, shown, epsilon=.05)[1]["seen"]["releases"]] for _ in range(30)]
        self.assertTrue(any(own in others for own, *others in drawn), drawn)

"""The JavaScript package in Node and in headless Chromium, and the C example, against a daemon's HTTP endpoint.

Node and the browser reach the daemon through a server of this process, as through nginx: it serves the files of
pages, records each call, and can change answers. With arguments, GALLERY.npy TARGETS.npy, it measures.
"""

import http.client
import http.server
import json
import mimetypes
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

import numpy as np

from browser import Browser, find_browser
from page_service import start_daemon, vectors

SEARCH = "/privatemail.v1.EncryptedService/SearchEncrypted"
TESTS = pathlib.Path(__file__).parent.parent / "js"
ROOT = TESTS.parent.parent
EXAMPLE = ROOT / "client/js/example"
PHOTOS = ROOT / "deploy/demo/photos"
MODEL = ROOT / "deploy/demo/mobilenet_v2_imagenet_128px_features.onnx"
PACKAGE = pathlib.Path(os.environ.get("PRIVATEMAIL_JS", "/nowhere"))
TIE = 5e-4  # of a cosine
ITEMS, TARGETS, TRACED = 8000, 200, 500


class Front(http.server.ThreadingHTTPServer):
    """Files of `folders`, by the first part of their path, and a proxy for calls."""

    daemon_threads = True

    def __init__(self, target, folders):
        super().__init__(("127.0.0.1", 0), Handler)
        self.target, self.folders = urllib.parse.urlsplit(target).netloc, folders
        self.calls, self.change, self.failures = [], None, 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def take_calls(self):
        """(path, request, response, arrival, end) of each since the last time."""
        calls, self.calls = self.calls, []
        return calls


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, kind, body):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        _, first, rest = (urllib.parse.unquote(self.path.split("?")[0]) + "/").split("/", 2)
        path = self.server.folders.get(first, pathlib.Path("/nowhere")) / rest.rstrip("/")
        if not path.is_file():
            return self.answer(404, "text/plain", b"")
        kind = {".mjs": "text/javascript", ".wasm": "application/wasm"}.get(path.suffix)
        self.answer(200, kind or mimetypes.guess_type(path)[0] or "application/octet-stream", path.read_bytes())

    def do_POST(self):
        arrived = time.monotonic()
        body = self.rfile.read(int(self.headers["Content-Length"]))
        front = self.server
        if front.failures:
            front.failures -= 1
            front.calls.append((self.path, body, b"", arrived, time.monotonic()))
            return self.answer(503, "application/json", b'{"code":"unavailable","message":"not now"}')
        connection = http.client.HTTPConnection(front.target)
        kept = {name: self.headers[name] for name in ("Content-Type", "Authorization") if name in self.headers}
        connection.request("POST", self.path, body, kept)
        response = connection.getresponse()
        answer = response.read()
        connection.close()
        if front.change and self.path == SEARCH:
            answer = front.change(answer)
        front.calls.append((self.path, body, answer, arrived, time.monotonic()))
        self.answer(response.status, response.headers["Content-Type"], answer)


def with_scores(answer, change):
    """A stream of answers whose last part, the scores of one query, is changed in place."""
    answer, at = bytearray(answer), 0
    while answer[at] == 0:
        size = struct.unpack(">I", answer[at + 1:at + 5])[0]
        at += 5 + size
        start = at - size % 9216 if size < 9216 else at - size // 9216 * 9216
    answer[start:at] = change(bytes(answer[start:at]))
    return bytes(answer)


LIES = {"honest": None, "zero": lambda answer: with_scores(answer, lambda scores: bytes(len(scores))),
        "random": lambda answer: with_scores(answer, lambda scores: os.urandom(len(scores)))}


class Service:
    """A daemon with the collection "things", whose rows are `gallery`, and a front."""

    def __init__(self, gallery, *options):
        self.folder = tempfile.TemporaryDirectory(prefix="javascript_test_")
        self.path = pathlib.Path(self.folder.name)
        self.daemon, told = start_daemon(self.path / "data", "--http-listen", "127.0.0.1:0", *options)
        self.key_file = self.path / "data/admin.key"
        self.http = told["RPCs over HTTP:"]
        self.command = [os.environ["PRIVATEMAIL"], "--server", told["listening on"], "--trust",
                        told["trust this server with: --trust"], "--key-file", self.key_file, "--state",
                        self.path / "state"]
        np.save(self.path / "gallery.npy", gallery)
        self.run("collection", "create", "things")
        self.run("ingest", "things", "--vectors", self.path / "gallery.npy")
        self.front = Front(self.http, {"package": PACKAGE, "tests": TESTS})

    def run(self, *arguments):
        done = subprocess.run([*self.command, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def found_by_command_line(self, targets, k):
        np.save(self.path / "asked.npy", targets)
        told = self.run("--json", "query", "things", "--vectors", self.path / "asked.npy", "-k", str(k))
        return [json.loads(line)["matches"] for line in told.splitlines()]

    def found_by_node(self, targets, k=8):
        np.save(self.path / "targets.npy", targets.astype(np.float32))
        done = subprocess.run(["node", TESTS / "search.mjs", PACKAGE, self.front.url, self.key_file, "things",
                               self.path / "targets.npy", str(k), str(len(targets))],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def found_by_browser(self, browser, targets, k=8):
        browser.open(self.front.url + "/tests/search.html")
        browser.wait_for("window.run !== undefined")
        key = self.key_file.read_text().strip()
        browser.value_of(f"run({json.dumps(key)}, 'things', {json.dumps(targets.tolist())}, {k}); 0")
        browser.wait_for("window.answer !== undefined")
        return json.loads(browser.value_of("window.answer"))

    def close(self):
        self.front.shutdown()
        self.front.server_close()
        self.daemon.terminate()
        self.daemon.wait()
        self.daemon.stdout.close()
        self.folder.cleanup()


def differences(expected, found):
    """Ranks at which other items stand than expected, and not because of a tie."""
    return sum(one["id"] != other["id"] and abs(one["similarity"] - other["similarity"]) > TIE
               for matches, result in zip(expected, found, strict=True)
               for one, other in zip(matches, result["matches"], strict=True))


def check_trace(test, service, search, targets):
    """Number, order and sizes of calls, and the least gap before a search, for all targets and answers."""
    traces = set()
    for lie, change in LIES.items():
        service.front.change = change
        service.front.take_calls()
        results = search(targets)
        calls = service.front.take_calls()
        service.front.change = None
        test.assertEqual(len(results), len(targets), lie)
        test.assertEqual(len(calls), 2 * len(targets), lie)
        for at in range(2, len(calls), 2):  # the first search brings keys and table
            traces.add(tuple((path, len(request), len(response)) for path, request, response, _, _ in calls[at:at + 2]))
            test.assertGreaterEqual(calls[at][3] - calls[at - 1][4], .01, lie)
    test.assertEqual(len(traces), 1)


class NodeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.service = Service(vectors(ITEMS)[0])
        cls.addClassCleanup(cls.service.close)

    def test_finds_what_the_command_line_finds(self):
        targets = vectors(TARGETS, seed=5)[0]
        found = self.service.found_by_node(targets)
        self.assertEqual(differences(self.service.found_by_command_line(targets, 8), found), 0)
        self.assertEqual(found[0]["guarantee"]["bits"], 128)

    def test_number_order_and_sizes_of_calls_are_equal(self):
        check_trace(self, self.service, self.service.found_by_node, vectors(TRACED, seed=6)[0])

    def test_retries_send_the_same_bytes(self):
        self.service.front.take_calls()
        self.service.front.failures = 2
        result, = self.service.found_by_node(vectors(1)[0])
        self.assertEqual(result["matches"][0]["id"], "0")
        calls = self.service.front.take_calls()
        self.assertEqual([call[1] for call in calls[:3]], 3 * [calls[0][1]])
        answers = []

        def fail_once(answer):
            answers.append(answer)
            return answer if len(answers) > 1 else answer[:-20]  # ends early
        self.service.front.change = fail_once
        self.addCleanup(setattr, self.service.front, "change", None)
        result, = self.service.found_by_node(vectors(1)[0])
        calls = self.service.front.take_calls()
        self.assertEqual(len(calls), 3)
        self.assertEqual(calls[1][1], calls[2][1])
        self.assertEqual(result["matches"][0]["id"], "0")

    def test_malformed_answers_are_refused_and_not_repeated(self):
        def damaged(answer):  # in the last byte of its second message, the table's first block
            first = 5 + struct.unpack(">I", answer[1:5])[0]
            last = first + 4 + struct.unpack(">I", answer[first + 1:first + 5])[0]
            return answer[:last] + bytes([answer[last] ^ 1]) + answer[last + 1:]
        self.service.front.change = damaged
        self.addCleanup(setattr, self.service.front, "change", None)
        self.service.front.take_calls()
        result, = self.service.found_by_node(vectors(1)[0])
        self.assertRegex(result["error"], "^DATA_LOSS: ")
        self.assertEqual(len(self.service.front.take_calls()), 2)  # the description and the search

    def test_a_refusal_of_the_server_is_told(self):
        self.service.key_file, key_file = self.service.path / "wrong.key", self.service.key_file
        self.addCleanup(setattr, self.service, "key_file", key_file)
        self.service.key_file.write_text("pm_wrong")
        result, = self.service.found_by_node(vectors(1)[0])
        self.assertRegex(result["error"], "^UNAUTHENTICATED: ")


class CExampleTest(unittest.TestCase):
    def test_asks_and_ranks_with_the_installed_library(self):
        service = Service(vectors(3000)[0])
        self.addCleanup(service.close)
        installed = service.path / "installed"
        subprocess.run(["cmake", "--install", os.environ["BUILD"], "--component", "c", "--prefix", installed],
                       check=True, capture_output=True)
        library = next(installed.glob("lib/**/libprivatemail_encrypted.so")).parent
        subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{installed}/include",
                        ROOT / "client/c/example.c", f"-L{library}", "-lprivatemail_encrypted", "-o", service.path / "example"],
                       check=True)
        target = vectors(1, seed=7)[0]
        done = subprocess.run(
            ["valgrind", "-q", "--leak-check=full", "--error-exitcode=9", service.path / "example", service.http,
             service.key_file, "things", "5"], input=" ".join(map(str, target[0])),
            env={**os.environ, "LD_LIBRARY_PATH": library}, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        found = [{"matches": [{"id": name, "similarity": float(value)} for name, value in
                              map(str.split, done.stdout.splitlines())]}]
        self.assertEqual(differences(service.found_by_command_line(target, 5), found), 0)


@unittest.skipIf(find_browser() is None, "no browser is installed")
class ChromiumTest(unittest.TestCase):
    def setUp(self):
        self.service = Service(vectors(ITEMS)[0])
        self.addCleanup(self.service.close)
        self.browser = self.enterContext(Browser(find_browser()))

    def search(self, targets):
        answer = self.service.found_by_browser(self.browser, targets)
        self.assertIn("results", answer, answer)
        return answer["results"]

    def test_searches_keep_the_table_and_show_nothing(self):
        targets = vectors(TARGETS, seed=5)[0]
        self.assertEqual(differences(self.service.found_by_command_line(targets, 8), self.search(targets)), 0)
        first = len(self.service.front.take_calls()[1][2])
        self.search(targets[:1])  # by another page, whose keys are new; the table is in IndexedDB
        self.assertLess(len(self.service.front.take_calls()[1][2]), first - 10_000)
        check_trace(self, self.service, self.search, vectors(TRACED, seed=6)[0])


@unittest.skipIf(find_browser() is None or not all(map(shutil.which, ("npm", "nginx"))), "needs a browser, npm and nginx")
class ExampleTest(unittest.TestCase):
    """The page of client/js/example behind nginx."""

    def setUp(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.service = Service(vectors(10)[0], "--allowed-origins", f"http://127.0.0.1:{self.port}")
        self.addCleanup(self.service.close)
        self.folder = self.service.path
        for kind in sorted((PHOTOS / "gallery").iterdir())[:12]:
            for picture in sorted(kind.iterdir())[:6]:
                (self.folder / "photos" / kind.name).mkdir(parents=True, exist_ok=True)
                shutil.copy(picture, self.folder / "photos" / kind.name)
        self.service.run("collection", "create", "fruit", "--model", MODEL)
        self.service.run("ingest", "fruit", "--images", self.folder / "photos", "--model", MODEL)
        for file in ("package.json", "package-lock.json"):
            shutil.copy(EXAMPLE / file, self.folder)
        subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], cwd=self.folder, check=True)
        subprocess.run([EXAMPLE / "install.sh", self.folder / "site", PACKAGE, self.folder / "node_modules/onnxruntime-web",
                        MODEL, self.folder / "photos"], check=True)
        conf = (EXAMPLE / "nginx.conf").read_text()
        conf = re.sub("    ssl_.*\n", "", conf).replace("8443 ssl http2", f"127.0.0.1:{self.port}").replace(
            "/srv/photographs", str(self.folder / "site")).replace("http://127.0.0.1:8080", self.service.http)
        (self.folder / "nginx.conf").write_text(f"""daemon off; error_log error.log; pid nginx.pid; events {{}}
            http {{ include /etc/nginx/mime.types; access_log access.log; client_body_temp_path body; {conf} }}""")
        # The master alone: workers have no privilege to read the folder.
        self.nginx = subprocess.Popen(["nginx", "-p", self.folder, "-c", self.folder / "nginx.conf",
                                       "-g", "master_process off;"])
        self.addCleanup(self.nginx.wait)
        self.addCleanup(self.nginx.terminate)

    def wait_for_nginx(self):
        until = time.monotonic() + 60
        while True:
            try:
                return socket.create_connection(("127.0.0.1", self.port)).close()
            except ConnectionRefusedError:
                self.assertLess(time.monotonic(), until)
                time.sleep(.05)

    def test_finds_what_the_command_line_finds_and_loads_nothing_for_a_match(self):
        picture = min((PHOTOS / "held-back").glob("*/*.jpg"))
        self.wait_for_nginx()
        with Browser(find_browser()) as browser:
            browser.open(f"http://127.0.0.1:{self.port}/index.html")
            browser.wait_for("document.getElementById('status').textContent.startsWith('72 photographs are loaded')")
            browser.value_of(f"document.getElementById('key').value = {json.dumps(self.service.key_file.read_text())}; 0")
            browser.choose_file("#file", picture)
            browser.wait_for("!document.getElementById('search').disabled")
            before = len((self.folder / "access.log").read_text().splitlines())
            browser.click("#search")
            browser.wait_for("document.querySelectorAll('#matches img[src^=blob]').length === 8")
            found = json.loads(browser.value_of(
                "JSON.stringify([...document.querySelectorAll('#matches img')].map((image) => image.alt))"))
            self.assertFalse([event for event in browser.events if event["method"] == "Runtime.exceptionThrown"])
        asked = [line.split('"')[1].split()[1] for line in (self.folder / "access.log").read_text().splitlines()[before:]]
        self.assertEqual([path for path in asked if not path.startswith("/privatemail/")],
                         ["/privatemail.v1.RetrievalService/GetCollection", SEARCH])
        expected = [match["id"] for match in json.loads(self.service.run(
            "--json", "query", "fruit", "--image", picture, "--model", MODEL, "-k", "8"))["matches"]]
        # Browsers shrink pictures otherwise than OpenCV does.
        self.assertGreaterEqual(len(set(found) & set(expected)), 6, (found, expected))
        done = subprocess.run([self.folder / "node_modules/.bin/tsc", "--noEmit", "--strict", "--module", "nodenext",
                               "--lib", "es2022,dom", PACKAGE / "index.d.ts"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)


def measure(gallery, targets):
    service = Service(np.load(gallery))
    targets = np.load(targets)
    try:
        found = service.found_by_node(targets[:TARGETS])
        expected = service.found_by_command_line(targets[:TARGETS], 8)
        print(f"n {len(np.load(gallery))} d {targets.shape[1]} k 8; Node: {differences(expected, found)} of 1600 ranks differ")
        show("Node", found)
        with Browser(find_browser()) as browser:
            answer = service.found_by_browser(browser, targets[:TARGETS])
            print(f"Chromium: {differences(expected, answer['results'])} of 1600 ranks differ, longest pause of the page "
                  f"{answer['pause']:.0f} ms")
            show("Chromium", answer["results"])
            for name, search in (("Node", service.found_by_node),
                                 ("Chromium", lambda t: service.found_by_browser(browser, t)["results"])):
                test = unittest.TestCase()
                check_trace(test, service, search, targets[:TRACED])
                print(f"{name}: {TRACED} targets, three kinds of answers: one trace")
    finally:
        service.close()


def show(name, results):
    first, rest = results[0]["times"], [result["times"] for result in results[1:]]
    for part in ("encryption", "ranking"):
        values = [times[part] for times in rest]
        print(f"{name} {part}: {first[part]:.1f} ms with keys, then median {np.median(values):.1f}, most {max(values):.1f} ms")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        measure(*sys.argv[1:])
    else:
        unittest.main()

"""Calls a daemon's RPCs over HTTP as no official client would: wrong, hostile, slow and cut requests, and web pages.

usage: http_test.py PRIVATEMAILD PRIVATEMAIL SOURCE_FOLDER OPENAPI
"""

import base64
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest
from concurrent import futures

import nginx

PRIVATEMAILD, PRIVATEMAIL, SOURCE, OPENAPI = *sys.argv[1:3], pathlib.Path(sys.argv[3]), pathlib.Path(sys.argv[4])
COLLECTIONS, KEYS = "/privatemail.v1.CollectionsService/", "/privatemail.v1.KeysService/"
RETRIEVAL = "/privatemail.v1.RetrievalService/"
ORIGIN = "https://page.example"
SECONDS = 30


class Daemon:
    def __init__(self, *options):
        self.folder = tempfile.TemporaryDirectory(prefix="privatemail_http_")  # pylint: disable=consider-using-with
        data = self.folder.name + "/data"
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [PRIVATEMAILD, "--data-dir", data, "--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0", *options],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in self.process.stdout:
            if line.startswith("RPCs over HTTP: http://"):
                self.port = int(line.rsplit(":", 1)[1])
            if line.startswith("listening on "):
                self.grpc_port = int(line.rsplit(":", 1)[1])
                break
        self.key = pathlib.Path(data, "admin.key").read_text(encoding="ascii").strip()
        self.audit_log = pathlib.Path(data, "audit.jsonl")

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.folder.cleanup()

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), SECONDS)

    def head(self, path, size=None, key=None, kind="application/json", method="POST", more=""):
        length = "" if size is None else f"Content-Length: {size}\r\n"
        return (f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\n{length}{more}"
                f"Authorization: Bearer {key or self.key}\r\n\r\n").encode("latin-1")

    def raw(self, request):
        """Status, header and body of the response to bytes."""
        with self.connect() as connection:
            connection.sendall(request)
            return receive(connection)

    def call(self, path, body, **options):
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        status, head, answer = self.raw(self.head(path, len(text), **options) + text)
        return status, head, json.loads(answer) if answer[:1] == b"{" else answer

    def stream(self, path, body, **options):
        """Messages and the end of a stream of answers."""
        status, _, answer = self.raw(self.head(path, len(body), kind="application/connect+json", **options) + body)
        assert status == 200, (status, answer)
        messages = []
        while True:
            flags, size = answer[0], int.from_bytes(answer[1:5], "big")
            message, answer = json.loads(answer[5:5 + size]), answer[5 + size:]
            if flags == 2:
                assert not answer
                return messages, message
            messages.append(message)

    def audited(self, rpc):
        """Waits for the next line."""
        for _ in range(SECONDS * 20):
            lines = [json.loads(line) for line in self.audit_log.read_text(encoding="utf-8").splitlines()]
            found = [line for line in lines if line.get("rpc") == rpc]
            if found:
                return found[-1]
            time.sleep(0.05)
        raise AssertionError(f"{rpc} was not audited")


def receive(connection):
    received = b""
    while b"\r\n\r\n" not in received or received.startswith(b"HTTP/1.1 100"):
        if received.startswith(b"HTTP/1.1 100") and b"\r\n\r\n" in received:
            received = received.split(b"\r\n\r\n", 1)[1]
            continue
        more = connection.recv(1 << 16)
        if not more:
            raise ConnectionError(f"closed after {received!r}")
        received += more
    head, body = received.split(b"\r\n\r\n", 1)
    text = head.decode("latin-1").lower()
    if "transfer-encoding: chunked" in text:
        while not body.endswith(b"\r\n0\r\n\r\n"):
            body += connection.recv(1 << 16)
        whole, rest = b"", body
        while (size := int(rest.split(b"\r\n", 1)[0], 16)) > 0:
            rest = rest.split(b"\r\n", 1)[1]
            whole, rest = whole + rest[:size], rest[size + 2:]
        body = whole
    elif match := re.search(r"content-length: (\d+)", text):
        while len(body) < int(match[1]):
            body += connection.recv(1 << 16)
    return int(head.split()[1]), text, body


def envelope(message, flags=0, size=None):
    text = message if isinstance(message, bytes) else json.dumps(message).encode()
    return bytes([flags]) + (len(text) if size is None else size).to_bytes(4, "big") + text


def item(number, **more):
    return {"id": f"item-{number}", "features": [number, 1, 2], **more}


class HttpTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon("--allowed-origins", "https://other.example," + ORIGIN, "--trusted-proxies", "192.0.2.7")
        cls.create(cls.daemon, "moths")

    @classmethod
    def tearDownClass(cls):
        cls.daemon.stop()

    @staticmethod
    def create(daemon, name):
        status, _, answer = daemon.call(COLLECTIONS + "CreateCollection",
                                        {"name": name, "metric": "METRIC_COSINE", "extractor": "vectors"})
        assert status == 200, answer

    def expect(self, outcome, code, status, part=""):
        actual, _, answer = outcome
        self.assertEqual((actual, answer["code"]), (status, code), answer)
        self.assertIn(part, answer["message"])

    def test_requests_that_are_wrong(self):
        count = COLLECTIONS + "CountItems"
        call, moths = self.daemon.call, {"collection": "moths"}
        for key in ("pm_junk", " ", "pm_" + "0" * 12 + "_" + "A" * 43):
            self.expect(call(count, moths, key=key), "unauthenticated", 401)
        self.expect(call(count, moths, more=f"Authorization: Bearer {self.daemon.key}\r\n"), "unauthenticated", 401)
        for text in ("\u00e9", "a\tb", "a\x01b"):
            with self.subTest(text):
                status, _, _ = call(count, moths, key=text)
                self.assertEqual(status, 400)
        for body in (b"", b"[]", b"{", b"nonsense", b'{"colection":"moths"}', b'{"collection":7}', b'{"collection":"\xff"}',
                     b'{"a":' * 100_000, b'[' * 4_000_000, b'{"collection":"' + b"\\u0000" * 600_000):
            self.expect(call(count, body), "invalid_argument", 400)
        self.expect(call(RETRIEVAL + "Retrieve", {"collection": "moths", "fingerprint": "%%%"}), "invalid_argument", 400)
        self.expect(call(count, b"\x0a\xff\xff\xff\xff\x0f", kind="application/proto"), "invalid_argument", 400)
        self.expect(call(count, moths, more="Connect-Timeout-Ms: soon\r\n"), "invalid_argument", 400)
        self.expect(call(count, moths, more="Connect-Protocol-Version: 2\r\n"), "invalid_argument", 400)
        self.expect(call(count, moths, more="Content-Encoding: gzip\r\n"), "unimplemented", 501, "identity")
        for path in ("/", "//", "/x", COLLECTIONS, COLLECTIONS + "Nothing", count + "?x", count + "/", "/" + "a." * 5000,
                     "/privatemail.v1.CollectionsService.CountItems", "/grpc.health.v1.Health/../Check"):
            self.expect(call(path, moths), "unimplemented", 501)
        for method, kind, expected, header in (
                ("GET", "application/json", 405, "allow: post"), ("POST", "text/plain", 415, "accept-post: application/json"),
                ("POST", "application/connect+json", 415, ""), ("POST", "application/grpc", 415, "")):
            status, head, _ = call(count, moths, method=method, kind=kind)
            self.assertEqual(status, expected)
            self.assertIn(header, head)
        status, head, _ = call(COLLECTIONS + "BuildEmbedding", moths)
        self.assertEqual((status, "accept-post: application/connect+json" in head), (415, True))
        self.assertEqual(call("/grpc.health.v1.Health/Check", {}, key="none")[2], {"status": "SERVING"})

    def test_http_that_is_wrong(self):
        whole = self.daemon.head(COLLECTIONS + "CountItems", 2)
        for request, expected in (
                (b"nonsense\r\n\r\n", 400), (b"POST / HTTP/1.0\r\n\r\n", 505), (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
                (whole.replace(b"Host: x", b"Transfer-Encoding: chunked") + b"0\r\n\r\n", 400),
                (whole.replace(b"Host: x", b"Content-Length: 3") + b"{}", 400),
                (self.daemon.head(COLLECTIONS + "CountItems", more="Transfer-Encoding: chunked, gzip\r\n"), 400),
                (self.daemon.head(COLLECTIONS + "CountItems", more="Transfer-Encoding: xchunked\r\n"), 400),
                (whole.replace(b"Host: x", b"Content-Length: -1"), 400),
                (whole.replace(b"Host: x", b"Host : x\r\n folded: y") + b"{}", 400),
                (whole.replace(b"Host: x", b"Host: " + b"x" * 20_000), 431),
                (whole.replace(b"Host: x", b"A: b\r\n" * 5000), 431)):
            status, head, _ = self.daemon.raw(request)
            self.assertEqual(status, expected, request[:60])
            self.assertIn("connection: close", head)

    def test_requests_follow_each_other_on_a_connection(self):
        chunked = self.daemon.head(COLLECTIONS + "CountItems", more="Transfer-Encoding: chunked\r\n")
        with self.daemon.connect() as connection:
            for _ in range(3):
                connection.sendall(chunked + b'8;x=y\r\n{"collec\r\n10\r\ntion":"nowhere"}\r\n0\r\nTrailer: 1\r\n\r\n')
                self.assertEqual(receive(connection)[0], 404)
            one = b'{"collection":"nowhere"}'
            connection.sendall((self.daemon.head(COLLECTIONS + "CountItems", len(one)) + one) * 50)
            received = b""
            while received.count(b"HTTP/1.1 404") < 50:
                received += connection.recv(1 << 16)

    def test_bodies_beyond_the_limits(self):
        upsert, size = COLLECTIONS + "UpsertItems", 100_000_000
        self.expect(self.daemon.call(upsert, b"{" + b" " * size), "resource_exhausted", 429, "4194304")
        with self.daemon.connect() as connection:  # without a size
            connection.sendall(self.daemon.head(upsert, kind="application/proto", more="Transfer-Encoding: chunked\r\n"))
            try:
                for _ in range(size // (1 << 20)):
                    connection.sendall(b"100000\r\n" + bytes(1 << 20) + b"\r\n")
            except OSError:
                pass
            status, _, answer = receive(connection)
        self.assertEqual((status, json.loads(answer)["code"]), (429, "resource_exhausted"))
        self.assertEqual(self.daemon.raw(self.daemon.head(upsert, size, more="Expect: 100-continue\r\n"))[0], 429)
        first = envelope({"collection": "moths", "items": [item(1)]})
        for body, code in ((envelope(b"", size=size), "resource_exhausted"), (first + envelope(b"", size=5 << 20),
                                                                              "resource_exhausted")):
            messages, end = self.daemon.stream(upsert, body)
            self.assertEqual((messages, end["error"]["code"]), ([], code), end)

    def test_chunk_extensions_without_an_end(self):
        check = "/grpc.health.v1.Health/Check"
        with self.daemon.connect() as connection, self.assertRaises(OSError):
            connection.sendall(self.daemon.head(check, more="Transfer-Encoding: chunked\r\n") + b"5;")
            for _ in range(200):
                connection.sendall(b"e" * (1 << 20))

    def test_envelopes(self):
        self.create(self.daemon, "streams")
        upsert = COLLECTIONS + "UpsertItems"
        batch = [envelope({"collection": "streams", "items": [item(number)]}) for number in range(3)]
        messages, end = self.daemon.stream(upsert, b"".join(batch))
        self.assertEqual((messages[0]["inserted"], end), ("3", {}))
        for body, part in ((batch[0][:3], "within an envelope"), (batch[0][:-1], "within a message"),
                           (envelope({}, flags=1), "flags"), (envelope({}, flags=2), "flags"), (envelope({}, flags=128), "flags"),
                           (b"\0\0\0\0\1{", "JSON"), (b"nonsense", "flags")):
            messages, end = self.daemon.stream(upsert, body)
            self.assertEqual((messages, end["error"]["code"]), ([], "invalid_argument"))
            self.assertIn(part, end["error"]["message"])
        for body in (b"", envelope({"collection": "streams"}) * 2):
            messages, end = self.daemon.stream(COLLECTIONS + "SnapshotCollection", body)
            self.assertEqual((messages, end["error"]["code"]), ([], "invalid_argument"))
        messages, end = self.daemon.stream(COLLECTIONS + "SnapshotCollection", envelope({"collection": "streams"}))
        self.assertIn(b"item-2", b"".join(base64.b64decode(one["data"]) for one in messages))

    def test_cut_connections_cancel_their_calls(self):
        self.create(self.daemon, "cut")
        upsert = COLLECTIONS + "UpsertItems"
        with self.daemon.connect() as connection:
            connection.sendall(self.daemon.head(upsert, 1000) + b'{"collection":"cut","items":[')
        self.assertEqual(self.daemon.audited("UpsertItems")["code"], "CANCELLED")
        # A restore that waits for its next message.
        with self.daemon.connect() as connection:
            connection.sendall(self.daemon.head(COLLECTIONS + "RestoreCollection", 10_000, kind="application/connect+json")
                               + envelope({"collection": "cut2", "data": "AAAA"}))
        self.assertEqual(self.daemon.audited("RestoreCollection")["code"], "CANCELLED")
        # An answer that is not taken to its end.
        many = [item(number, payload=json.dumps("x" * 1000)) for number in range(3000)]
        self.assertEqual(self.daemon.call(upsert, {"collection": "cut", "items": many})[2]["inserted"], "3000")
        body = envelope({"collection": "cut"})
        with self.daemon.connect() as connection:
            connection.sendall(self.daemon.head(COLLECTIONS + "SnapshotCollection", len(body), kind="application/connect+json")
                               + body)
            connection.recv(1000)
        self.assertEqual(self.daemon.audited("SnapshotCollection")["code"], "CANCELLED")

    def test_web_pages(self):
        count, moths = COLLECTIONS + "CountItems", {"collection": "moths"}
        preflight = "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization\r\n"
        for origin, status in ((ORIGIN, 200), ("https://page.example.org", 403), ("null", 403), ("https://PAGE.example", 403)):
            got, head, _ = self.daemon.call(count, b"", method="OPTIONS", more=f"Origin: {origin}\r\n" + preflight)
            self.assertEqual(got, status, origin)
            self.assertEqual(f"access-control-allow-origin: {ORIGIN}\r\n" in head, status == 200)
            self.assertNotIn("allow-credentials", head)
        got, head, _ = self.daemon.call(count, moths, more=f"Origin: {ORIGIN}\r\n")
        self.assertEqual((got, f"access-control-allow-origin: {ORIGIN}" in head, "vary: origin" in head), (200, True, True))
        got, head, _ = self.daemon.call(count, moths, key="junk", more=f"Origin: {ORIGIN}\r\n")
        self.assertEqual((got, f"access-control-allow-origin: {ORIGIN}" in head), (401, True))
        self.assertEqual(self.daemon.call(count, moths, more="Origin: https://evil.example\r\n")[0], 403)

    def test_nobody_spoofs_an_address(self):
        self.daemon.call(KEYS + "ListKeys", {}, more="X-Real-IP: 1.2.3.4\r\nX-Forwarded-For: 1.2.3.4\r\n"
                         "Gateway-Caller: ipv4:192.0.2.7:1\r\nForwarded: for=1.2.3.4\r\n")
        self.assertRegex(self.daemon.audited("ListKeys")["peer"], r"^ipv4:127\.0\.0\.1:\d+$")

    def test_idle_connections_leave_room_for_others(self):
        idle = [self.daemon.connect() for _ in range(1500)]
        for connection in idle[::3]:
            connection.sendall(b"POST / HTTP/1.1\r\nHost:")
        start = time.time()
        self.assertEqual(self.daemon.call(COLLECTIONS + "ListCollections", {})[0], 200)
        self.assertLess(time.time() - start, 5)
        for connection in idle:
            connection.close()


class SmallDaemonTest(unittest.TestCase):
    def setUp(self):
        # Three messages at a time, one of a key.
        self.daemon = Daemon("--memory", str(1 << 30), "--trusted-proxies", "127.0.0.1", "--drain-seconds", "5")

    def tearDown(self):
        self.daemon.stop()

    def test_slow_bodies_end_while_others_wait(self):
        keys = [self.daemon.call(KEYS + "CreateKey", {"name": name, "scopes": ["KEY_SCOPE_WRITE"]},
                                 more="X-Real-IP: 198.51.100.9\r\n")[2]["text"] for name in ("a", "b", "c", "d")]
        self.assertEqual(self.daemon.audited("CreateKey")["peer"], "198.51.100.9")
        slow = [self.daemon.connect() for _ in keys[:3]]
        for connection, key in zip(slow, keys):
            connection.sendall(self.daemon.head(COLLECTIONS + "CountItems", 100_000, key=key, more="Expect: 100-continue\r\n"))
            self.assertTrue(connection.recv(100).startswith(b"HTTP/1.1 100 "), "there is a place for it")
            connection.sendall(b"{")
        start = time.time()
        status, _, answer = self.daemon.call(COLLECTIONS + "CountItems", {"collection": "none"}, key=keys[3])
        self.assertEqual(status, 404, answer)
        self.assertLess(time.time() - start, 15)
        outcomes = []
        for connection in slow:
            connection.settimeout(2)
            try:
                status, _, body = receive(connection)
                outcomes.append((status, json.loads(body)["code"]))
            except OSError:
                pass
            connection.close()
        self.assertIn((429, "resource_exhausted"), outcomes)

    def test_drains_at_sigterm(self):
        HttpTest.create(self.daemon, "moths")
        upload = self.daemon.connect()
        body = json.dumps({"collection": "moths", "items": [item(1)]}).encode()
        upload.sendall(self.daemon.head(COLLECTIONS + "UpsertItems", len(body), more="Expect: 100-continue\r\n"))
        upload.recv(100)
        idle = self.daemon.connect()
        self.addCleanup(idle.close)
        self.addCleanup(upload.close)
        self.daemon.process.send_signal(signal.SIGTERM)
        try:
            self.assertEqual(idle.recv(1), b"", "idle connections are closed")
        except ConnectionResetError:
            pass
        with self.assertRaises(OSError):
            self.daemon.connect()
        upload.sendall(body)
        status, head, answer = receive(upload)
        self.assertEqual((status, json.loads(answer)["inserted"]), (200, "1"))
        self.assertEqual(self.daemon.process.wait(SECONDS), 0)


class NginxTest(unittest.TestCase):
    """gRPC and HTTP on one port."""

    def setUp(self):
        self.daemon = Daemon("--trusted-proxies", "127.0.0.1")
        folder = self.daemon.folder.name
        self.nginx, self.port = nginx.start(SOURCE / "deploy/nginx", folder, folder + "/data/tls/", self.daemon.grpc_port,
                                            self.daemon.port)
        self.tls = ssl.create_default_context(cafile=folder + "/data/tls/server.crt")
        self.daemon.connect = lambda: self.tls.wrap_socket(
            socket.create_connection(("127.0.0.1", self.port), SECONDS), server_hostname="localhost")

    def tearDown(self):
        self.nginx.terminate()
        self.nginx.wait()
        self.daemon.stop()

    def curl(self, *arguments):
        folder = self.daemon.folder.name
        done = subprocess.run(
            ["curl", "--silent", "--cacert", folder + "/data/tls/server.crt", "--header", "content-type: application/json",
             "--header", "authorization: Bearer " + self.daemon.key, "--write-out", "\n%{http_code} %{http_version}",
             *arguments], stdout=subprocess.PIPE, text=True, timeout=SECONDS, check=True)
        body, _, status = done.stdout.rpartition("\n")
        return status, json.loads(body)

    def test_serves_both(self):
        HttpTest.create(self.daemon, "moths")
        folder = self.daemon.folder.name
        listed = subprocess.run(
            [PRIVATEMAIL, "--server", f"localhost:{self.port}", "--ca", folder + "/data/tls/server.crt", "--key-file",
             folder + "/data/admin.key", "--state", folder + "/state", "collection", "list"],
            capture_output=True, text=True, timeout=SECONDS, check=True)
        self.assertIn("moths", listed.stdout)
        url = f"https://localhost:{self.port}"
        for flag, version in (("--http2", "2"), ("--http1.1", "1.1")):
            answer = self.curl(flag, "--data", '{"collection":"moths"}', url + COLLECTIONS + "CountItems")
            self.assertEqual(answer, ("200 " + version, {"items": "0"}))
        self.daemon.call(KEYS + "ListKeys", {}, more="X-Real-IP: 1.2.3.4\r\nX-Forwarded-For: 1.2.3.4\r\n")
        self.assertEqual(self.daemon.audited("ListKeys")["peer"], "127.0.0.1", "the address that nginx names")
        big = self.daemon.folder.name + "/big"
        pathlib.Path(big).write_bytes(b" " * 100_000_000)
        status, answer = self.curl("--http2", "--data-binary", "@" + big, url + COLLECTIONS + "CountItems")
        self.assertEqual((status, answer["code"]), ("429 2", "resource_exhausted"))
        with self.daemon.connect() as connection:
            connection.sendall(self.daemon.head(COLLECTIONS + "UpsertItems", 1000, kind="application/connect+json")
                               + envelope({"collection": "moths", "items": [item(1)]}))
            count = None
            while count != "1":
                status, _, answer = self.daemon.call(COLLECTIONS + "CountItems", {"collection": "moths"})
                self.assertEqual(status, 200, answer)
                count = answer["items"]
                time.sleep(0.05)
        self.assertEqual(self.daemon.audited("UpsertItems")["code"], "CANCELLED")

    def test_no_request_hides_in_another(self):
        hidden = self.daemon.head(KEYS + "ListKeys", 2) + b"{}"
        body = b'{"collection":"none"}'
        count = COLLECTIONS + "CountItems"
        for request in (
                self.daemon.head(count, len(body), more="Transfer-Encoding: chunked\r\n") + b"0\r\n\r\n" + hidden,
                self.daemon.head(count, more="Transfer-Encoding: xchunked\r\n") + hidden,
                self.daemon.head(count, more="Transfer-Encoding:\x0bchunked\r\n") + b"0\r\n\r\n" + hidden,
                self.daemon.head(count, 0, more=f"Content-Length: {len(hidden)}\r\n") + hidden,
                self.daemon.head(count, len(hidden), method="HEAD") + hidden,
                self.daemon.head(count, len(hidden), method="GET") + hidden,
                self.daemon.head(count, len(hidden), kind="text/plain") + hidden):
            with self.subTest(request):
                self.assertGreaterEqual(self.daemon.raw(request)[0], 400)
        # After all of them each call gets its own answer.
        for _ in range(20):
            self.assertEqual(self.daemon.call(count, json.loads(body))[0], 404)
        self.assertNotIn("ListKeys", self.daemon.audit_log.read_text(encoding="utf-8"))

    def test_answers_of_nginx_itself_are_errors_of_the_protocol(self):
        head = self.daemon.head(COLLECTIONS + "ListCollections", 2).replace(b"Authorization", b"X")
        held = [self.daemon.connect() for _ in range(20)]
        # A daemon that stands still lets nginx count all calls as running; it allows 16.
        self.daemon.process.send_signal(signal.SIGSTOP)
        for connection in held:
            connection.settimeout(60)
            connection.sendall(head + b"{")
        with futures.ThreadPoolExecutor(len(held)) as readers:
            answers = [readers.submit(receive, connection) for connection in held]
            next(futures.as_completed(answers))  # of nginx
            self.daemon.process.send_signal(signal.SIGCONT)
        codes = {(status, json.loads(body)["code"]) for status, _, body in (answer.result() for answer in answers)}
        for connection in held:
            connection.close()
        self.assertEqual(codes, {(401, "unauthenticated"), (429, "resource_exhausted")})
        self.daemon.process.kill()
        self.daemon.process.wait()
        status, head, answer = self.daemon.call(COLLECTIONS + "ListCollections", {})
        self.assertEqual((status, answer["code"]), (503, "unavailable"))
        self.assertIn("content-type: application/json", head)


class OpenApiTest(unittest.TestCase):
    def test_describes_every_rpc_and_message(self):
        text = OPENAPI.read_text(encoding="utf-8")
        description = json.loads(text)
        expected = set()
        for file in (SOURCE / "proto/privatemail/v1").glob("*.proto"):
            service = None
            for line in file.read_text(encoding="utf-8").splitlines():
                service = (re.match(r"service (\w+)", line) or [None, service])[1]
                if method := re.match(r"  rpc (\w+)", line):
                    expected.add(f"/privatemail.v1.{service}/{method[1]}")
        self.assertEqual(set(description["paths"]), expected)
        for name in re.findall(r'"\$ref": "#/components/schemas/(\w+)"', text):
            self.assertIn("type", description["components"]["schemas"][name])
        item_schema = description["components"]["schemas"]["Item"]["properties"]
        self.assertEqual(item_schema["features"]["items"]["type"], "number")
        self.assertIn("primary key", item_schema["id"]["description"])


if __name__ == "__main__":
    os.environ.pop("PYTHONPATH", None)
    unittest.main(argv=sys.argv[:1] + sys.argv[5:])

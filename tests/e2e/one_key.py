"""Strangers, one search key and the admin key of one collection against all other callers of nginx before a daemon.

usage: one_key.py CONFIGURATION PRIVATEMAILD PRIVATEMAIL PROTO_FOLDER [SECONDS [ATTACK...]]

Attacks of strangers (RFC 9113), implemented here, because no gRPC client does any of it: `stranger-resets` begins
calls and cancels them at once, `-headers` never ends a header, `-settings` sends nothing but settings, `-slow` opens
many connections that say little, `-holds` sends messages that do not end with a key that nobody made, `-parts` sends a
header in empty parts, `-fields` a header of nothing but references. Attacks with a key, against a daemon of 16 places:
`unread` takes no answer, `filters` asks for paths at random, `matches` for the most neighbours of every class,
`creations` creates collections of many cells and does not wait for them, `uploads` never ends a message; `resets`,
`headers`, `settings`, `parts` and `fields` are those of strangers after a first valid call. Over HTTP/1.1, beside callers
of gRPC: `http-matches`, `http-uploads` and `http-unread` as above, `http-json` sends long messages in JSON. `strangers`
and `keys` (the default) are all attacks of a kind, one after another, `mixed` is all at the same time.

Each runs for SECONDS (default 8). CONFIGURATION is the folder of nginx's. Fails if a call of honest callers (one after
another over new connections against strangers, eight searchers against keys) fails or takes much longer than without
an attack, if the memory of the daemon and nginx exceeds 1.5 GB, stays afterwards or grows in the second half of five
minutes or more, if a creation leaves a collection whose caller was told that it failed, or if the daemon does not end
soon after SIGTERM.
"""

import argparse
import collections
import json
import math
import multiprocessing
import os
import random
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

import grpc
import nginx
import numpy

CLASSES, ANCHORS, ITEMS, DIM = 1000, 2000, 100_000, 16
STRANGERS = {"stranger-resets": 16, "stranger-headers": 4, "stranger-settings": 4, "stranger-slow": 500,
             "stranger-holds": 32, "stranger-parts": 28, "stranger-fields": 15}
KEYS = {"unread": 2, "filters": 16, "matches": 16, "creations": 4, "uploads": 32, "resets": 16, "headers": 4,
        "settings": 4, "parts": 4, "fields": 4, "http-matches": 16, "http-uploads": 32, "http-unread": 48,
        "http-json": 16}
HONEST = {"lists": 1, "searches": 8}
THREADS = {**STRANGERS, **KEYS, **HONEST}
MAX_BYTES = 1.5e9
# Free bytes that the daemon does not return (server/daemon/process_memory.cc), and its caches.
KEPT_BYTES = {"lists": 8 << 20, "searches": 64 << 20}
POOL_BYTES = 48e6  # of up to 64 connections to the daemon that each worker of nginx keeps open
MAX_TIMES_SLOWER, SLOWEST = 10, {"lists": 5, "searches": 10}  # seconds, of 99 % of the searches
QUIET_SECONDS, FIRST_PEAK_SECONDS, MAX_WAIT_SECONDS, END_SECONDS, LONG_SECONDS = 5, 2, 60, 10, 300
DATA, HEADERS, RESET, SETTINGS, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 8, 9
END_STREAM, END_HEADERS = 1, 4
RETRIEVAL, COLLECTIONS = "/privatemail.v1.RetrievalService/", "/privatemail.v1.CollectionsService/"


def frame(kind, flags, stream, payload):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def message(body, size=None):
    return b"\0" + (size or len(body)).to_bytes(4, "big") + body


def begin(stream, path=COLLECTIONS + "ListCollections", key=""):
    fields = {":method": "POST", ":scheme": "https", ":authority": "localhost", "te": "trailers", ":path": path,
              "content-type": "application/grpc", **({"authorization": "Bearer " + key} if key else {})}
    return frame(HEADERS, END_HEADERS, stream, b"".join(
        b"\0" + b"".join(bytes([len(text)]) + text.encode() for text in pair) for pair in fields.items()))


def flood(name, stream=1, **call):
    """What an attack sends over one connection, without end."""
    # One literal field whose value is said to have almost 2^28 bytes.
    header = frame(HEADERS, 0, stream, b"\0\x01a\x7f\x80\xff\xff\x7f")
    part = frame(CONTINUATION, 0, stream, b"b" * 16000)
    first, again = {"headers": (header, part),
                    "settings": (b"", frame(SETTINGS, 0, 0, b"\0\3" + (100).to_bytes(4, "big")) * 200),
                    "slow": (frame(HEADERS, 0, stream, b"\0"), frame(CONTINUATION, 0, stream, b"")),
                    "parts": (header + part * 30, frame(CONTINUATION, 0, stream, b"") * 1000),
                    # :method GET of the static table.
                    "fields": (frame(HEADERS, 0, stream, b""), frame(CONTINUATION, 0, stream, b"\x82" * 16000)),
                    }.get(name, (b"", b""))
    yield first
    while True:
        if name == "slow":
            time.sleep(1)
        if name == "resets":
            again = b"".join(begin(one, **call) + frame(DATA, 0, one, bytes(5)) + frame(RESET, 0, one, bytes(4))
                             for one in range(stream, stream + 200, 2))
            stream += 200
        if name == "holds":
            again = begin(stream, key="junk") + frame(DATA, 0, stream, message(bytes(16_000), 60 << 20))
            stream += 2
        yield again


class Caller:
    """Calls of a process of its own, which receives its orders through a pipe."""

    @staticmethod
    def be(name, scene, pipe):
        caller = Caller(name, scene, pipe)
        pipe.send(caller.be_honest() if name in HONEST else caller.attack())

    def __init__(self, name, scene, pipe):
        self.name, self.scene, self.pipe, self.until, self.sent = name, scene, pipe, math.inf, 0
        self.lock, self.begun, self.outcomes = threading.Lock(), False, collections.Counter()
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.tls.check_hostname, self.tls.verify_mode = False, ssl.CERT_NONE
        self.tls.set_alpn_protocols(["http/1.1" if name.startswith("http-") else "h2"])
        if name in KEYS or name == "searches":
            sys.path.insert(0, scene["folder"])
            # pylint: disable-next=import-outside-toplevel
            from privatemail.v1 import collections_pb2, parameters_pb2, retrieval_pb2
            self.messages, self.parameters, self.retrieval = collections_pb2, parameters_pb2, retrieval_pb2
            request = retrieval_pb2.GetCollectionRequest(collection="gallery").SerializeToString()
            self.gallery = retrieval_pb2.GetCollectionResponse.FromString(
                self.caller("honest", RETRIEVAL + "GetCollection")(request))
            self.release = self.matrix(numpy.random.default_rng(3).standard_normal((CLASSES + ANCHORS, 2)))

    def start(self, work):
        threads = [threading.Thread(target=work, daemon=True) for _ in range(THREADS[self.name])]
        for thread in threads:
            thread.start()
        return threads

    def join(self, threads):
        for thread in threads:
            thread.join(max(0, self.until + 60 - time.time()))

    def attack(self):
        """Attacks until the parent process ends it."""
        os.nice(19)  # as if on another machine
        work = self.work()
        self.pipe.send("ready")
        self.pipe.recv()
        threads = self.start(lambda: self.repeat(work))
        self.pipe.recv()
        self.until = time.time()
        self.join(threads if self.name in KEYS else [])
        outcomes = ", ".join(f"{count} {outcome}" for outcome, count in self.outcomes.most_common())
        return f"{self.name}: {outcomes}; {self.sent / 1e6:.1f} MB"

    def begin(self):
        """Says so once, without waiting until all threads have started."""
        with self.lock:
            if not self.begun:
                self.begun = True
                self.pipe.send("begun")

    def repeat(self, work):
        """Refusals are what an attacker gets."""
        while time.time() < self.until:
            try:
                work()
                self.outcomes["OK"] += 1
                self.begin()
                continue
            except grpc.RpcError as error:
                self.outcomes[error.code().name] += 1
                self.begin()
            except OSError:
                self.outcomes["closed"] += 1
            time.sleep(0.02 if self.name in KEYS else 0.1)

    def be_honest(self):
        """Calls for the seconds that the parent process names. Returns failures and durations."""
        self.pipe.send("ready")
        seconds = self.pipe.recv()
        self.until = time.time() + seconds
        took, failures = [], []

        def call_again_and_again():
            call = self.list if self.name == "lists" else self.searcher()
            while time.time() < self.until:
                start, failure = time.time(), call()
                failures.extend([failure] if failure else [])
                took.append(time.time() - start)
        self.join(self.start(call_again_and_again))
        return failures, sorted(took)

    def list(self):
        """Over a new connection."""
        done = subprocess.run(self.scene["list"], capture_output=True, text=True, check=False)
        return done.returncode != 0 and f"{done.returncode}: {done.stderr.strip()}"

    def searcher(self):
        requests, calls = [self.search(), self.search("year")], []

        def call():
            if not calls:  # after 50, over a new connection
                calls.extend([self.caller("honest", RETRIEVAL + "Retrieve")] * 50)
            try:
                calls.pop()(random.choice(requests))
            except grpc.RpcError as error:
                return f"{error.code().name}: {error.details()}"
            return None
        return call

    def matrix(self, rows):
        return self.parameters.Matrix(rows=rows.shape[0], cols=rows.shape[1], values=rows.ravel().tolist())

    def caller(self, key, method, seconds=30):
        """From and to bytes, since parsing would cost more than the call; a connection that all its calls share."""
        with open(self.scene["certificate"], "rb") as certificate:
            credentials = grpc.ssl_channel_credentials(certificate.read())
        channel = grpc.secure_channel(f"127.0.0.1:{self.scene['port']}", credentials, [
            ("grpc.max_receive_message_length", -1), ("grpc.use_local_subchannel_pool", 1)])
        metadata = [("authorization", "Bearer " + self.scene["keys"][key])]
        return lambda request: channel.unary_unary(method)(request, timeout=seconds, metadata=metadata)

    def search(self, path=None, k=4):
        request = self.retrieval.RetrieveRequest(collection="gallery", fingerprint=self.gallery.fingerprint, k=k,
                                                 release=self.release)
        if path is not None:
            request.filter = json.dumps({"path": path, "lt": 10})
        return request.SerializeToString()

    def work(self):
        if self.name in STRANGERS:
            return lambda: self.flood(b"")
        if self.name in ("unread", "uploads"):
            return getattr(self, self.name)
        if self.name.startswith("http-"):
            return self.http_work()
        if self.name == "creations":
            request, create = self.creation(), self.caller("admin", COLLECTIONS + "CreateCollection", 2)
            return lambda: create(request)
        if self.name in ("filters", "matches"):
            request, retrieve = self.search(k=10_000), self.caller("searcher", RETRIEVAL + "Retrieve")
            return lambda: retrieve(request if self.name == "matches" else
                                    self.search("".join(random.choices("abcdefgh", k=8))))
        return lambda: self.flood(self.anchors(1), stream=3, path="/x", key=self.scene["keys"]["searcher"])

    def http_work(self):
        anchors = self.retrieval.GetAnchorsRequest(collection="gallery", fingerprint=self.gallery.fingerprint)
        anchors = message(anchors.SerializeToString())
        values = b'{"collection":"gallery","release":{"values":[' + b"0.5," * 1_000_000 + b"1]}}"
        method, kind, body, seconds = {
            "http-matches": ("Retrieve", "proto", self.search(k=10_000), 0),
            "http-uploads": ("Retrieve", "proto", bytes(60 << 20), 20),  # but for the last byte
            "http-unread": ("GetAnchors", "connect+proto", anchors, 20),
            "http-json": ("Retrieve", "json", values, 0)}[self.name]

        def call():
            with self.dial() as connection:
                self.send(connection, (
                    f"POST {RETRIEVAL}{method} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/{kind}\r\n"
                    f"Content-Length: {len(body)}\r\nConnection: close\r\n"
                    f"Authorization: Bearer {self.scene['keys']['searcher']}\r\n\r\n").encode())
                self.send(connection, body[:-1] if self.name == "http-uploads" else body)
                ended = min(self.until, time.time() + seconds)
                while time.time() < ended and self.name != "http-unread" and self.receive(connection) is not None:
                    pass
                while self.name == "http-unread" and time.time() < ended:
                    time.sleep(0.1)
                if seconds == 0:
                    status = connection.recv(1 << 16)[9:12].decode()
                    while connection.recv(1 << 20):
                        pass
                    self.outcomes[status] += 1
        return call

    def dial(self):
        # Each attack has its own address, which may be refused afterwards.
        address = f"127.0.0.{self.scene['addresses'] + list(THREADS).index(self.name)}"
        return self.tls.wrap_socket(socket.create_connection(("127.0.0.1", self.scene["port"]), 10, (address, 0)))

    def connect(self, own_settings=b""):
        connection = self.dial()
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, own_settings))
        return connection

    def send(self, connection, piece):
        connection.sendall(piece)
        self.sent += len(piece)
        self.begin()

    def receive(self, connection):
        """What comes within .2 s; None at the end."""
        connection.settimeout(0.2)
        try:
            return connection.recv(1 << 16) or None
        except socket.timeout:
            return b""

    def flood(self, first, **call):
        with self.connect() as connection:
            if first:
                connection.sendall(first)
                connection.recv(1 << 16)
            for piece in flood(self.name.rpartition("-")[2], **call):
                if time.time() > self.until:
                    return
                self.send(connection, piece)

    def anchors(self, stream):
        """A call of the search key, without gRPC."""
        request = self.retrieval.GetAnchorsRequest(collection="gallery", fingerprint=self.gallery.fingerprint)
        return begin(stream, RETRIEVAL + "GetAnchors", self.scene["keys"]["searcher"]) + frame(
            DATA, END_STREAM, stream, message(request.SerializeToString()))

    def unread(self):
        with self.connect(b"\0\4" + bytes(4)) as connection:  # a window of 0 bytes
            self.send(connection, b"".join(self.anchors(stream) for stream in range(1, 96, 2)))
            ended = time.time() + 20
            while time.time() < min(self.until, ended) and self.receive(connection) is not None:
                pass

    def uploads(self):
        """Messages of 60 MB that never end: sends what flow control admits, over and over."""
        with self.connect() as connection:
            windows, received = dict.fromkeys(range(1, 41, 2), 65_530), b""
            for stream in windows:
                connection.sendall(begin(stream, RETRIEVAL + "Retrieve", self.scene["keys"]["searcher"])
                                   + frame(DATA, 0, stream, message(b"", 60 << 20)))
            windows[0] = 65_535 - 5 * len(windows)
            while time.time() < self.until and (more := self.receive(connection)) is not None:
                received += more
                while len(received) >= 9 and len(received) >= 9 + (size := int.from_bytes(received[:3], "big")):
                    if received[3] == WINDOW_UPDATE:
                        windows[int.from_bytes(received[5:9], "big")] += int.from_bytes(received[9:13], "big")
                    received = received[9 + size:]
                for stream in range(1, 41, 2):
                    size = min(16_000, windows[0], windows[stream])
                    if size > 0:
                        self.send(connection, frame(DATA, 0, stream, bytes(size)))
                        windows[0] -= size
                        windows[stream] -= size

    def creation(self):
        request = self.messages.CreateCollectionRequest(
            name="other", extractor="vectors", settings=self.gallery.parameters.settings, cells=[4096] * 8,
            cell_code=self.parameters.CELL_CODE_FLOAT16,
            metric=self.parameters.METRIC_COSINE, anchor_labels=[i % 10 for i in range(20_000)],
            anchors=self.matrix(numpy.random.default_rng(2).standard_normal((20_000, 64))))
        request.settings.alpha = 10
        return request.SerializeToString()


class Role:
    """A process that calls: honest ones for some seconds, attackers until the end."""

    def __init__(self, name, scene):
        spawning = multiprocessing.get_context("spawn")  # gRPC does not survive a fork
        self.name, (self.pipe, end) = name, spawning.Pipe()
        self.process = spawning.Process(target=Caller.be, args=(name, scene, end), daemon=True)
        self.process.start()
        end.close()
        self.hear()  # that it is ready

    def tell(self, what=None):
        self.pipe.send(what)
        return self

    def hear(self):
        return self.pipe.recv()

    def end(self):
        """Ends the attack. Waits a second for strangers, whose threads may keep them from answering."""
        print("  attack by " + (self.hear() if self.name in KEYS or self.pipe.poll(1) else f"{self.name}, still busy"))
        self.process.kill()


def p99(seconds):
    return seconds[int(0.99 * (len(seconds) - 1))] if seconds else math.inf


class Service:
    """A daemon with nginx before it. With searchers, it has a collection of their items."""

    def __init__(self, arguments, folder, honest):
        self.folder, self.honest, data = folder, honest, os.path.join(folder, "data")
        limits = ["--max-concurrent", "16", "--drain-seconds", "1"] if honest == "searches" else []
        self.daemon = subprocess.Popen([arguments.daemon, "--data-dir", data, "--listen", "127.0.0.1:0", "--http-listen",
                                        "127.0.0.1:0", *limits, "--trusted-proxies", "127.0.0.1"],
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        http_port, port = (next(int(line.rsplit(":", 1)[1]) for line in self.daemon.stdout if line.startswith(what))
                           for what in ("RPCs over HTTP", "listening on"))
        certificate = data + "/tls/server.crt"
        self.nginx, self.port = nginx.start(arguments.configuration, folder, data + "/tls/", port, http_port)
        self.client = [arguments.client, "--server", f"127.0.0.1:{self.port}", "--key-file", data + "/admin.key",
                       "--ca", certificate]
        self.scene = {"folder": folder, "port": self.port, "certificate": certificate,
                      "addresses": 10,
                      "list": [*self.client, "collection", "list"]}
        if honest == "searches":
            self.fill(arguments.protos)
        else:  # starts the daemon's threads and takes their memory; ends once the daemon has returned the rest
            first = Role("stranger-resets", {**self.scene, "addresses": 100}).tell()
            first.hear()
            time.sleep(FIRST_PEAK_SECONDS)
            first.tell().end()
        self.calls(1)  # fills caches
        failures, seconds = self.calls(QUIET_SECONDS)
        if failures or not seconds:
            sys.exit(f"without an attack {len(failures)} of {len(seconds)} calls failed: {failures[:1]}")
        self.quiet, last = p99(seconds), math.inf
        while honest == "lists" and (now := self.resident_bytes()) < last:
            last = now
            time.sleep(4)

    def fill(self, protos):
        files = [f"privatemail/v1/{name}.proto" for name in ("parameters", "retrieval", "collections", "snapshot")]
        subprocess.run(["protoc", "-I", protos, "--python_out", self.folder, *files], check=True)
        self.scene["keys"], paths = {}, {}
        for name, scope, collection in (("honest", "search", "gallery"), ("searcher", "search", "gallery"),
                                        ("admin", "admin", "other")):
            path = os.path.join(self.folder, name + ".key")
            self.run("key", "create", name, "--scope", scope, "--collection", collection, "--out", path)
            with open(path, encoding="ascii") as file:
                self.scene["keys"][name] = file.read().strip()
        numbers = numpy.random.default_rng(1)
        for name, rows in (("anchors", ANCHORS), ("items", ITEMS)):
            paths[name] = [os.path.join(self.folder, name + end) for end in (".npy", "-labels.npy")]
            numpy.save(paths[name][0], numbers.standard_normal((rows, DIM)).astype("f4"))
            numpy.save(paths[name][1], (numpy.arange(rows) % CLASSES).astype("i4"))
        payloads = os.path.join(self.folder, "payloads")
        with open(payloads, "w", encoding="ascii") as file:
            more = ",".join(f'"{name}":0' for name in range(100))  # so that reading payloads takes long
            file.writelines(f'{{"year":{i % 100},{more}}}\n' for i in range(ITEMS))
        self.run("collection", "create", "gallery", "--anchors", paths["anchors"][0], "--anchor-labels",
                 paths["anchors"][1])
        self.run("ingest", "gallery", "--vectors", paths["items"][0], "--labels", paths["items"][1], "--payloads",
                 payloads)
        self.run("build", "gallery", "--accept-misalignment")

    def run(self, *arguments):
        return subprocess.run([self.client[0], *arguments, *self.client[1:]], check=True, stdout=subprocess.PIPE,
                              text=True).stdout

    def calls(self, seconds):
        return Role(self.honest, self.scene).tell(seconds).hear()

    def resident_bytes(self):
        total = 0
        with open(f"/proc/{self.nginx.pid}/task/{self.nginx.pid}/children", encoding="ascii") as children:
            processes = [self.daemon.pid, self.nginx.pid, *children.read().split()]
        for process in processes:
            with open(f"/proc/{process}/status", encoding="ascii") as status:
                total += 1024 * int(re.search(r"VmRSS:\s+(\d+) kB", status.read()).group(1))
        return total

    def holds(self, name, attacks, seconds):
        before = self.resident_bytes()
        peaks = [before, before]  # of the halves of the attack
        attackers, honest = [Role(one, self.scene) for one in attacks], Role(self.honest, self.scene)
        for attacker in attackers:
            attacker.tell()
        for attacker in attackers:
            attacker.hear()
        honest.tell(seconds)
        until = time.time() + seconds
        while time.time() < until:
            half = time.time() > until - seconds / 2
            peaks[half] = max(peaks[half], self.resident_bytes())
            time.sleep(0.1)
        failures, called = honest.hear()
        for attacker in attackers:
            attacker.tell()
        for attacker in attackers:
            attacker.end()
        ended = time.time()
        allowed = 1.1 * before + KEPT_BYTES[self.honest] + POOL_BYTES
        while (after := self.resident_bytes()) > allowed and time.time() < ended + MAX_WAIT_SECONDS:
            time.sleep(0.2)
        slowest, limit = p99(called), MAX_TIMES_SLOWER * self.quiet
        worst = slowest if self.honest == "searches" else max(called, default=math.inf)
        good = (not failures and slowest <= limit and worst <= SLOWEST[self.honest]
                and len(called) >= seconds / limit  # also without one call that takes all the time
                and max(peaks) <= MAX_BYTES and after <= allowed
                and (seconds < LONG_SECONDS or peaks[1] <= 1.1 * peaks[0]))
        for failure in sorted(set(failures)):
            print("  " + failure)
        print(f"{name}: {len(called)} honest calls, {len(failures)} failed, p99 {slowest:.2f} s (quiet "
              f"{self.quiet:.2f} s); memory {before / 1e6:.0f} MB before, {peaks[0] / 1e6:.0f} MB at most in the first "
              f"half, {peaks[1] / 1e6:.0f} MB in the second, {after / 1e6:.0f} MB {time.time() - ended:.0f} s later: "
              f"{'held' if good else 'NOT HELD'}", flush=True)
        return good

    def ends(self):
        """No creation left anything, and one that runs ends with the daemon."""
        left = '"other"' in self.run("collection", "list", "--json")
        attacker = Role("creations", self.scene).tell()
        attacker.hear()
        start = time.time()
        self.daemon.send_signal(signal.SIGTERM)
        while self.daemon.poll() is None and time.time() < start + MAX_WAIT_SECONDS:
            time.sleep(0.1)
        seconds = time.time() - start
        attacker.tell().end()
        good = not left and seconds < END_SECONDS
        print(f"SIGTERM during a creation: ended after {seconds:.1f} s; a collection is left: {left}: "
              f"{'held' if good else 'NOT HELD'}")
        return good

    def stop(self):
        self.nginx.terminate()
        self.nginx.wait()
        self.daemon.kill()
        self.daemon.wait()


def main():
    parser = argparse.ArgumentParser()
    for name in ("configuration", "daemon", "client", "protos"):
        parser.add_argument(name)
    parser.add_argument("seconds", nargs="?", type=float, default=8)
    parser.add_argument("attacks", nargs="*", default=["keys"])
    arguments = parser.parse_args()
    groups = {"strangers": [*STRANGERS], "keys": [*KEYS]}
    attacks = [one for name in arguments.attacks for one in groups.get(name, [name])]
    held = []
    for honest, names in (("lists", [one for one in attacks if one in STRANGERS]),
                          ("searches", [one for one in attacks if one not in STRANGERS])):
        if names:
            with tempfile.TemporaryDirectory() as folder:
                service = Service(arguments, folder, honest)
                try:
                    held += [service.holds(one, [*STRANGERS, *KEYS] if one == "mixed" else [one], arguments.seconds)
                             for one in names]
                    held += [service.ends()] if honest == "searches" else []
                finally:
                    service.stop()
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())

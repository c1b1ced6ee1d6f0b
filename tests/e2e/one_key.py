"""One search key, and the admin key of one collection, against all other callers of nginx before a daemon.

usage: one_key.py CONFIGURATION PRIVATEMAILD PRIVATEMAIL PROTO_FOLDER [SECONDS [ATTACK...]]

Attacks: `unread` takes no answer, `filters` asks for paths at random, `matches` for the most neighbours of every
class, `creations` creates collections of many cells and does not wait for them, `uploads` never ends a message;
`resets`, `headers`, `settings`, `parts` and `fields` are those of strangers.py after a first valid call. `mixed` is
these and strangers.py together. Each runs for SECONDS (default 8) against a daemon of 16 places. CONFIGURATION is the
folder of nginx's. Fails if a call of eight honest searchers fails or takes much longer than without an attack, if the
memory of the daemon and nginx exceeds 1.5 GB, stays afterwards or grows in the second half of five minutes or more, if
a creation leaves a collection whose caller was told that it failed, or if the daemon does not end soon after SIGTERM.
"""

import collections
import json
import math
import os
import random
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

import numpy

from strangers import ATTACKS as STRANGERS
from strangers import (DATA, POOL_BYTES, PREFACE, SETTINGS, Attackers, Service, begin, frame, parse_arguments,
                       resident_bytes)

CLASSES, ANCHORS, ITEMS, DIM = 1000, 2000, 100_000, 16
HONEST = 8
FLOODS = ["uploads", "resets", "headers", "settings", "parts", "fields"]
WINDOW_UPDATE = 8
MAX_BYTES = 1500 << 20
MAX_TIMES_SLOWER, SLOWEST = 10, 10  # seconds
QUIET_SECONDS = 5
MAX_WAIT_SECONDS = 60
KEPT_BYTES = 64 << 20  # caches
END_SECONDS = 10
LONG_SECONDS = 300
END_STREAM = 1
NO_WINDOW = b"\0\4" + bytes(4)
RETRIEVAL, COLLECTIONS = "/privatemail.v1.RetrievalService/", "/privatemail.v1.CollectionsService/"
LIMITS = ["--max-concurrent", "16", "--drain-seconds", "1"]
# Threads.
ATTACKERS = {"unread": 2, "filters": 16, "matches": 16, "creations": 4, "uploads": 32, "resets": 16, "headers": 4,
             "settings": 4, "parts": 4, "fields": 4}


class Caller:
    """Calls of a process of its own: gRPC does not survive a fork."""

    def __init__(self, scene):
        sys.path.insert(0, scene["folder"])
        import grpc  # pylint: disable=import-outside-toplevel
        # pylint: disable-next=import-outside-toplevel
        from privatemail.v1 import collections_pb2, parameters_pb2, retrieval_pb2
        self.grpc, self.messages, self.parameters, self.retrieval = grpc, collections_pb2, parameters_pb2, retrieval_pb2
        self.scene, self.until, self.sent = scene, 0, 0
        self.begun = threading.Event()
        request = self.retrieval.GetCollectionRequest(collection="gallery")
        collection = self.retrieval.GetCollectionResponse.FromString(
            self.call(self.channel(), "honest", RETRIEVAL + "GetCollection", request.SerializeToString()))
        self.embedding, self.fingerprint = collection.parameters.settings, collection.fingerprint
        self.release = self.matrix(numpy.random.default_rng(3).standard_normal((CLASSES + ANCHORS, 2)))
        self.outcomes = collections.Counter()

    def matrix(self, rows):
        return self.parameters.Matrix(rows=rows.shape[0], cols=rows.shape[1], values=rows.ravel().tolist())

    def channel(self):
        with open(self.scene["certificate"], "rb") as certificate:
            credentials = self.grpc.ssl_channel_credentials(certificate.read())
        return self.grpc.secure_channel(f"127.0.0.1:{self.scene['port']}", credentials, [
            ("grpc.max_receive_message_length", -1), ("grpc.use_local_subchannel_pool", 1)])

    def call(self, channel, key, method, request, seconds=30):
        """Of and to bytes: parsing would cost more than the call."""
        return channel.unary_unary(method)(request, timeout=seconds,
                                           metadata=[("authorization", "Bearer " + self.scene["keys"][key])])

    def search(self, path=None, k=4):
        request = self.retrieval.RetrieveRequest(collection="gallery", fingerprint=self.fingerprint, k=k,
                                                 release=self.release)
        if path is not None:
            request.filter.range.path, request.filter.range.lt = path, 10
        return request.SerializeToString()

    def repeat(self, work):
        """Refusals are what an attacker gets."""
        while time.time() < self.until:
            try:
                work()
                self.outcomes["OK"] += 1
                self.begun.set()
            except self.grpc.RpcError as error:
                self.outcomes[error.code().name] += 1
                self.begun.set()
                time.sleep(0.02)
            except OSError:
                self.outcomes["closed"] += 1
                time.sleep(0.02)

    def connect(self):
        context = ssl.create_default_context(cafile=self.scene["certificate"])
        context.check_hostname = False
        context.set_alpn_protocols(["h2"])
        address = ("127.0.0.1", self.scene["port"])
        return context.wrap_socket(socket.create_connection(address, 10, (self.scene["address"], 0)))

    def anchors(self, stream):
        """A call of the search key, without gRPC."""
        body = self.retrieval.GetAnchorsRequest(collection="gallery", fingerprint=self.fingerprint).SerializeToString()
        message = b"\0" + len(body).to_bytes(4, "big") + body
        return self.begin(stream, "GetAnchors") + frame(DATA, END_STREAM, stream, message)

    def begin(self, stream, method):
        return begin(stream, path=(RETRIEVAL + method).encode(), key=self.scene["keys"]["searcher"].encode())

    def wait_until_ended(self, connection):
        connection.settimeout(0.2)
        ended = time.time() + 20
        while time.time() < min(self.until, ended):
            try:
                if not connection.recv(1 << 16):
                    break
            except socket.timeout:
                pass

    def unread(self):
        def hold():
            with self.connect() as connection:
                connection.sendall(PREFACE + frame(SETTINGS, 0, 0, NO_WINDOW))
                connection.sendall(b"".join(self.anchors(stream) for stream in range(1, 96, 2)))
                self.begun.set()
                self.wait_until_ended(connection)
        return hold

    def uploads(self):
        """Messages of 60 MB that never end: sends what flow control admits, over and over."""
        def hold():
            with self.connect() as connection:
                connection.sendall(PREFACE + frame(SETTINGS, 0, 0, b""))
                streams = list(range(1, 41, 2))
                windows = dict.fromkeys([0] + streams, 65_535)
                for stream in streams:
                    connection.sendall(self.begin(stream, "Retrieve"))
                starts = {stream: b"\0" + (60 << 20).to_bytes(4, "big") for stream in streams}
                received = b""
                connection.settimeout(0.2)
                while time.time() < self.until:
                    for stream in streams:
                        size = min(16_000, windows[0], windows[stream])
                        if size < 5:
                            continue
                        start = starts.pop(stream, b"")
                        connection.sendall(frame(DATA, 0, stream, start + bytes(size - len(start))))
                        self.count(size)
                        windows[0] -= size
                        windows[stream] -= size
                    try:
                        more = connection.recv(1 << 16)
                    except socket.timeout:
                        continue
                    if not more:
                        return
                    received += more
                    while len(received) >= 9 and len(received) >= 9 + int.from_bytes(received[:3], "big"):
                        size, kind, stream = int.from_bytes(received[:3], "big"), received[3], received[5:9]
                        if kind == WINDOW_UPDATE:
                            windows[int.from_bytes(stream, "big")] += int.from_bytes(received[9:13], "big")
                        received = received[9 + size:]
        return hold

    def after_first_call(self, attack):
        def send():
            with self.connect() as connection:
                connection.sendall(PREFACE + frame(SETTINGS, 0, 0, b"") + self.anchors(1))
                connection.recv(1 << 16)
                key = self.scene["keys"]["searcher"].encode()
                for piece in STRANGERS[attack](stream=3, path=b"/x", key=key):
                    if time.time() > self.until:
                        return
                    connection.sendall(piece)
                    self.count(len(piece))
        return send

    def count(self, sent):
        self.sent += sent
        self.begun.set()

    def resets(self):
        return self.after_first_call("resets")

    def headers(self):
        return self.after_first_call("headers")

    def settings(self):
        return self.after_first_call("settings")

    def parts(self):
        return self.after_first_call("parts")

    def fields(self):
        return self.after_first_call("fields")

    def filters(self):
        channel = self.channel()
        return lambda: self.call(channel, "searcher", RETRIEVAL + "Retrieve",
                                 self.search("".join(random.choices("abcdefgh", k=8))))

    def matches(self):
        channel, request = self.channel(), self.search(k=10_000)
        return lambda: self.call(channel, "searcher", RETRIEVAL + "Retrieve", request)

    def creations(self):
        channel = self.channel()
        request = self.messages.CreateCollectionRequest(
            name="other", extractor="vectors", settings=self.embedding, cells=[4096] * 8,
            cell_code=self.parameters.CELL_CODE_FLOAT16,
            metric=self.parameters.METRIC_COSINE, anchor_labels=[i % 10 for i in range(20_000)],
            anchors=self.matrix(numpy.random.default_rng(2).standard_normal((20_000, 64))))
        request.settings.alpha = 10
        request = request.SerializeToString()
        return lambda: self.call(channel, "admin", COLLECTIONS + "CreateCollection", request, 2)

    def attack(self, name):
        """Until a line comes; says when it has begun."""
        os.nice(19)  # as if on another machine
        work = getattr(self, name)()
        print("ready", flush=True)
        input()
        self.until = math.inf
        threads = self.start(lambda: self.repeat(work), ATTACKERS[name])
        self.begun.wait()
        print("begun", flush=True)
        input()
        self.until = time.time()
        self.join(threads)
        outcomes = ", ".join(f"{count} {outcome}" for outcome, count in self.outcomes.most_common())
        print(outcomes + (f"; {self.sent / 1e6:.1f} MB" if name in FLOODS else ""))
        return 0 if self.sent > 0 or name not in FLOODS else 1

    @staticmethod
    def start(work, count):
        threads = [threading.Thread(target=work, daemon=True) for _ in range(count)]
        for thread in threads:
            thread.start()
        return threads

    def join(self, threads):
        for thread in threads:
            thread.join(max(0, self.until + 60 - time.time()))

    def honest(self):
        print("ready", flush=True)
        wait = float(input())  # comes once all attacks have begun
        self.until = time.time() + wait
        seconds, failures = [], []
        requests = [self.search(), self.search("year")]

        def search_again_and_again():
            channel, calls = self.channel(), 0
            while time.time() < self.until:
                start, calls = time.time(), calls + 1
                if calls % 50 == 0:  # over a new connection
                    channel.close()
                    channel = self.channel()
                try:
                    self.call(channel, "honest", RETRIEVAL + "Retrieve", random.choice(requests))
                except self.grpc.RpcError as error:
                    failures.append(f"{error.code().name}: {error.details()}")
                seconds.append(time.time() - start)
        self.join(self.start(search_again_and_again, HONEST))
        print(json.dumps({"seconds": seconds, "failures": failures}))


class Role:
    """A caller in a process of its own. Honest ones end after seconds, attackers when they are told to."""

    def __init__(self, name, scene):
        if name in ATTACKERS:  # of its own, which may be refused after an attack
            scene = dict(scene, address=f"127.0.0.{10 + list(ATTACKERS).index(name)}")
        command = [sys.executable, __file__, "role", name, json.dumps(scene)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.wait_for("ready")

    def wait_for(self, word):
        if self.process.stdout.readline().strip() != word:
            raise RuntimeError(f"{self.process.args} is not {word}")

    def tell(self, line=""):
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        return self

    def result(self):
        return self.process.communicate()[0].strip()


def honest_calls(searchers):
    calls = json.loads(searchers.result())
    return calls["failures"], sorted(calls["seconds"])


def p99(seconds):
    return seconds[int(0.99 * (len(seconds) - 1))] if seconds else math.inf


def quiet_p99(scene):
    honest_calls(Role("honest", scene).tell(1))  # fills caches
    failures, seconds = honest_calls(Role("honest", scene).tell(QUIET_SECONDS))
    if failures or not seconds:
        sys.exit(f"without an attack {len(failures)} of {len(seconds)} searches failed: {failures[:1]}")
    return p99(seconds)


def run(name, scene, service, seconds, quiet):
    before = resident_bytes(service.processes())
    peaks = [before, before]  # of the halves of the attack
    attackers = [Role(one, scene) for one in (ATTACKERS if name == "mixed" else [name])]
    searchers = Role("honest", scene)
    for attacker in attackers:
        attacker.tell()
    strangers = [Attackers(one, scene["port"]) for one in (STRANGERS if name == "mixed" else [])]
    for attacker in attackers:
        attacker.wait_for("begun")
    for stranger in strangers:
        stranger.wait_for_begin()
    searchers.tell(seconds)
    until = time.time() + seconds
    while time.time() < until:
        half = time.time() > until - seconds / 2
        peaks[half] = max(peaks[half], resident_bytes(service.processes()))
        time.sleep(0.1)
    failures, searched = honest_calls(searchers)
    attacked = True
    for stranger in strangers:
        stranger.process.kill()
    for attacker in attackers:
        attacker.tell()
    for attacker in attackers:
        print("  attack: " + attacker.result())
        attacked = attacked and attacker.process.returncode == 0
    for stranger in strangers:
        print(f"  strangers, {stranger.name}: {stranger.stop()}")
    ended = time.time()
    allowed = 1.1 * before + KEPT_BYTES + POOL_BYTES
    while resident_bytes(service.processes()) > allowed and time.time() < ended + MAX_WAIT_SECONDS:
        time.sleep(0.2)
    after = resident_bytes(service.processes())
    slowest = p99(searched)
    good = (attacked and not failures and slowest <= min(SLOWEST, MAX_TIMES_SLOWER * quiet)
            and max(peaks) <= MAX_BYTES and after <= allowed and (seconds < LONG_SECONDS or peaks[1] <= 1.1 * peaks[0]))
    for failure in sorted(set(failures)):
        print("  " + failure)
    print(f"{name}: {len(searched)} honest searches, {len(failures)} failed, p99 {slowest:.2f} s (quiet "
          f"{quiet:.2f} s); memory {before / 1e6:.0f} MB before, {peaks[0] / 1e6:.0f} MB at most in "
          f"the first half, {peaks[1] / 1e6:.0f} MB in the second, {after / 1e6:.0f} MB "
          f"{time.time() - ended:.0f} s later: {'held' if good else 'NOT HELD'}", flush=True)
    return good


class Gallery(Service):
    def __init__(self, arguments, folder):
        super().__init__(arguments.daemon, folder, arguments.configuration, LIMITS)
        self.client, protos = arguments.client, arguments.protos
        files = [f"privatemail/v1/{name}.proto" for name in ("parameters", "retrieval", "collections", "snapshot")]
        subprocess.run(["protoc", "-I", protos, "--python_out", folder] + files, check=True)
        keys = {name: self.key(folder, name, scope, collection) for name, scope, collection in (
            ("honest", "search", "gallery"), ("searcher", "search", "gallery"), ("admin", "admin", "other"))}
        self.scene = {"folder": folder, "port": self.port, "certificate": self.data + "/tls/server.crt", "keys": keys}
        self.fill(folder)

    def run(self, *arguments):
        return subprocess.run([self.client, *arguments, *self.arguments()], check=True, stdout=subprocess.PIPE,
                              text=True).stdout

    def key(self, folder, name, scope, collection):
        path = os.path.join(folder, name + ".key")
        self.run("key", "create", name, "--scope", scope, "--collection", collection, "--out", path)
        with open(path, encoding="ascii") as file:
            return file.read().strip()

    def fill(self, folder):
        numbers = numpy.random.default_rng(1)
        paths = {}
        for name, rows in (("anchors", ANCHORS), ("items", ITEMS)):
            paths[name] = [os.path.join(folder, name + ".npy"), os.path.join(folder, name + "-labels.npy")]
            numpy.save(paths[name][0], numbers.standard_normal((rows, DIM)).astype("f4"))
            numpy.save(paths[name][1], (numpy.arange(rows) % CLASSES).astype("i4"))
        payloads = os.path.join(folder, "payloads")
        with open(payloads, "w", encoding="ascii") as file:
            more = ",".join(f'"{name}":0' for name in range(100))  # so that reading payloads takes long
            file.writelines(f'{{"year":{i % 100},{more}}}\n' for i in range(ITEMS))
        anchors, anchor_labels = paths["anchors"]
        items, labels = paths["items"]
        self.run("collection", "create", "gallery", "--anchors", anchors, "--anchor-labels", anchor_labels)
        self.run("ingest", "gallery", "--vectors", items, "--labels", labels, "--payloads", payloads)
        self.run("build", "gallery", "--accept-misalignment")

    def check_end(self):
        """No creation left anything, and one that runs ends with the daemon."""
        left = self.run("collection", "list", "--json")
        attacker = Role("creations", self.scene).tell()
        attacker.wait_for("begun")
        start = time.time()
        self.daemon.send_signal(signal.SIGTERM)
        while self.daemon.poll() is None and time.time() < start + MAX_WAIT_SECONDS:
            time.sleep(0.1)
        seconds = time.time() - start
        print("  attack: " + attacker.tell().result())
        good = '"other"' not in left and seconds < END_SECONDS
        print(f"SIGTERM during a creation: ended after {seconds:.1f} s; no collection is left: {'other' not in left}: "
              f"{'held' if good else 'NOT HELD'}")
        return good


def main():
    if sys.argv[1] == "role":
        caller = Caller(json.loads(sys.argv[3]))
        return caller.honest() if sys.argv[2] == "honest" else caller.attack(sys.argv[2])
    arguments = parse_arguments("daemon", "client", "protos")
    with tempfile.TemporaryDirectory() as folder:
        gallery = Gallery(arguments, folder)
        try:
            quiet = quiet_p99(gallery.scene)
            attacks = arguments.attacks or ATTACKERS
            held = [run(name, gallery.scene, gallery, arguments.seconds, quiet) for name in attacks]
            held.append(gallery.check_end())
        finally:
            gallery.stop()
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())

"""Strangers without a key attack nginx before a daemon; honest callers from another address are answered meanwhile.

usage: strangers.py CONFIGURATION PRIVATEMAILD PRIVATEMAIL [SECONDS [ATTACK...]]

Attacks (RFC 9113): `resets` begins calls and cancels them at once, `headers` never ends a header, `settings` sends
nothing but settings, `slow` opens many connections that say little, `holds` sends messages that do not end with a key
that nobody made, `parts` sends a header in empty parts, `fields` a header of nothing but references. Implemented here,
because no gRPC client does any of it. Each runs for SECONDS (default 8) from an address of its own. CONFIGURATION is
the folder of nginx's. Fails if an honest call fails or takes much longer than without an attack, if the memory of the
daemon and nginx exceeds 1.5 GB, or if it is not back within 10 % of before a minute later, after a first peak.
"""

import argparse
import math
import multiprocessing
import os
import re
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time

from proxy import TRUST, Proxy

MAX_BYTES = 1.5e9
MAX_TIMES_SLOWER, SLOWEST = 10, 5  # seconds
FIRST_PEAK_SECONDS, FIRST_FROM = 2, "127.0.0.4"
QUIET_CALLS = 40
MAX_WAIT_SECONDS = 60
KEPT_BYTES = 8 << 20  # free bytes that the daemon does not return (server/daemon/process_memory.cc)
POOL_BYTES = 48e6  # of up to 64 connections to the daemon that each worker of nginx keeps open
DATA, HEADERS, RESET, SETTINGS, CONTINUATION = 0, 1, 3, 4, 9
END_HEADERS = 4
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def field(name, value):
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def begin(stream, path=b"/privatemail.v1.CollectionsService/ListCollections", key=b""):
    names = {b":method": b"POST", b":scheme": b"https", b":authority": b"localhost", b"te": b"trailers", b":path": path,
             b"content-type": b"application/grpc"}
    if key:
        names[b"authorization"] = b"Bearer " + key
    return frame(HEADERS, END_HEADERS, stream, b"".join(field(*pair) for pair in names.items()))


def resets(stream=1, **call):
    while True:
        piece = b""
        for _ in range(100):
            piece += begin(stream, **call) + frame(DATA, 0, stream, bytes(5)) + frame(RESET, 0, stream, bytes(4))
            stream += 2
        yield piece


def headers(stream=1, **_):
    # One literal field whose value is said to have almost 2^28 bytes.
    yield frame(HEADERS, 0, stream, b"\0\x01a\x7f\x80\xff\xff\x7f")
    while True:
        yield frame(CONTINUATION, 0, stream, b"b" * 16000)


def settings(**_):
    while True:
        yield frame(SETTINGS, 0, 0, struct.pack(">HI", 3, 100)) * 200


def parts(stream=1, **_):
    yield frame(HEADERS, 0, stream, b"\0\x01a\x7f\x80\xff\xff\x7f")
    yield frame(CONTINUATION, 0, stream, b"b" * 16000) * 30
    while True:
        yield frame(CONTINUATION, 0, stream, b"") * 1000


def fields(stream=1, **_):
    yield frame(HEADERS, 0, stream, b"")
    while True:
        yield frame(CONTINUATION, 0, stream, b"\x82" * 16000)  # :method GET of the static table


def holds(stream=1, **_):
    """Calls with a key that nobody made, and messages that do not end."""
    while True:
        yield begin(stream, key=b"junk") + frame(DATA, 0, stream, b"\0" + (60 << 20).to_bytes(4, "big") + bytes(16_000))
        stream += 2


def slow(**_):
    yield frame(HEADERS, 0, 1, b"\0")
    while True:
        time.sleep(1)
        yield frame(CONTINUATION, 0, 1, b"")


CONNECTIONS = {"resets": 16, "headers": 4, "settings": 4, "slow": 500, "parts": 28, "fields": 15,
               "holds": 32}
ATTACKS = {"resets": resets, "headers": headers, "settings": settings, "slow": slow, "holds": holds, "parts": parts,
           "fields": fields}


def connect(port, address):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    connection = context.wrap_socket(socket.create_connection(("127.0.0.1", port), 10, (address, 0)))
    connection.sendall(PREFACE + frame(SETTINGS, 0, 0, b""))
    return connection


class Attackers:
    """A process of least priority, as if on another machine, which attacks until it is stopped."""

    def __init__(self, name, port, address=None):
        self.name, self.port, self.attack = name, port, ATTACKS[name]
        # Each attack has its own address, since that address may be refused after the attack.
        self.address = address or f"127.0.0.{40 + list(CONNECTIONS).index(name)}"
        # Shares no lock with this process: a thread that ends with its own would keep it.
        self.connections, self.bytes = (multiprocessing.Value("q", lock=False) for _ in range(2))
        self.lock = threading.Lock()
        self.process = multiprocessing.Process(target=self.run, daemon=True)
        self.process.start()

    def run(self):
        os.nice(19)
        threads = [threading.Thread(target=self.send, daemon=True) for _ in range(CONNECTIONS[self.name])]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def send(self):
        """Over one connection after another."""
        while True:
            try:
                with connect(self.port, self.address) as connection:
                    self.count(self.connections, 1)
                    for piece in self.attack():
                        connection.sendall(piece)
                        self.count(self.bytes, len(piece))
            except OSError:
                time.sleep(0.1)  # closed by nginx

    def count(self, value, more):
        with self.lock:
            value.value += more

    def wait_for_begin(self):
        while self.connections.value == 0:
            time.sleep(0.05)

    def stop(self):
        self.process.kill()
        self.process.join()
        return f"{self.connections.value} connections sent {self.bytes.value / 1e6:.0f} MB"


def resident_bytes(processes):
    total = 0
    for process in processes:
        with open(f"/proc/{process}/status", encoding="ascii") as status:
            total += 1024 * int(re.search(r"VmRSS:\s+(\d+) kB", status.read()).group(1))
    return total


class Honest:
    """Calls one after another, each over a connection of its own."""

    def __init__(self, command):
        self.command, self.failures, self.seconds = command, 0, []

    def call(self):
        start = time.time()
        done = subprocess.run(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            self.failures += 1
            print("  " + done.stderr.strip())
        self.seconds.append(time.time() - start)

    def p99(self):
        return sorted(self.seconds)[int(0.99 * (len(self.seconds) - 1))]

    def held(self, seconds, quiet):
        limit = MAX_TIMES_SLOWER * quiet
        return (self.failures == 0 and self.p99() <= limit and max(self.seconds) <= SLOWEST
                and len(self.seconds) >= seconds / limit)  # also without one call that takes all the time


def quiet_p99(command):
    quiet = Honest(command)
    for _ in range(QUIET_CALLS):
        quiet.call()
    if quiet.failures:
        sys.exit(f"without an attack {quiet.failures} of {QUIET_CALLS} calls failed")
    return quiet.p99()


def run(name, seconds, service, command, quiet):
    processes = service.processes()
    before = peak = resident_bytes(processes)
    attackers = Attackers(name, service.port)
    attackers.wait_for_begin()
    until = time.time() + seconds
    honest = Honest(command)
    while time.time() < until:
        honest.call()
        peak = max(peak, resident_bytes(processes))
    sent = attackers.stop()
    ended = time.time()
    allowed = 1.1 * before + KEPT_BYTES + POOL_BYTES
    while resident_bytes(processes) > allowed and time.time() < ended + MAX_WAIT_SECONDS:
        time.sleep(0.2)
    after = resident_bytes(processes)
    good = honest.held(seconds, quiet) and peak <= MAX_BYTES and after <= allowed
    print(f"{name}: {sent}; {len(honest.seconds)} honest calls, {honest.failures} failed, p99 {honest.p99():.2f} s "
          f"(quiet {quiet:.2f} s); memory {before / 1e6:.0f} MB before, {peak / 1e6:.0f} MB at most, "
          f"{after / 1e6:.0f} MB {time.time() - ended:.0f} s later: {'held' if good else 'NOT HELD'}", flush=True)
    return good


class Service:
    """A daemon, with nginx before it."""

    def __init__(self, program, folder, configuration, limits=()):
        self.data = os.path.join(folder, "data")
        command = [program, "--data-dir", self.data, "--listen", "127.0.0.1:0", *limits, *TRUST]
        # pylint: disable-next=consider-using-with
        self.daemon = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        port = next(int(line.rsplit(":", 1)[1]) for line in self.daemon.stdout if line.startswith("listening on"))
        self.proxy = Proxy(configuration, folder, self.data + "/tls", port)
        self.port = self.proxy.port

    def processes(self):
        return [self.daemon.pid] + self.proxy.processes()

    def arguments(self):
        """Of the command line, as administrator."""
        return ["--server", f"127.0.0.1:{self.port}", "--key-file", self.data + "/admin.key", "--ca",
                self.data + "/tls/server.crt"]

    def stop(self):
        self.proxy.stop()
        self.daemon.kill()
        self.daemon.wait()


def parse_arguments(*programs):
    parser = argparse.ArgumentParser()
    for name in ("configuration", *programs):
        parser.add_argument(name)
    parser.add_argument("seconds", nargs="?", type=float, default=8)
    parser.add_argument("attacks", nargs="*")
    return parser.parse_args()


def main():
    arguments = parse_arguments("daemon", "client")
    with tempfile.TemporaryDirectory() as folder:
        service = Service(arguments.daemon, folder, arguments.configuration)
        try:
            calls = [arguments.client, "collection", "list", *service.arguments()]
            # Starts the daemon's threads and takes their memory; ends once the daemon has returned the rest.
            first = Attackers("resets", service.port, FIRST_FROM)
            first.wait_for_begin()
            time.sleep(FIRST_PEAK_SECONDS)
            first.stop()
            quiet, last = quiet_p99(calls), math.inf
            while (now := resident_bytes(service.processes())) < last:
                last = now
                time.sleep(4)
            held = [run(name, arguments.seconds, service, calls, quiet) for name in arguments.attacks or ATTACKS]
        finally:
            service.stop()
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())

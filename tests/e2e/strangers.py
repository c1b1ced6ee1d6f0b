"""Strangers without a key attack one port; honest callers from another address are answered meanwhile.

usage: strangers.py PRIVATEMAILD PRIVATEMAIL [SECONDS [ATTACK...]]

Attacks (RFC 9113): `resets` begins calls and cancels them at once, `headers` never ends a header, `settings` sends
nothing but settings, `slow` opens many connections that say little. Implemented here, because no gRPC client does any of
it. Each runs for SECONDS (default 8). Fails if an honest call fails or takes much longer than without an attack, if the
daemon's memory exceeds 1.5 GB, or if it is not back within 10 % of before a minute later. A request that is sent byte
by byte must be ended, too.
"""

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

ATTACKER = "127.0.0.2"
DRIPS_FROM = "127.0.0.3"  # not refused after the attacks
MOST_BYTES = 1.5e9
MOST_TIMES_SLOWER = 10
QUIET_CALLS = 40
MOST_WAIT_SECONDS = 60
DRIP_SECONDS = 10  # that a connection has to show a key
THREADS_BYTES = 8e6  # of threads and allocator arenas that the first peak starts
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


def slow():
    yield frame(HEADERS, 0, 1, b"\0")
    while True:
        time.sleep(1)
        yield frame(CONTINUATION, 0, 1, b"")


CONNECTIONS = {"resets": 16, "headers": 4, "settings": 4, "slow": 500}
ATTACKS = {"resets": resets, "headers": headers, "settings": settings, "slow": slow}


def connect(port, address=ATTACKER):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    connection = context.wrap_socket(socket.create_connection(("127.0.0.1", port), 10, (address, 0)))
    connection.sendall(PREFACE + frame(SETTINGS, 0, 0, b""))
    return connection


class Attacker(threading.Thread):
    """Sends an attack over one connection after another."""

    def __init__(self, port, attack, until):
        super().__init__(daemon=True)
        self.port, self.attack, self.until = port, attack, until
        self.bytes = self.connections = 0

    def run(self):
        while time.time() < self.until:
            try:
                with connect(self.port) as connection:
                    self.connections += 1
                    for piece in self.attack():
                        if time.time() > self.until:
                            return
                        connection.sendall(piece)
                        self.bytes += len(piece)
            except OSError:
                time.sleep(0.1)  # closed by the daemon


def attack_together(name, port, until, sent):
    """In a process of its own with least priority, as if on another machine."""
    os.nice(19)
    attackers = [Attacker(port, ATTACKS[name], until) for _ in range(CONNECTIONS[name])]
    for attacker in attackers:
        attacker.start()
    for attacker in attackers:
        attacker.join(max(0, until + 1 - time.time()))
    sent[:] = [sum(a.connections for a in attackers), sum(a.bytes for a in attackers)]


def resident_bytes(process):
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
        return 1024 * int(re.search(r"VmRSS:\s+(\d+) kB", status.read()).group(1))


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


def run(name, seconds, daemon, port, command):
    quiet = Honest(command)
    for _ in range(QUIET_CALLS):
        quiet.call()
    before = peak = resident_bytes(daemon)
    until = time.time() + seconds
    sent = multiprocessing.Array("q", 2)
    attackers = multiprocessing.Process(target=attack_together, args=(name, port, until, sent))
    attackers.start()
    honest = Honest(command)
    while time.time() < until:
        honest.call()
        peak = max(peak, resident_bytes(daemon))
    attackers.join()
    ended = time.time()
    allowed = 1.1 * before + THREADS_BYTES
    while resident_bytes(daemon) > allowed and time.time() < ended + MOST_WAIT_SECONDS:
        time.sleep(0.2)
    after = resident_bytes(daemon)
    good = (sent[0] > 0 and honest.failures == 0 and peak <= MOST_BYTES and after <= allowed
            and honest.p99() <= MOST_TIMES_SLOWER * quiet.p99())
    print(f"{name}: {sent[0]} connections sent {sent[1] / 1e6:.0f} MB; "
          f"{len(honest.seconds)} honest calls, {honest.failures} failed, p99 {honest.p99():.2f} s (quiet "
          f"{quiet.p99():.2f} s); memory {before / 1e6:.0f} MB before, {peak / 1e6:.0f} MB at most, {after / 1e6:.0f} MB "
          f"{time.time() - ended:.0f} s later: {'held' if good else 'NOT HELD'}", flush=True)
    return good and honest.seconds


def ends_drips(port):
    start = time.time()
    try:
        with connect(port, DRIPS_FROM) as connection:
            connection.sendall(begin(1))
            while time.time() < start + 2 * DRIP_SECONDS:
                connection.sendall(frame(DATA, 0, 1, b"\0"))
                time.sleep(0.5)
    except OSError:
        pass
    seconds = time.time() - start
    good = DRIP_SECONDS / 2 < seconds < 1.5 * DRIP_SECONDS
    print(f"a request byte by byte: ended after {seconds:.1f} s: {'held' if good else 'NOT HELD'}", flush=True)
    return good


def main():
    daemon_program, client = sys.argv[1:3]
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 8
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "data")
        command = [daemon_program, "--data-dir", data, "--listen", "127.0.0.1:0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as daemon:
            try:
                port = next(int(line.rsplit(":", 1)[1]) for line in daemon.stdout if line.startswith("listening on"))
                calls = [client, "collection", "list", "--server", f"127.0.0.1:{port}", "--key-file", data + "/admin.key",
                         "--ca", data + "/tls/server.crt"]
                held = [run(name, seconds, daemon, port, calls) for name in sys.argv[4:] or ATTACKS]
                held.append(ends_drips(port))
            finally:
                daemon.terminate()
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())

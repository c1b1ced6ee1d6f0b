"""Callers without a key send endless messages: the daemon's memory stays bounded, and others are answered.

usage: flooded_daemon.py PRIVATEMAILD PRIVATEMAIL

Implements HTTP/2 (RFC 9113), because no gRPC client leaves a message unfinished. Without the limit
max_transport_memory the daemon would hold everything that is sent. gRPC chooses the calls that it resets then, and may
choose one of the others (about one of some hundred, with RESOURCE_EXHAUSTED): that one is repeated, as its caller would.
"""

import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

CONNECTIONS, CALLS, SENT_BYTES = 2, 40, 8 << 20  # 640 MiB in all
LIMIT_BYTES, ALLOWED_BYTES = 64 << 20, 320 << 20
SECONDS = 15
MAX_TRIES = 3  # of a call of the others
METHOD = "/privatemail.v1.CollectionsService/CreateCollection"
DATA, HEADERS, RESET, SETTINGS, PING, WINDOW_UPDATE = 0, 1, 3, 4, 6, 8
ACK = END_STREAM = 1
END_HEADERS = 4
INITIAL_WINDOW_SIZE = 4
LARGEST_FRAME = 16384


def field(name, value):
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


class Flood(threading.Thread):
    """One connection with many calls, each of which sends part of the announced message."""

    def __init__(self, port, until):
        super().__init__(daemon=True)
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.until = until
        self.received = b""
        self.first_window = 65535
        self.windows = {0: 65535}
        self.left = {}
        self.resets = 0

    def send(self, kind, flags, stream, payload):
        self.socket.settimeout(10)
        header = struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream)
        self.socket.sendall(header + payload)

    def run(self):
        try:
            self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            self.send(SETTINGS, 0, 0, b"")
            for call in range(CALLS):
                self.begin(2 * call + 1)
            while time.time() < self.until:
                self.read_frames()
                for stream in list(self.left):
                    self.send_part(stream)
        except OSError:
            pass  # the daemon may close the connection

    def begin(self, stream):
        names = {b":method": b"POST", b":scheme": b"http", b":path": METHOD.encode(), b":authority": b"x",
                 b"te": b"trailers", b"content-type": b"application/grpc"}
        self.send(HEADERS, END_HEADERS, stream, b"".join(field(*pair) for pair in names.items()))
        self.windows[stream] = self.first_window
        self.left[stream] = SENT_BYTES
        announced = b"\0" + struct.pack(">I", 60 << 20)
        self.send(DATA, 0, stream, announced)
        self.spend(stream, len(announced))

    def send_part(self, stream):
        size = min(LARGEST_FRAME, self.windows[0], self.windows[stream], self.left[stream])
        if size > 0:
            self.send(DATA, 0, stream, b"\x0a" * size)
            self.spend(stream, size)

    def spend(self, stream, size):
        self.windows[0] -= size
        self.windows[stream] -= size
        self.left[stream] -= size

    def read_frames(self):
        self.socket.settimeout(0.01)
        try:
            self.received += self.socket.recv(65536)
        except socket.timeout:
            pass
        while len(self.received) >= 9:
            length = int.from_bytes(self.received[:3], "big")
            if len(self.received) < 9 + length:
                return
            kind, flags = self.received[3], self.received[4]
            stream = int.from_bytes(self.received[5:9], "big")
            payload, self.received = self.received[9 : 9 + length], self.received[9 + length :]
            self.handle(kind, flags, stream, payload)

    def handle(self, kind, flags, stream, payload):
        if kind == WINDOW_UPDATE:
            self.windows[stream] = self.windows.get(stream, 0) + int.from_bytes(payload, "big")
        elif kind == RESET or (kind == HEADERS and flags & END_STREAM):
            self.resets += self.left.pop(stream, None) is not None
        elif kind == PING and not flags & ACK:
            self.send(PING, ACK, 0, payload)
        elif kind == SETTINGS and not flags & ACK:
            for name, value in struct.iter_unpack(">HI", payload):
                if name == INITIAL_WINDOW_SIZE:
                    for one in self.windows:
                        self.windows[one] += (value - self.first_window) * (one != 0)
                    self.first_window = value
            self.send(SETTINGS, ACK, 0, b"")


def resident_bytes(process):
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
        return 1024 * int(re.search(r"VmRSS:\s+(\d+) kB", status.read()).group(1))


def try_call(command):
    """Whether the call was answered, and whether the daemon's memory limit reset it."""
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        print(done.stderr, end="", file=sys.stderr)
    return done.returncode == 0, "RST_STREAM" in done.stderr and "RESOURCE_EXHAUSTED" in done.stderr


def flood(daemon, port, client):
    floods = [Flood(port, time.time() + SECONDS) for _ in range(CONNECTIONS)]
    for one in floods:
        one.start()
    peak = answered = asked = repeated = 0
    while any(one.is_alive() for one in floods):
        command = [client, "collection", "list", "--server", f"127.0.0.1:{port}", "--insecure"]
        asked += 1
        for _ in range(MAX_TRIES):
            is_answered, is_reset = try_call(command)
            answered += is_answered
            if not is_reset:
                break
            repeated += 1
        peak = max(peak, resident_bytes(daemon))
        time.sleep(0.1)  # sampling interval
    return peak, answered, asked, repeated, sum(one.resets for one in floods)


def main():
    daemon_program, client = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        command = [daemon_program, "--data-dir", folder + "/data", "--insecure", "--listen", "127.0.0.1:0",
                   "--max-transport-memory", str(LIMIT_BYTES)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as daemon:
            try:
                port = next(int(line.rsplit(":", 1)[1]) for line in daemon.stdout if line.startswith("listening on"))
                peak, answered, asked, repeated, resets = flood(daemon, port, client)
            finally:
                daemon.terminate()
    print(f"{CONNECTIONS * CALLS} calls sent up to {SENT_BYTES >> 20} MiB each; limit {LIMIT_BYTES >> 20} MiB, "
          f"peak memory {peak >> 20} MiB, {resets} calls reset, {answered} of {asked} others answered, "
          f"{repeated} after a reset")
    return 0 if peak < ALLOWED_BYTES and resets > 0 and answered == asked else 1


if __name__ == "__main__":
    sys.exit(main())

"""A daemon and `privatemail page`, for the tests of the page."""

import base64
import json
import os
import pathlib
import struct
import subprocess
import time
import zlib

import numpy as np

COLOURS = {"blue": (20, 40, 220), "green": (30, 180, 40), "grey": (120, 120, 120), "red": (220, 30, 20),
           "violet": (150, 30, 190), "yellow": (230, 220, 30)}
CLASSES, DIM = 10, 16
# No address, and 127.0.0.1 and ::1 as the kernel writes them.
LOOPBACK = {"00000000", "0100007F", 32 * "0", 24 * "0" + "01000000", 16 * "0" + "FFFF00000100007F"}


def png(colour, shade):
    """32 x 32 pixels, darker by `shade` to the right."""
    line = b"\0" + b"".join(bytes(max(0, part - shade * x // 8) for part in colour) for x in range(32))
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", 32, 32, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(line * 32)),
              (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(struct.pack(">I", len(data)) + name + data
                                            + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks)


def write_pictures(folder, shades):
    for name, colour in COLOURS.items():
        (folder / name).mkdir(parents=True)
        for shade in shades:
            (folder / name / f"{shade:02}.png").write_bytes(png(colour, shade))


def vectors(rows, seed=1):
    """Rows around one centre a class, and their labels."""
    centres = 3 * np.random.default_rng(0).standard_normal((CLASSES, DIM))
    labels = np.arange(rows) % CLASSES
    return (centres[labels] + np.random.default_rng(seed).standard_normal((rows, DIM))).astype(np.float32), labels


def start_daemon(data, *options):
    """The daemon, and the last word of each line that it told, by the words before."""
    daemon = subprocess.Popen([os.environ["PRIVATEMAILD"], "--data-dir", data, "--listen", "127.0.0.1:0", "--log-level",
                               "warning", *options], stdout=subprocess.PIPE, text=True)
    told = {}
    while "listening on" not in told:
        line = daemon.stdout.readline()
        assert line, told
        words, _, last = line.strip().rpartition(" ")
        told[words] = last
    return daemon, told


class Service:
    """A daemon with a collection of pictures, "colours", one of vectors with cells, "things", and "plain" without anchors."""

    def __init__(self, folder, *options):
        self.folder = folder
        self.daemon, told = start_daemon(folder / "data", *options)
        self.address, trust = told["listening on"], told.get("trust this server with: --trust")
        self.command = [os.environ["PRIVATEMAIL"], "--server", self.address, "--state", folder / "state", "--json",
                        *(["--trust", trust, "--key-file", folder / "data/admin.key"] if trust else ["--insecure"])]
        write_pictures(folder / "anchors", range(1, 30, 4))
        write_pictures(folder / "gallery", range(2, 30, 2))
        os.symlink("/etc/hostname", folder / "gallery/red/99.png")
        for name, rows in (("anchors", vectors(100, 2)), ("gallery", vectors(1200, 1))):
            np.save(folder / f"{name}.npy", rows[0])
            np.save(folder / f"{name}_labels.npy", rows[1])
        self.run("collection", "create", "colours", "--anchor-images", folder / "anchors", "--with-encrypted")
        self.run("ingest", "colours", "--images", folder / "gallery", accept=(0, 3))
        self.run("collection", "create", "things", "--anchors", folder / "anchors.npy", "--anchor-labels",
                 folder / "anchors_labels.npy", "--cells", "8", "--publish-quality")
        self.run("ingest", "things", "--vectors", folder / "gallery.npy", "--labels", folder / "gallery_labels.npy")
        for name, epsilon in (("colours", "20"), ("things", "5")):
            self.run("build", name)
            self.run("budget", "set", name, "--epsilon", epsilon, "--delta", "1e-3")
        self.run("collection", "create", "plain")
        picture = "data:image/png;base64," + base64.b64encode(png(COLOURS["red"], 1)).decode()
        (folder / "payloads.jsonl").write_text("".join(json.dumps({"name": f"thing {i}", "thumbnail": picture}) + "\n"
                                                       for i in range(1200)), encoding="utf-8")
        self.run("ingest", "plain", "--vectors", folder / "gallery.npy", "--payloads", folder / "payloads.jsonl")
        until = time.monotonic() + 60
        while subprocess.run([*self.command, "plan", "things"], capture_output=True, check=False).returncode:
            assert time.monotonic() < until, "the quality of the cells is not measured"
            time.sleep(.1)

    def run(self, *arguments, accept=(0,)):
        done = subprocess.run([*self.command, *arguments], stdout=subprocess.PIPE, text=True, check=False)
        assert done.returncode in accept, (arguments, done)
        return json.loads(done.stdout)

    def charges(self, name):
        return [one["epsilon"] for one in self.run("budget", "history", name)["changes"] if one["kind"] == "charge"]

    def calls(self):
        """RPCs that the daemon has answered so far, in order."""
        lines = map(json.loads, (self.folder / "data/audit.jsonl").read_text(encoding="utf-8").splitlines())
        return [line["rpc"] for line in lines if "rpc" in line]

    def stop(self):
        self.daemon.kill()
        self.daemon.wait()
        self.daemon.stdout.close()


class Page:
    """`privatemail page` on one collection. A browser opens `file` first, or of a published port `entry`."""

    def __init__(self, service, collection, pictures, *options):
        self.process = subprocess.Popen([*service.command, "page",
                                         *(["--collection", collection] if collection else []),
                                         *(["--pictures", pictures] if pictures else []),
                                         *(options or ["--no-browser"])], stdout=subprocess.PIPE, text=True)
        told = json.loads(self.process.stdout.readline())
        self.address, self.file, self.entry = told["address"], pathlib.Path(told.get("file", "")), told.get("entry")

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def peers(self):
        """Addresses at the other ends of its sockets, as the kernel writes them."""
        process = pathlib.Path(f"/proc/{self.process.pid}")
        open_files = set()
        for file in (process / "fd").iterdir():
            try:
                open_files.add(os.readlink(file))
            except FileNotFoundError:  # closed since it was listed
                pass
        lines = [line.split() for name in ("tcp", "tcp6", "udp", "udp6")
                 for line in (process / "net" / name).read_text().splitlines()[1:]]
        return {line[2].split(":")[0] for line in lines if f"socket:[{line[9]}]" in open_files}

"""A daemon on loopback and the command line, for the scripts of this folder."""
import json
import os
import re
import shutil
import subprocess
import tempfile

import numpy as np


class Service:
    """Runs privatemaild of a build folder in a new folder; call() returns the JSON lines of a command."""

    def __init__(self, build, *flags):
        self.folder = tempfile.mkdtemp(prefix="privatemail_evaluation_")
        self.client = os.path.join(build, "client/privatemail")
        self.daemon = subprocess.Popen([os.path.join(build, "server/privatemaild"), "--data-dir", self.folder + "/data",
                                        "--listen", "127.0.0.1:0", *flags], stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True)
        for line in self.daemon.stdout:
            if found := re.match(r"trust this server with: --trust (\w+)", line):
                self.trust = found[1]
            if found := re.match(r"listening on (\S+)", line):
                self.server = found[1]
                break

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.daemon.terminate()
        self.daemon.wait()
        shutil.rmtree(self.folder)

    def save(self, name, array):
        path = f"{self.folder}/{name}.npy"
        np.save(path, array)
        return path

    def call(self, *words):
        command = [self.client, *map(str, words), "--server", self.server, "--trust", self.trust, "--key-file",
                   self.folder + "/data/admin.key", "--state", self.folder + "/state", "--json"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr}")
        return [json.loads(line) for line in done.stdout.splitlines()]

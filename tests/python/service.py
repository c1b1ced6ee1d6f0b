"""A daemon with one built collection, for the tests of the package."""

import json
import os
import subprocess
import tempfile
import time

import numpy as np

import privatemail as pm

CLASSES, DIM = 10, 16


def gallery(rows, seed=1):
    """Rows around one centre a class, and their labels."""
    centres = 3 * np.random.default_rng(0).standard_normal((CLASSES, DIM))
    labels = np.arange(rows) % CLASSES
    return (centres[labels] + np.random.default_rng(seed).standard_normal((rows, DIM))).astype(np.float32), labels


class Service:
    """Items are named by their rows and have payloads {"row": ROW}."""

    ARGUMENTS = []  # of the daemon
    CELL_CODE = "scalar8"

    def __init__(self, items=2000):
        self.folder = tempfile.TemporaryDirectory()
        self.state = os.path.join(self.folder.name, "state")
        self.server = pm.Server.local(os.path.join(self.folder.name, "data"), state=self.state,
                                      arguments=self.ARGUMENTS)
        self.rows, self.labels = gallery(items)
        anchors, anchor_labels = gallery(100, seed=2)
        self.things = self.server.create_collection("things", anchors, anchor_labels, cells=[8], cell_code=self.CELL_CODE,
                                                    publish_quality=True)
        self.things.ingest(self.rows, labels=self.labels, payloads=[{"row": row} for row in range(items)])
        self.things.build()

    def wait_until_ready(self, collection):
        """Until queries for its cells are answered, and their quality is measured if it is published."""
        for _ in range(600):
            try:
                if collection.info()["cells_ready"] and collection.plan(epsilon=1):
                    return
            except pm.Unavailable:
                pass
            except pm.FailedPrecondition:  # it publishes none
                return
            time.sleep(.1)
        raise AssertionError("the cells are not ready")

    def __enter__(self):
        return self.server

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.server.close()
        self.folder.cleanup()


class TwoOperators(Service):
    """A second operator, too, with a copy of the image. things: of a client of both."""

    ARGUMENTS = ["--operator", "North", "--allow-scores"]
    CELL_CODE = "float16"

    def __init__(self, items=2000):
        super().__init__(items)
        self.wait_until_ready(self.things)
        self.second = pm.Server.local(os.path.join(self.folder.name, "second"),
                                      arguments=["--operator", "South", "--allow-scores"])
        self.image = self.run("image", "make", "things", "--with-scores", "--list-items", str(items // 5))
        self.run("mirror", "things", "--pin", self.image["signer"], "--second-server", self.second.address,
                 "--second-ca", self.second.ca_file, "--second-key-file", self.second.key_file)
        self.things = self.client(second=self.second.client).collection("things")

    def client(self, **options):
        """A client of the first operator."""
        return pm.connect(self.server.address, ca_file=self.server.ca_file, key_file=self.server.key_file,
                          state=self.state, **options)

    def run(self, *words):
        """What the command line prints."""
        connection = ["--server", self.server.address, "--ca", self.server.ca_file, "--key-file",
                      self.server.key_file, "--state", self.state]
        return json.loads(subprocess.run([os.environ["PRIVATEMAIL"], "--json", *words, *connection],
                                         stdout=subprocess.PIPE, check=True).stdout)

    def close(self):
        self.second.close()
        super().close()

"""A daemon with one built collection, for the tests of the package."""

import os
import tempfile
import time

import privatemail as pm
from page_service import vectors as gallery


class Service:
    """Items are named by their rows and have payloads {"row": ROW}."""

    def __init__(self, items=2000):
        self.folder = tempfile.TemporaryDirectory()
        self.state = os.path.join(self.folder.name, "state")
        self.server = pm.Server.local(os.path.join(self.folder.name, "data"), state=self.state)
        self.rows, self.labels = gallery(items)
        anchors, anchor_labels = gallery(100, seed=2)
        self.things = self.server.create_collection("things", anchors, anchor_labels, cells=[8],
                                                    publish_quality=True)
        self.things.ingest(self.rows, labels=self.labels, payloads=[{"row": row} for row in range(items)])
        self.things.build()

    def wait_until_ready(self, collection):
        """Until queries for its cells are answered, and their quality is measured if it is published."""
        for _ in range(3000):
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

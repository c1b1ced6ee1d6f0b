"""PrivateMail, FAISS and hnswlib as algorithms of ann-benchmarks (github.com/erikbern/ann-benchmarks), by cosine.

Its runner calls fit, set_query_arguments, query, get_additional and done; run.py does so without it. `epsilon` is
infinite for an index that is sent the query itself.
"""

import math
import resource
import shutil
import tempfile
import time

import numpy as np

MAX_WAIT_SECONDS = 600


class Algorithm:
    name, epsilon = "", math.inf

    def __init__(self):
        self.bytes = 0  # that the queries sent and received, or would have

    def query(self, vector, k):
        self.bytes += 4 * len(vector) + 8 * k  # a vector of floats; row and distance of each neighbour
        return self.nearest(np.ascontiguousarray(vector, np.float32).reshape(1, -1), k)

    def get_additional(self):
        return {"bytes": self.bytes, "epsilon": self.epsilon}

    def get_memory_usage(self):
        """In kB, of this process."""
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def done(self):
        pass

    def __str__(self):
        return self.name


def unit(rows):
    return np.ascontiguousarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


class FaissFlat(Algorithm):
    name = "FAISS flat"

    def fit(self, rows):
        import faiss  # pylint: disable=import-outside-toplevel
        self.index = faiss.IndexFlatIP(rows.shape[1])
        self.index.add(unit(rows))

    def nearest(self, vector, k):
        return self.index.search(vector, k)[1][0]


class FaissIvf(FaissFlat):
    def __init__(self, lists):
        super().__init__()
        self.lists = lists

    def fit(self, rows):
        import faiss  # pylint: disable=import-outside-toplevel
        self.index = faiss.IndexIVFFlat(faiss.IndexFlatIP(rows.shape[1]), rows.shape[1], self.lists,
                                        faiss.METRIC_INNER_PRODUCT)
        self.index.train(unit(rows))
        self.index.add(unit(rows))

    def set_query_arguments(self, probes):
        self.index.nprobe = probes
        self.name = f"FAISS IVF, {probes} of {self.lists} lists"


class Hnsw(Algorithm):
    def __init__(self, links, construction):
        super().__init__()
        self.links, self.construction = links, construction

    def fit(self, rows):
        import hnswlib  # pylint: disable=import-outside-toplevel
        self.index = hnswlib.Index("cosine", rows.shape[1])
        self.index.init_index(len(rows), M=self.links, ef_construction=self.construction)
        self.index.add_items(np.ascontiguousarray(rows, np.float32))

    def set_query_arguments(self, candidates):
        self.index.set_ef(candidates)
        self.name = f"hnswlib, ef {candidates}"

    def nearest(self, vector, k):
        return self.index.knn_query(vector, k)[0][0]


class PrivateMail(Algorithm):
    """A daemon of its own; privatemaild is that on the PATH or in $PRIVATEMAILD.

    scheme: "cells" or "joint". anchors: so many random rows of the gallery are public. labels: of the rows; by default
    that of the nearest of `classes` anchors.
    """

    DELTA = 1e-6  # of a query of the joint scheme

    def __init__(self, scheme, anchors=1000, classes=32, cells=64, labels=None):
        super().__init__()
        self.scheme, self.anchors, self.classes, self.cells, self.labels = scheme, anchors, classes, cells, labels
        self.server, self.things, self.items, self.state = None, None, None, tempfile.mkdtemp()

    def fit(self, rows):
        import privatemail as pm  # pylint: disable=import-outside-toplevel
        public = np.random.default_rng(1).choice(len(rows), min(self.anchors, len(rows)), replace=False)
        labels = self.labels
        if labels is None:
            labels = (unit(rows) @ unit(rows[public[:self.classes]]).T).argmax(axis=1)
        cells = {"cells": [self.cells], "cell_code": "float16"} if self.scheme == "cells" else {}
        self.server = pm.Server.local(state=self.state)
        self.things = self.server.create_collection("things", rows[public], labels[public], **cells)
        self.things.ingest(rows, labels=labels)  # ids are row numbers
        self.things.build(accept_misalignment=True)
        self.things.budget.grant(epsilon=1e6, delta=.1)
        until = time.monotonic() + MAX_WAIT_SECONDS
        while self.scheme == "cells" and not self.things.info()["cells_ready"]:
            if time.monotonic() > until:
                raise TimeoutError(f"cells are not ready after {MAX_WAIT_SECONDS} s")
            time.sleep(.2)

    def set_query_arguments(self, epsilon, items=None):
        self.epsilon, self.items = epsilon, items
        self.name = f"PrivateMail {self.scheme}" + (f", {items} items" if items else "")

    def query(self, vector, k):
        arguments = {"items": self.items} if self.scheme == "cells" else {
            "delta": self.DELTA, "accept_misalignment": True}
        hits = self.things.search(vector, k=k, scheme=self.scheme, epsilon=self.epsilon, payloads=False, **arguments)
        self.bytes += hits.bytes_up + hits.bytes_down
        return np.array([int(row) for row in hits.ids])

    def done(self):
        if self.server is not None:
            self.server.close()
        shutil.rmtree(self.state, ignore_errors=True)

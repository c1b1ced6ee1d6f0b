"""Private k-nearest-neighbour retrieval: search a server's collection without telling it what you hold.

    import numpy as np, privatemail as pm

    with pm.Server.local() as server:                 # a daemon of one's own, in a temporary folder
        fruit = server.create_collection("fruit", anchors=A, anchor_labels=AL)
        fruit.ingest(V, labels=L, ids=names)
        fruit.build()
        fruit.budget.grant(epsilon=1, delta=1e-4)
        hits = fruit.search(q, k=8, epsilon=.1, delta=1e-5)

    pm.calibrate("gaussian", epsilon=1, delta=1e-5, sensitivity=1)     # and pm.sensitivity, pm.audit
    pm.connect("search.example.org:50051", trust="...", key_file="...").collection("fruit").search(q, ...)

Arrays: a row is a feature vector. Everything private stays in this process; the C++ core samples the noise and
charges the ledger, which the command line shares.

What calls return (help(pm.Hits) shows one): Hits, EncryptedHits, Matches and their Hit; Guarantee, EncryptedGuarantee,
Spending, Budget; Ingested, Snapshot, Plan, Estimate, Page; Calibration, Sensitivity, Audit.
Every error is a PrivateMailError: help(pm.errors), also as pm.InvalidArgument and so on.
"""

import importlib
from typing import TYPE_CHECKING, Any, List

from privatemail import _results, _tuned, errors

if TYPE_CHECKING:
    from privatemail._client import Budget as Budget, Client, Collection, connect
    from privatemail._core import __version__ as __version__
    from privatemail._images import Extractor
    from privatemail._page import Page as Page, page
    from privatemail._privacy import (Audit as Audit, Calibration as Calibration, Sensitivity as Sensitivity, audit,
                                      calibrate, sensitivity)
    from privatemail._results import *
    from privatemail._server import Server
    from privatemail.errors import *

__path__[:0] = _tuned.folders()

# By module. Imported at first use: privatemail.evaluation must not be in one process with the core that has a network
# channel.
_MODULES = {
    "_client": ["Budget", "Client", "Collection", "connect"],
    "_core": ["__version__"],
    "_images": ["Extractor"],
    "_page": ["Page", "page"],
    "_privacy": ["Audit", "Calibration", "Sensitivity", "audit", "calibrate", "sensitivity"],
    "_results": _results.__all__,
    "_server": ["Server"],
    "errors": errors.__all__,
}

# help(privatemail) describes these in full; dir() lists all names.
__all__ = ["Client", "Collection", "Extractor", "Server", "audit", "calibrate", "connect", "errors", "page", "sensitivity"]


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(importlib.import_module(f"privatemail.{module}"), name)
    raise AttributeError(f"module 'privatemail' has no attribute {name!r}")


def __dir__() -> List[str]:
    return sorted({"errors", *(name for names in _MODULES.values() for name in names)})

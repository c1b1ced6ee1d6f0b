"""Releases, embeddings and attacks of the C++ core with seeded noise, which hides nothing.

All rows are float64, C-contiguous, of length 1; labels int32. Calls release the interpreter's lock. Equal arguments
give equal results on any number of threads. Errors are exceptions of privatemail.errors; FailedPrecondition where a
server or client would refuse.
"""

from typing import Any, Dict, List, Optional, Tuple

import numpy as np
from numpy.typing import NDArray

F = NDArray[np.float64]
I = NDArray[np.int64]

__version__: str

# settings: any object with the attributes of privatemail.evaluation.study.Settings; alpha must be a number.
def default_alpha(label_graph: str, labels: I) -> float: ...
def check_settings(settings: Any) -> None: ...
def read_vectors(path: str) -> NDArray[np.float32]:
    """The rows of a file of vectors, as the command line reads them."""
def read_labels(path: str, rows: int) -> Tuple[List[int], List[str]]:
    """Numbers or names, or both for a text file of integers, as the command line reads them."""
def mechanisms() -> List[Dict[str, Any]]:
    """name, protects ("value", "output" or "input"), law ("gaussian" or "laplace" or "bounded-gaussian"),
    published (bool), takes_delta (bool)."""
def seed_of(part: str, seed: int, number: int = 0) -> int: ...
def nearest(queries: F, points: F, k: int) -> I:
    """m x k: the rows of `points` nearest to each query, nearest first."""
def gaussian_stddev(epsilon: float, delta: float) -> float:
    """Analytic Gaussian mechanism, sensitivity 1."""
def bounded_gaussian_variances(epsilon: float, delta: float) -> Dict[str, float]:
    """generalised, printed, exact, classical, analytic: variances for two values in [0, 10] and [1, 9] that move by 4
    and 2."""
def cell_ceiling(epsilon: float, share: float) -> float:
    """The most fidelity of any epsilon-DP request that returns this share of the gallery."""

def try_model(path: str, identity: str) -> int: ...

class Extractor:
    @property
    def identity(self) -> str: ...
    @property
    def dim(self) -> int: ...
    def __init__(self, model: str, input_width: int, input_height: int) -> None:
        """model: an ONNX file; "": the built-in descriptor. Both sizes 0: what the model states."""
    def extract(self, paths: List[str], threads: int) -> Tuple[NDArray[np.float32], List[str]]:
        """Features, zeros where an image failed; "" or why each failed."""

class Trial:
    """One split of the data. Immutable and thread-safe; caches graphs and scenes."""
    def __init__(self, anchors: F, anchor_labels: I, gallery: F, gallery_labels: I, targets: F, target_labels: I, *,
                 k: int, seed: int) -> None: ...
    @property
    def nearest(self) -> I:
        """Of each target the k nearest of the gallery."""
    def scene(self, settings: Any) -> "Scene":
        """The collection with these settings. FailedPrecondition: the server refuses to build it."""
    def plan_cells(self, epsilon: float, share: float) -> Tuple[int, int, float]:
        """(cells, items that answer, expected fidelity) of the best plan if `share` of the gallery answers."""
    def ask_cells(self, cells: int, length: int, epsilon: float, part: str) -> I:
        """m x k rows of the gallery that the client ranks first, one query a target."""

class Scene:
    """A collection on a trial: the searcher's side and the server's."""
    @property
    def slot_labels(self) -> I: ...
    @property
    def anchor_rows(self) -> F:
        """p x dim, the server's embedding."""
    def ask(self, *, epsilon: Optional[float] = None, delta: float = 0, mechanism: str = "gaussian",
            radius: Optional[float] = None, private_iterations: int = 1, feature: str = "own", label: str = "own",
            slots: bool = True) -> Tuple[I, float, int]:
        """One query for every target: (m x k rows of the gallery, a row of -1 where none came; mean residual of the
        anchors under the alignment; targets without an answer).

        epsilon None: without noise. feature: "own" or "random", a direction drawn for each target. label: "own" or
        "wrong". slots False: the target's row alone, under its own label, as in the authors' code. Draws are seeded
        by (trial, target) alone."""
    def embed_together(self) -> Tuple[F, F]:
        """(gallery, targets) in one embedding, targets under their labels: not private."""
    def objective(self, iterations: int) -> Tuple[List[float], List[float]]:
        """The server's objective after each iteration: of the iterate as defined, and at norm sqrt(n) divided by n.
        Ends before the first that is not finite."""
    def release(self, target: int, *, epsilon: float, delta: float, part: str) -> Dict[str, Any]:
        """One joint release after post-processing: anchors, slots (before alignment), aligned_anchors, aligned_slots,
        slot (of the target), residual."""
    def attack(self, name: str, *, epsilon: Optional[float], delta: float, part: str) -> List[float]:
        """1 for every target where the attacker was right, else 0. epsilon None: releases without noise. name:
        likelihood, likelihood-of-class, dummies, label, label-without-slots, inversion, cell."""

"""What calls return."""

import dataclasses
import json
import math
from typing import Any, Dict, List, Optional, Union

import numpy as np
from numpy.typing import NDArray

# The package exports these.
__all__ = [
    "EncryptedGuarantee", "EncryptedHits", "Estimate", "Guarantee", "Hits", "Ingested", "Matches", "Plan", "Snapshot",
    "Spending"
]


@dataclasses.dataclass(frozen=True)
class Guarantee:
    """(epsilon, delta)-indistinguishability of every two `neighbours`, and its theorem.

    proven: False if it follows a printed formula without a proof. radius, metric: of Inference Privacy.
    gaussian_mu: it is also mu-Gaussian differential privacy, which adds up with less loss.
    """

    epsilon: float
    delta: float
    neighbours: str
    proven: bool
    source: str
    radius: Optional[float] = None
    metric: str = ""
    gaussian_mu: Optional[float] = None


@dataclasses.dataclass(frozen=True)
class Spending:
    """Epsilon and delta of a collection's budget."""

    epsilon: float
    delta: float


@dataclasses.dataclass(frozen=True)
class Matches:
    """Items near one query, nearest first.

    squared_distances: for cells and, with the metric cosine, encrypted between unit vectors. Joint finds
    items of a class: theirs are of the server's embedding, compare within one answer only and tell nothing of
    nearness. labels: numbers, -2**31 for an item without a label; where the collection has class names, these, and
    None for an item without one. payloads: what ingest gave, None where there is
    none.
    """

    ids: List[str]
    labels: NDArray[Any]
    squared_distances: NDArray[np.float64]
    payloads: List[Any]

    def __len__(self) -> int:
        return len(self.ids)


@dataclasses.dataclass(frozen=True)
class Hits(Matches):
    """The answer to one private query.

    spent, left: of the collection's budget after this query. bytes_up, bytes_down: of request and answer.
    """

    guarantee: Guarantee
    spent: Spending
    left: Spending
    bytes_up: int
    bytes_down: int


@dataclasses.dataclass(frozen=True)
class EncryptedGuarantee:
    """What the server learns of a query: nothing, under an assumption. There is no epsilon, and nothing is charged.

    kind: "computational". bits: of work to tell two queries apart, by Core-SVP.
    """

    kind: str
    bits: int
    assumption: str
    source: str


@dataclasses.dataclass(frozen=True)
class EncryptedHits(Matches):
    """The exact nearest items of one query, found under encryption.

    similarities: cosines, or inner products unless the collection's metric is "cosine". items: that were compared.
    tables: digests of the row tables, the same for every searcher with payloads, or without; one of them unless items changed meanwhile. Bytes
    of all queries of the call: query_bytes, and once a session keys_bytes, were sent; score_bytes, and what has changed
    since the last search, table_bytes and payload_bytes, came back.
    """

    similarities: NDArray[np.float64]
    guarantee: EncryptedGuarantee
    items: int
    tables: List[str]
    query_bytes: int
    keys_bytes: int
    table_bytes: int
    payload_bytes: int
    score_bytes: int


@dataclasses.dataclass(frozen=True)
class Ingested:
    """Counts of an upload."""

    inserted: int
    updated: int
    unchanged: int


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """What a snapshot file holds. latest_version: of the collection's items. bytes: of the file."""

    items: int
    anchors: int
    latest_version: int
    bytes: int


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A mean over queries like the gallery's items, with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclasses.dataclass(frozen=True)
class Plan:
    """Settings of a query for cells, for `search(plan=...)`.

    fulfils: the wish; otherwise it is the best that there is. fingerprint: of the collection's parameters, in
    hexadecimal; the plan holds for no others.
    """

    collection: str
    fingerprint: str
    epsilon: float
    partition: int
    cells: int
    items: int
    fidelity: Estimate
    recall: Estimate
    bytes_down: int
    fulfils: bool


def parse_payload(text: str) -> Any:
    """None where it is empty, or no JSON that Python reads: a hostile server may send anything."""
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None


def _columns(answer: Dict[str, Any], payloads: List[str], named: bool) -> Dict[str, Any]:
    matches = answer["matches"]
    labels = [one["class"] if named else -2**31 if one["label"] is None else one["label"] for one in matches]
    return {"ids": [one["id"] for one in matches], "labels": np.array(labels, object if named else np.int32),
            "squared_distances": np.array([one["squared_distance"] for one in matches], np.float64),
            "payloads": [parse_payload(text) for text in payloads]}


def _spending(given: Dict[str, Any]) -> Spending:
    """JSON has no infinity: the epsilon of charges that Gaussian accounting cannot add up."""
    return Spending(*(math.inf if given[one] is None else given[one] for one in ("epsilon", "delta")))


def to_matches(text: str, payloads: List[str], named: bool) -> Matches:
    return Matches(**_columns(json.loads(text), payloads, named))


def to_hits(text: str, payloads: List[str], named: bool) -> Union[Hits, EncryptedHits]:
    """The answer to one query, from the JSON of the core."""
    answer = json.loads(text)
    columns, sent = _columns(answer, payloads, named), answer["bytes"]
    if answer["scheme"] != "encrypted":
        return Hits(**columns, guarantee=Guarantee(**answer["guarantee"]), spent=_spending(answer["ledger"]["spent"]),
                    left=_spending(answer["ledger"]["left"]), bytes_up=sent["up"], bytes_down=sent["down"])
    similarities = np.array([one["similarity"] for one in answer["matches"]], np.float64)
    return EncryptedHits(**columns, similarities=similarities, guarantee=EncryptedGuarantee(**answer["guarantee"]),
                         items=answer["candidates"], tables=answer["tables"], query_bytes=sent["up"],
                         keys_bytes=sent["keys"], table_bytes=sent["table"], payload_bytes=sent["payloads"],
                         score_bytes=sent["down"])

"""What calls return."""

import dataclasses
import json
from typing import Any, Dict, List, Optional, Tuple

import numpy as np
from numpy.typing import NDArray


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

    squared_distances: for cells, two servers and, with the metric cosine, encrypted between unit vectors. Joint and
    anchored find items of a class: theirs are of the server's embedding, compare within one answer only and tell
    nothing of nearness. labels: -2**31 for an item without a label. payloads: what ingest gave, None where there is
    none.
    """

    ids: List[str]
    labels: NDArray[np.int32]
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
class TwoServerGuarantee:
    """What the servers of two operators learn of a query. It holds if they do not share what they see.

    server_a, server_b: each alone learns nothing: "perfect", or "computational" under `assumption`. Server A is the
    client's, B that of `second`. both_learn: what they learn together if they do share. both_bounded: a bound on that,
    of searches with epsilon. source: of the proofs.
    """

    server_a: str
    server_b: str
    assumption: str
    both_learn: str
    both_bounded: Optional[Guarantee]
    source: str


@dataclasses.dataclass(frozen=True)
class TwoServerHits(Matches):
    """The answer to one private query at two operators.

    mode: "scores" or "lists". lists: those that were fetched. candidates: items that were compared. operators: as they
    call themselves. image: its digest. spent, left: of the collection's budget, of searches with epsilon. bytes_up,
    bytes_down: of the requests to, and the answers of, both servers together.
    """

    guarantee: TwoServerGuarantee
    mode: str
    lists: List[int]
    candidates: int
    operators: Tuple[str, str]
    image: str
    spent: Optional[Spending]
    left: Optional[Spending]
    bytes_up: int
    bytes_down: int


@dataclasses.dataclass(frozen=True)
class EncryptedGuarantee:
    """What the server learns of a query: nothing, under an assumption. There is no epsilon, and nothing is charged.

    kind: "computational". bits: of work to tell two queries apart, by the best attacks that are known.
    """

    kind: str
    bits: int
    assumption: str
    source: str


@dataclasses.dataclass(frozen=True)
class EncryptedHits(Matches):
    """The exact nearest items of one query, found under encryption.

    similarities: cosines, or inner products unless the collection's metric is "cosine". items: that were compared.
    table: digest of the row table, the same for every searcher of this version. Bytes of all queries of the call:
    query_bytes, and once a session keys_bytes, were sent; score_bytes, and what has changed since the last search,
    table_bytes and payload_bytes, came back.
    """

    similarities: NDArray[np.float64]
    guarantee: EncryptedGuarantee
    items: int
    table: str
    query_bytes: int
    keys_bytes: int
    table_bytes: int
    payload_bytes: int
    score_bytes: int


@dataclasses.dataclass(frozen=True)
class Ingested:
    """Counts of an upload. first_rejected: up to 100 of (row, id, reason)."""

    inserted: int
    updated: int
    unchanged: int
    rejected: int
    first_rejected: List[Any]


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


def _columns(answer: Dict[str, Any]) -> Dict[str, Any]:
    return {"ids": answer["ids"], "labels": np.array(answer["labels"], np.int32),
            "squared_distances": np.array(answer["squared_distances"], np.float64),
            "payloads": [parse_payload(text) for text in answer["payloads"]]}


def to_matches(answer: Dict[str, Any]) -> Matches:
    return Matches(**_columns(answer))


def to_hits(answer: Dict[str, Any]) -> Hits:
    return Hits(**_columns(answer), guarantee=Guarantee(**answer["guarantee"]), spent=Spending(*answer["spent"]),
                left=Spending(*answer["left"]), bytes_up=answer["bytes_up"], bytes_down=answer["bytes_down"])


def to_encrypted_hits(answer: Dict[str, Any]) -> EncryptedHits:
    given: Dict[str, Any] = {**answer, **_columns(answer),
                             "similarities": np.array(answer["similarities"], np.float64),
                             "guarantee": EncryptedGuarantee(**answer["guarantee"])}
    return EncryptedHits(**given)


def _spending(given: Optional[Tuple[float, float]]) -> Optional[Spending]:
    return None if given is None else Spending(*given)


def to_two_server_hits(answer: Dict[str, Any]) -> TwoServerHits:
    told: Dict[str, Any] = dict(answer["guarantee"])
    if told["both_bounded"] is not None:
        told["both_bounded"] = Guarantee(**told["both_bounded"])
    given: Dict[str, Any] = {**answer, **_columns(answer), "spent": _spending(answer["spent"]),
                             "left": _spending(answer["left"]),
                             "guarantee": TwoServerGuarantee(**told)}
    return TwoServerHits(**given)

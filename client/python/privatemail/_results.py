"""What calls return."""

import dataclasses
import html
import importlib
import json
import math
from typing import Any, Dict, Iterator, List, Optional, Sequence, Union

import numpy as np
from numpy.typing import NDArray

from privatemail.errors import FailedPrecondition

# The package exports these.
__all__ = [
    "EncryptedGuarantee", "EncryptedHits", "Estimate", "Guarantee", "Hit", "Hits", "Ingested", "Matches", "Plan",
    "Snapshot", "Spending"
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
    """Epsilon and delta of a collection's budget, rounded to 12 digits, which the ledger is not."""

    epsilon: float
    delta: float


@dataclasses.dataclass(frozen=True)
class Hit:
    """One item of an answer. label: None for an item without one. similarity: of encrypted searches only."""

    id: str
    label: Optional[int]
    squared_distance: float
    payload: Any
    similarity: Optional[float] = None


_MAX_ROWS_SHOWN = 50  # of a table in a notebook


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Matches(Sequence[Any]):
    """Items near one query, nearest first: a sequence of Hit, with the same values by columns.

    squared_distances: for cells and, with the metric cosine, encrypted between unit vectors. Joint finds
    items of a class: theirs are of the server's embedding, compare within one answer only and tell nothing of
    nearness; both to 6 digits. labels: masked, and None in lists, for an item without a label; where the collection has class names,
    these, or None. payloads: what ingest gave, None where there is none.
    """

    ids: List[str]
    labels: NDArray[Any]
    squared_distances: NDArray[np.float64]
    payloads: List[Any]

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, at: Any) -> Any:  # not Hit: the type of a batch's answers is that of one
        return list(self)[at]

    def __repr__(self) -> str:
        shown = [repr(one) + self._remark(row) for row, one in enumerate(self.ids[:4])]
        more = ["..."] if len(self) > len(shown) else []
        return f"{type(self).__name__}({': '.join(filter(None, [str(len(self)), ', '.join(shown + more)]))})"

    def _remark(self, row: int) -> str:
        """The similarity of an item, or its class."""
        if isinstance(self, EncryptedHits):
            return f" {self.similarities[row]}"
        label = self._columns()["label"][row]
        return "" if label is None else f" ({label})"

    def __iter__(self) -> Iterator[Any]:
        return map(Hit, *self._columns().values())

    def _columns(self) -> Dict[str, List[Any]]:
        """By the names of Hit."""
        labels: Any = self.labels
        columns = {"id": self.ids, "label": labels.tolist(), "squared_distance": self.squared_distances.tolist(),
                   "payload": self.payloads}
        if isinstance(self, EncryptedHits):
            columns["similarity"] = self.similarities.tolist()
        return columns

    def to_dict(self) -> Dict[str, Any]:
        """All fields, as values that JSON can hold."""
        return {field.name: _plain(getattr(self, field.name)) for field in dataclasses.fields(self)}

    def to_pandas(self) -> Any:
        """A pandas.DataFrame with a row for each item and the columns of Hit."""
        try:
            pandas = importlib.import_module("pandas")
        except ImportError as error:
            raise FailedPrecondition("to_pandas needs the package pandas, which is not installed") from error
        columns = self._columns()
        if self.labels.dtype != object:  # without class names
            columns["label"] = pandas.array(columns["label"], "Int32")
        return pandas.DataFrame(columns)

    def _repr_html_(self) -> str:
        columns = self._columns()
        rows = [list(columns)] + [[_cell(value) for value in row]
                                  for row in list(zip(*columns.values()))[:_MAX_ROWS_SHOWN]]
        table = "".join("<tr>" + "".join(f"<{tag}>{html.escape(text)}</{tag}>" for text in row) + "</tr>"
                        for tag, row in zip(["th"] + ["td"] * len(self), rows))
        more = len(self) - _MAX_ROWS_SHOWN
        return f"<table>{table}</table>" + (f"<p>and {more} more</p>" if more > 0 else "")


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return dataclasses.asdict(value)
    return value.tolist() if isinstance(value, np.ndarray) else value


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
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


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
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


def _short(matches: List[Dict[str, Any]], name: str) -> NDArray[np.float64]:
    """To 6 digits: a score under encryption has 4 decimals, a code of a cell hardly more."""
    return np.array([float(f"{one[name]:.6g}") for one in matches], np.float64)


def _columns(answer: Dict[str, Any], payloads: List[str], named: bool) -> Dict[str, Any]:
    matches = answer["matches"]
    untyped: Any = np.ma
    values = [one["class"] if named else one["label"] for one in matches]
    labels = np.array(values, object) if named else untyped.array(
        [-2**31 if value is None else value for value in values], np.int32, mask=[value is None for value in values],
        fill_value=-2**31)
    return {"ids": [one["id"] for one in matches], "labels": labels,
            "squared_distances": _short(matches, "squared_distance"),
            "payloads": [parse_payload(text) for text in payloads]}


def to_spending(given: Dict[str, Any]) -> Spending:
    """JSON has no infinity: the epsilon of charges that Gaussian accounting cannot add up. Sums show no .30000000000000004."""
    return Spending(*(math.inf if given[one] is None else float(f"{given[one]:.12g}") for one in ("epsilon", "delta")))


def to_matches(text: str, payloads: List[str], named: bool) -> Matches:
    return Matches(**_columns(json.loads(text), payloads, named))


def to_hits(text: str, payloads: List[str], named: bool) -> Union[Hits, EncryptedHits]:
    """The answer to one query, from the JSON of the core."""
    answer = json.loads(text)
    columns, sent = _columns(answer, payloads, named), answer["bytes"]
    if answer["scheme"] != "encrypted":
        return Hits(**columns, guarantee=Guarantee(**answer["guarantee"]), spent=to_spending(answer["ledger"]["spent"]),
                    left=to_spending(answer["ledger"]["left"]), bytes_up=sent["up"], bytes_down=sent["down"])
    return EncryptedHits(**columns, similarities=_short(answer["matches"], "similarity"), guarantee=EncryptedGuarantee(**answer["guarantee"]),
                         items=answer["candidates"], tables=answer["tables"], query_bytes=sent["up"],
                         keys_bytes=sent["keys"], table_bytes=sent["table"], payload_bytes=sent["payloads"],
                         score_bytes=sent["down"])

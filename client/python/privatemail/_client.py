"""Clients of a server, and of its collections."""

from __future__ import annotations

import difflib
import json
import os
import sys
import warnings
from typing import Any, Callable, Dict, Iterator, List, Literal, NoReturn, Optional, Sequence, Set, Tuple, Union, overload

import numpy as np
from numpy.typing import ArrayLike

from privatemail import _arrays, _core
from privatemail._aio import Aio
from privatemail._calls import checked_call
from privatemail._progress import progress_bar
from privatemail._results import (EncryptedHits, Estimate, Hits, Ingested, Matches, Plan, Snapshot, Spending,
                                  parse_payload, to_hits, to_matches, to_spending)
from privatemail.errors import (AlreadyExists, FailedPrecondition, PrivateMailWarning, WrongUse, about, of_status,
                                wrong)

Path = Union[str, "os.PathLike[str]"]

_NO_COPY = ("a client cannot be copied or pickled, since a copy would spend the same budget unseen: connect again "
            "instead")


class _NotCopied:
    """Refuses copies and pickles, which all ask for this method."""

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise WrongUse(_NO_COPY)


DEFAULT_SERVER = "127.0.0.1:50051"  # the command line's, too


@checked_call
def connect(server: str = "", *, trust: str = "", ca_file: Path = "", key_file: Path = "",
            certificate: Path = "", certificate_key: Path = "", insecure: bool = False, deadline: float = 30.0,
            max_memory: int = 1 << 30, state: Path = "") -> "Client":
    """A client of a daemon. Connects at the first call.

    server: HOST:PORT. trust: SHA-256 fingerprint of its certificate; or ca_file: PEM; neither: the system's
    authorities. key_file: file with the access key, of mode 0600. certificate, certificate_key: PEM, for mutual TLS.
    insecure: no TLS. deadline: seconds of a call. max_memory: bytes that answers may take. state: folder of the ledger;
    by default the command line's, so that there is one budget.
    What is not given is taken from the environment: PRIVATEMAIL_SERVER (else 127.0.0.1:50051), PRIVATEMAIL_STATE and, for
    that server alone, PRIVATEMAIL_TRUST, else PRIVATEMAIL_CA (unless ca_file or insecure is given) and
    PRIVATEMAIL_KEY_FILE (unless insecure).
    """
    deadline, max_memory = _arrays.number("deadline", deadline), _arrays.integer("max_memory", max_memory)
    server, trust = _arrays.text("server", server), _arrays.text("trust", trust)
    insecure, state = _arrays.flag("insecure", insecure), _arrays.path("state", state)
    ca_file, key_file = _arrays.path("ca_file", ca_file), _arrays.path("key_file", key_file)
    certificate = _arrays.path("certificate", certificate)
    certificate_key = _arrays.path("certificate_key", certificate_key)
    usual = os.environ.get("PRIVATEMAIL_SERVER") or DEFAULT_SERVER
    server = server or usual
    if not insecure and server == usual:  # another server must not get this one's key
        trust = trust or ("" if ca_file else os.environ.get("PRIVATEMAIL_TRUST", ""))
        ca_file = ca_file or ("" if trust else os.environ.get("PRIVATEMAIL_CA", ""))
        key_file = key_file or os.environ.get("PRIVATEMAIL_KEY_FILE", "")
    given = {"--server": server, "--ca": ca_file, "--trust": trust, "--cert": certificate,
             "--cert-key": certificate_key,
             "--key-file": key_file, "--state": state, "--deadline": deadline, "--max-memory": max_memory}
    flags = [word for flag, value in given.items() if value for word in (flag, str(value))]
    return Client(_core.Session(server=server, ca_file=ca_file, trust=trust, certificate=certificate,
                                certificate_key=certificate_key, insecure=insecure, key_file=key_file,
                                deadline=deadline, max_memory=max_memory, state_folder=state),
                  server, flags + ["--insecure"] * insecure)


@checked_call
class Client(_NotCopied):
    """A connection and a state folder. Thread-safe; not to be used after a fork. See `connect`."""

    def __init__(self, session: _core.Session, server: str, flags: List[str]) -> None:
        self._session: Optional[_core.Session] = session
        self._server = server
        self._flags = flags  # the same connection for `privatemail`
        self._warned_of_charges: Set[str] = set()  # names of collections

    def __repr__(self) -> str:
        return f"Client({self._server!r}, {'closed' if self._session is None else f'state={self.state!r}'})"

    @property
    def state(self) -> str:
        """The folder with ledger, last release and row tables."""
        return self._open().state_folder

    @property
    def aio(self) -> Aio:
        """The calls below as coroutines."""
        return Aio(self)

    def _open(self) -> _core.Session:
        if self._session is None:
            raise FailedPrecondition("client is closed")
        return self._session

    def close(self) -> None:
        """Drops the connection; later calls raise."""
        self._session = None

    def collections(self) -> List["Collection"]:
        """The collections that the key covers."""
        return [Collection(self, one["name"]) for one in self._open().list_collections()]

    def collection(self, name: str) -> "Collection":
        """A collection by name; it is looked up at its first call."""
        return Collection(self, name)

    def create_collection(self, name: str, anchors: Optional[ArrayLike] = None,
                          anchor_labels: Optional[ArrayLike] = None, *, class_names: Sequence[str] = (),
                          extractor: str = "vectors", cells: Sequence[int] = (), cell_code: str = "scalar8",
                          publish_quality: bool = False, metric: str = "cosine", with_encrypted: bool = False,
                          **settings: Any) -> "Collection":
        """Creates a collection, from PUBLIC anchors or without any.

        anchors: n x d, at least embedding_dim + 1 rows, for joint and cells. Without them only encrypted is
        offered, and the first items fix d. anchor_labels: n integers >= 0 or n strings, for joint. class_names: one for
        each distinct label, ascending; by default the strings in the order of the alphabet; without anchor_labels names
        of the items' labels 0, 1, ..., to which ingest appends. cells: numbers of cells of each partition; EVERY
        SEARCHER CAN THEN DOWNLOAD VECTORS OF THE GALLERY with the precision of cell_code. metric: "cosine", "dot" or "euclidean", by
        which encrypted ranks. with_encrypted: offer encrypted beside the schemes of anchors; as without anchors, EVERY
        SEARCHER THEN DOWNLOADS ALL IDS, LABELS AND PAYLOADS AND CAN COMPUTE ALL VECTORS from d queries. settings, with
        anchor_labels only: label_graph, alpha, embedding_dim, kernel_bandwidth, steps.
        """
        array = None if anchors is None else _arrays.rows("anchors", anchors, copy=True)
        if array is None and anchor_labels is not None:
            raise wrong("anchor_labels", "must not be given without anchors")
        given, class_names = [], _arrays.texts("class_names", class_names)
        if array is not None and anchor_labels is not None:
            numbers, names = _arrays.label_column("anchor_labels", anchor_labels, len(array))
            missing = np.equal(names, "") if numbers is None else numbers == -2**31
            if missing.any():
                raise wrong("anchor_labels", f"must name the class of every anchor, but row {missing.argmax()} has none")
            if names and not class_names:
                class_names = sorted(set(names))
            given = numbers.tolist() if numbers is not None else _numbers("anchor_labels", names,
                                                                         dict(zip(class_names, range(2**31))))
        if settings and not given:
            raise wrong(next(iter(settings)), "must not be given without anchor_labels")
        self._open().create_collection(_arrays.text("name", name), array, given, class_names,
                                       _arrays.text("extractor", extractor), _arrays.settings(settings),
                                       _arrays.integers("cells", cells), _arrays.text("cell_code", cell_code),
                                       _arrays.flag("publish_quality", publish_quality),
                                       _arrays.text("metric", metric),
                                       _arrays.flag("with_encrypted", with_encrypted))
        return Collection(self, name)

    def restore(self, name: str, path: Path, *, build: bool = True) -> "Collection":
        """Creates the collection `name` from a file of Collection.snapshot, whole or not at all, and builds it.

        It keeps its digest, so that clients' budgets stay valid, unless the server has a collection with it. Needs an
        admin key. build: False: `build` of the collection is left to you.
        """
        with progress_bar("restore") as show, about("path"):
            items = self._open().restore(_arrays.text("name", name), _arrays.path("path", path), show)
        collection = Collection(self, name)
        if build and items > 0:
            collection.build(accept_misalignment=True)
        return collection

    def create_key(self, name: str, *, scopes: Sequence[str] = ("search",), collections: Sequence[str] = (),
                   requests_per_second: float = 0.0, expires_at: int = 0) -> Tuple[Dict[str, Any], str]:
        """Creates an access key; returns (its record, its text). The text is shown only this once.

        scopes: of "search", "write", "admin". collections: names; none: all. expires_at: seconds since 1970; 0: never.
        """
        return self._open().create_key(_arrays.text("name", name), _arrays.texts("scopes", scopes),
                                       _arrays.texts("collections", collections),
                                       _arrays.number("requests_per_second", requests_per_second),
                                       _arrays.integer("expires_at", expires_at))

    def keys(self) -> List[Dict[str, Any]]:
        """All keys, with those that were revoked or expired last, as dicts."""
        return self._open().list_keys()

    def revoke_key(self, key_id: str) -> Dict[str, Any]:
        """Revokes a key by its id; running streams with it end, too."""
        return self._open().revoke_key(_arrays.text("key_id", key_id))


def _warner() -> Callable[[str], None]:
    """A function that warns as if the user's line that now calls a method did. Other threads may call it."""
    frame = sys._getframe(1)
    for _ in range(2):  # the method was called by checked_call, that by the user, or by C
        frame = frame.f_back or frame
    file, line, module = frame.f_code.co_filename, frame.f_lineno, frame.f_globals.get("__name__")
    seen = frame.f_globals.setdefault("__warningregistry__", {})
    return lambda text: warnings.warn_explicit(text, PrivateMailWarning, file, line, module, seen)


def _item(one: Dict[str, Any], names: Dict[Optional[int], str]) -> Dict[str, Any]:
    """With its name as the label, or the number that has none."""
    return dict(one, payload=parse_payload(one["payload"]), label=names.get(one["label"], one["label"]))


def _name_of_label(info: Dict[str, Any]) -> Dict[Optional[int], str]:
    return {number: name for name, number in _names_of(info).items()}


def _names_of(info: Dict[str, Any]) -> Dict[str, int]:
    """The label of each class name."""
    return dict(zip(info["class_names"], info["labels"] or range(2**31)))


def _numbers(field: str, names: Sequence[str], known: Dict[str, int]) -> List[int]:
    for row, name in enumerate(names):
        if name not in known:
            some, near = ", ".join(map(repr, sorted(known)[:8])), difflib.get_close_matches(name, known, 1)
            raise wrong(field, f"must be class names of the collection ({some or 'it has none'}), but row {row} is not"
                        + "".join(f"; did you mean {one!r}?" for one in near))
    return [known[name] for name in names]


def _labels_of(label: Optional[ArrayLike], count: int) -> Optional[Sequence[Union[int, str]]]:
    if label is None:
        return None
    one = not isinstance(label, (list, tuple)) and np.ndim(label) == 0
    every = np.broadcast_to(np.asarray(label), count) if one else label
    numbers, names = _arrays.label_column("label", every, count)
    if numbers is None:
        return names
    return [int(one) for one in numbers]


def _json(field: str, given: Any) -> str:
    try:
        return "" if given is None else json.dumps(given, default=_arrays.json_value)
    except (TypeError, ValueError, RecursionError):
        raise wrong(field, f"must be a dict that JSON can hold") from None



@checked_call
class Budget:
    """The privacy budget of a collection, in the ledger of the state folder."""

    def __init__(self, collection: "Collection") -> None:
        self._collection = collection

    def _show(self) -> Dict[str, Any]:
        return self._collection._session.show_budget(self._collection._uuid())

    def grant(self, *, epsilon: float, delta: Optional[float] = None, accounting: str = "",
              operator: Optional[str] = None) -> None:
        """Sets the total over the collection's life; charges stay. Above epsilon 20 it warns of what that allows.

        delta: by default as before, at first 0, which pays for releases without delta only, such as cells.
        accounting: "basic" adds up epsilon and delta, "gaussian" mu; by default as before, at first basic.
        operator: a name of yours for the operator of this server. The total is then over all collections of all
        servers that were added to the operator so, beside the collections' own budgets.
        """
        uuid = self._collection._uuid() if operator is None else ""
        name = "" if operator is None else _arrays.text("operator", operator)
        if operator == "":
            raise wrong("operator", "must be a name, but is empty")
        epsilon = _arrays.number("epsilon", epsilon)
        if told := _core.describe_grant(epsilon):
            _warner()(told)
        self._collection._session.grant(uuid, epsilon,
                                        None if delta is None else _arrays.number("delta", delta),
                                        _arrays.text("accounting", accounting), name)

    @property
    def granted(self) -> Optional[Spending]:
        """None: nothing was granted, so that every search is refused."""
        granted = self._show()["granted"]
        return None if granted is None else to_spending(granted)

    @property
    def spent(self) -> Spending:
        return to_spending(self._show()["spent"])

    @property
    def left(self) -> Spending:
        return to_spending(self._show()["left"])

    @property
    def neighbours(self) -> Optional[str]:
        """What `spent` and `left` hide, as Guarantee.neighbours. None: no charge yet, or several (`history`)."""
        neighbours: Optional[str] = self._show()["neighbours"]
        return neighbours

    @property
    def operators(self) -> Dict[str, Dict[str, Any]]:
        """By the operators' names, granted, spent and left over all of their collections (`grant(operator=...)`)."""
        sums: Dict[str, Dict[str, Any]] = self._collection._session.show_operators(self._collection._uuid())
        return sums

    def history(self) -> List[Dict[str, Any]]:
        """Every grant, also of the collection's operators, and every charge, oldest first, as dicts."""
        return self._collection._session.history(self._collection._uuid())

    def __repr__(self) -> str:
        return f"Budget(granted={self.granted}, left={self.left})"


@checked_call
class Collection(_NotCopied):
    """A collection of a server. See Client.collection."""

    def __init__(self, client: Client, name: str) -> None:
        self._client, self.name = client, _arrays.text("name", name)

    @property
    def _session(self) -> _core.Session:
        return self._client._open()

    @property
    def aio(self) -> Aio:
        """The calls below as coroutines."""
        return Aio(self)

    def __repr__(self) -> str:
        return f"Collection({self.name!r} of {self._client._server!r})"

    def info(self) -> Dict[str, Any]:
        """What the server tells everybody: counts, settings, labels, digest."""
        return self._session.get_collection(self.name)

    def _uuid(self) -> str:
        return str(self.info()["uuid"])

    @property
    def budget(self) -> Budget:
        return Budget(self)

    def ingest(self, features: ArrayLike, *, labels: Optional[ArrayLike] = None,
               ids: Optional[Sequence[str]] = None, payloads: Optional[Sequence[Any]] = None,
               replace: bool = False) -> Ingested:
        """Uploads items; one with the id of a stored one replaces it as a whole: without payloads or labels, the stored
        payload or label is lost. Safe to repeat after an interruption.

        features: n x d; float32 arrays in C order are not copied. labels: integers are numbers of the collection's
        classes and strings their names, as in scikit-learn; if it has no classes, any n integers or strings (-2**31,
        None or NaN for an item without a label), or None. New strings then become its class names. ids: n strings, integers or UUIDs; by default the row numbers, which are refused
        where the collection has items, unless `replace`. payloads: n JSON values, or None, returned with matches, or a
        table; numpy values and times, as ISO 8601, are converted, and missing values of pandas become null. A malformed row raises before anything is sent.
        """
        info = self.info()
        array = _arrays.rows("features", features, info["feature_dim"])
        if labels is None and info["labels"]:
            raise wrong("labels", f"must be given: every item of collection {self.name} has one of its "
                                  f"{len(info['labels'])} classes")
        numbers, classes = (None, []) if labels is None else _arrays.label_column("labels", labels, len(array))
        if ids is None:
            if info["items"] > 0 and not replace:
                raise AlreadyExists(f"ids must be given: collection {self.name} has items, which row numbers would "
                                    "replace; replace=True does that; nothing was sent")
            names = [str(row) for row in range(len(array))]
        else:
            names = _arrays.ids("ids", ids, len(array))
        if len(set(names)) != len(names):
            first: Dict[str, int] = {}
            row = next(row for row, name in enumerate(names) if first.setdefault(name, row) != row)
            raise wrong("ids", f"must differ, but row {row} has the id of row {first[names[row]]}, too; nothing was sent")
        texts = []
        if payloads is not None:
            texts = _arrays.payload_texts("payloads", payloads, len(array))
        with progress_bar("ingest", len(array)) as show:
            return Ingested(**self._session.upsert(self.name, array, numbers, classes, names, texts, show, _warner()))

    def get_items(self, ids: Sequence[str], *, features: bool = False) -> List[Dict[str, Any]]:
        """The items that exist, in the order of ids, as dicts."""
        names, classes = _arrays.ids("ids", ids), _name_of_label(self.info())
        return [_item(one, classes) for i in range(0, len(names), 1000)
                for one in self._session.get_items(self.name, names[i:i + 1000], _arrays.flag("features", features))]

    def items(self, *, features: bool = False) -> Iterator[Dict[str, Any]]:
        """Iterates over all items in the order of their ids."""
        cursor, more, classes = "", True, _name_of_label(self.info())
        while more:
            page, cursor = self._session.scroll_items(self.name, cursor, 1000, _arrays.flag("features", features))
            yield from (_item(one, classes) for one in page)
            more = cursor != ""

    def delete_items(self, ids: Sequence[str]) -> int:
        """Deletes items by id, and returns how many there were. A PrivateMailWarning names ids of no item."""
        names, deleted = list(dict.fromkeys(_arrays.ids("ids", ids))), 0
        missing: List[str] = []
        for i in range(0, len(names), 1000):
            count, some = self._session.delete_items(self.name, names[i:i + 1000])
            deleted, missing = deleted + count, missing + some
        if deleted < len(names):
            named = ", ".join(map(repr, missing[:5])) + ", ..." * (len(names) - deleted > 5)
            _warner()(f"{len(names) - deleted} of {len(names)} ids are of no item of collection {self.name}: {named}; "
                  f"{deleted} were deleted")
        return deleted

    def __len__(self) -> int:
        return self._session.count_items(self.name)

    def build(self, *, accept_misalignment: bool = False, wait: bool = False) -> None:
        """Embeds the items, so that searches find them. wait: until cells are prepared and measured, too."""
        wait = _arrays.flag("wait", wait)
        with progress_bar("build", 1.0) as show:
            self._session.build(self.name, show, _arrays.flag("accept_misalignment", accept_misalignment))
        if wait:
            with progress_bar("wait") as show:
                self._session.wait_until_ready(
                    self.name, lambda what, share: show(share or 0, None if share is None else 1.0, f"waiting for {what}") if show else None)

    def snapshot(self, path: Path, *, replace: bool = False, max_bytes: int = 0) -> Snapshot:
        """Saves anchors, parameters and items to a file of mode 0600, verified while it is written. Needs an admin key.

        THE FILE HOLDS EVERY VECTOR, LABEL AND PAYLOAD IN THE CLEAR. Searches and uploads continue meanwhile. replace:
        an existing file; on failure it stays. max_bytes: of the file; 0: twice what the collection's counts suggest, at
        most half of the free space. `restore` of a client or server reads it.
        """
        with progress_bar("snapshot") as show, about("path"):
            return Snapshot(**self._session.snapshot(self.name, _arrays.path("path", path), _arrays.flag("replace", replace),
                                                     _arrays.integer("max_bytes", max_bytes), show))

    def plan(self, *, epsilon: float, max_bytes: int = 0, fidelity: Optional[float] = None,
             recall: Optional[float] = None) -> Plan:
        """The cheapest query for cells that finds what is wished, as the server has measured; costs nothing.

        max_bytes: of an answer; 0: any. fidelity, recall: wished, in (0, 1); without either the most that can be found.
        `search(queries, plan=plan)` makes it. Estimates have 95 % intervals.
        """
        epsilon = _arrays.number("epsilon", epsilon)
        plan = self._session.plan(self.name, epsilon, _arrays.integer("max_bytes", max_bytes),
                                  None if fidelity is None else _arrays.number("fidelity", fidelity),
                                  None if recall is None else _arrays.number("recall", recall))
        return Plan(**dict(plan, collection=self.name, epsilon=epsilon, fidelity=Estimate(*plan["fidelity"]),
                           recall=Estimate(*plan["recall"])))

    def delete(self) -> int:
        """Deletes the collection with its items. Returns how many it had."""
        return self._session.delete_collection(self.name)

    @overload
    def search(self, queries: ArrayLike, *, scheme: Literal["encrypted"], k: int = 8,
               label: Optional[ArrayLike] = None, payloads: Optional[bool] = None,
               filter: Optional[Dict[str, Any]] = None) -> EncryptedHits: ...

    @overload
    def search(self, queries: ArrayLike, *, k: int = 8, label: Optional[ArrayLike] = None,
               payloads: Optional[bool] = None, filter: Optional[Dict[str, Any]] = None) -> EncryptedHits: ...

    @overload
    def search(self, queries: ArrayLike, *, scheme: Literal["cells"], epsilon: float, k: int = 8,
               payloads: Optional[bool] = None, partition: Optional[int] = None, ask: Optional[int] = None,
               focus: Optional[int] = None, items: Optional[int] = None) -> Hits: ...

    @overload
    def search(self, queries: ArrayLike, *, plan: Plan, k: int = 8, payloads: Optional[bool] = None) -> Hits: ...

    @overload  # joint where it is offered, else cells
    def search(self, queries: ArrayLike, *, epsilon: float, scheme: Optional[Literal["joint"]] = None, k: int = 8,
               delta: Optional[float] = None, label: Optional[ArrayLike] = None, mechanism: Optional[str] = None,
               radius: Optional[float] = None, private_iterations: Optional[int] = None,
               classes: Optional[int] = None, payloads: Optional[bool] = None, accept_misalignment: bool = False,
               filter: Optional[Dict[str, Any]] = None, dummies: Optional[ArrayLike] = None,
               dummy_labels: Optional[ArrayLike] = None, own_anchors: Optional[ArrayLike] = None,
               partition: Optional[int] = None, ask: Optional[int] = None, focus: Optional[int] = None,
               items: Optional[int] = None) -> Hits: ...

    @overload  # a scheme that is chosen at run time
    def search(self, queries: ArrayLike, *, scheme: Optional[str], epsilon: Optional[float] = None, k: int = 8,
               delta: Optional[float] = None, label: Optional[ArrayLike] = None, mechanism: Optional[str] = None,
               radius: Optional[float] = None, private_iterations: Optional[int] = None,
               classes: Optional[int] = None, payloads: Optional[bool] = None, accept_misalignment: bool = False,
               filter: Optional[Dict[str, Any]] = None, dummies: Optional[ArrayLike] = None,
               dummy_labels: Optional[ArrayLike] = None, own_anchors: Optional[ArrayLike] = None,
               partition: Optional[int] = None, ask: Optional[int] = None, focus: Optional[int] = None,
               items: Optional[int] = None) -> Any: ...

    def search(self, queries: ArrayLike, *, epsilon: Optional[float] = None, k: int = 8, delta: Optional[float] = None,
               scheme: Optional[str] = None, label: Optional[ArrayLike] = None, mechanism: Optional[str] = None,
               radius: Optional[float] = None, private_iterations: Optional[int] = None, classes: Optional[int] = None,
               payloads: Optional[bool] = None, accept_misalignment: bool = False,
               filter: Optional[Dict[str, Any]] = None, dummies: Optional[ArrayLike] = None,
               dummy_labels: Optional[ArrayLike] = None, own_anchors: Optional[ArrayLike] = None,
               partition: Optional[int] = None, ask: Optional[int] = None, focus: Optional[int] = None,
               items: Optional[int] = None, plan: Optional[Plan] = None) -> Any:
        """Private search. Returns Hits, of encrypted EncryptedHits; for an array of 2 dimensions a LIST of them.

        queries: d numbers, or n x d: n answers, as a list also for n = 1 (type checkers see the type of one answer).
        k: matches of each.
        scheme: "encrypted" (exact, nothing is charged), "joint" or "cells". None: the first of
            encrypted, joint and cells that the collection offers.
        epsilon, delta: charged to the ledger for each query; not for encrypted; cells take no delta, a plan replaces
            epsilon.
        label: an integer above -2**31 or a class name, or n of them; not sent. Encrypted: only items with it. Joint:
            the class of each query, by default ranked by the anchors on this machine.
        payloads: fetch those of every slot or item, as by default; for encrypted those of all items, by default none.
        filter: only items whose payload matches, such as {"path": "size.cm", "gte": 10} (docs/guide.md). Encrypted:
            evaluated on this machine, which fetches all payloads. Joint: THE SERVER READS IT IN THE CLEAR
            and epsilon does not cover it: it must not depend on a query.
        Joint only:
        mechanism, radius, private_iterations: see docs/schemes.md; by default "gaussian", and 1.
        classes: without a label, of how many to read matches, by default as many as it takes.
        accept_misalignment: query although public data shows that little is found.
        dummies, dummy_labels: m x d and m integers, public: dummies are drawn from them, not from the anchors.
        own_anchors: the collection's anchors, in its order, by the model that made queries and dummies (any number of
            columns); public, as the anchors are.
        Cells only:
        partition, ask, focus: of the request, by default 0, 1 and 1. items: to receive, by default by the published
            quality.
        plan: of `plan`, in place of scheme, epsilon and the arguments of cells.
        """
        given: Dict[str, Any] = {
            "scheme": scheme, "epsilon": epsilon, "delta": delta, "mechanism": mechanism, "radius": radius,
            "private_iterations": private_iterations, "classes": classes, "partition": partition, "ask": ask,
            "focus": focus, "items": items}
        if plan is not None:
            if not isinstance(plan, Plan):
                raise wrong("plan", f"must be what plan() returns, but is of type {type(plan).__name__}")
            if plan.collection != self.name:
                raise wrong("plan", f"must be for collection {self.name}, but is for {plan.collection}")
            planned = {"scheme": "cells", "epsilon": plan.epsilon, "partition": plan.partition, "items": plan.items}
            for name in (*planned, "ask", "focus"):
                if given[name] is not None:
                    raise wrong(name, "must be absent with a plan, but is given")
            given.update(planned, fingerprint=plan.fingerprint)
        # The core's own errors about types show every argument, targets as well: it gets none of a wrong type.
        for name in ("private_iterations", "classes", "partition", "ask", "focus", "items"):
            if given[name] is not None:
                given[name] = _arrays.integer(name, given[name])
        for name in ("epsilon", "delta", "radius"):
            if given[name] is not None:
                given[name] = _arrays.number(name, given[name])
        for name in ("scheme", "mechanism"):
            if given[name] is not None:
                given[name] = _arrays.text(name, given[name])
        if (dummies is None) != (dummy_labels is None):
            raise wrong("dummies", "must be given together with dummy_labels")
        if dummies is not None:
            given["dummies"] = _arrays.rows("dummies", dummies, copy=True)
            numbers, names = _arrays.label_column("dummy_labels", dummy_labels, len(given["dummies"]))
            given["dummy_labels"] = (_numbers("dummy_labels", names, _names_of(self.info())) if numbers is None
                                     else numbers.tolist())
        if own_anchors is not None:
            given["own_anchors"] = _arrays.rows("own_anchors", own_anchors, copy=True)
        given.update(k=_arrays.integer("k", k), filter=_json("filter", filter),
                     payloads=None if payloads is None else _arrays.flag("payloads", payloads),
                     accept_misalignment=_arrays.flag("accept_misalignment", accept_misalignment))
        given = {name: value for name, value in given.items() if value is not None}
        array, one = _arrays.targets(queries)
        labels = _labels_of(label, len(array))
        warn, warned = _warner(), self._client._warned_of_charges

        def warn_of_charge(text: str) -> None:  # once for the collection
            warn(text)
            warned.add(self.name)

        with progress_bar("search", len(array)) as show:
            answers, failure, told = self._session.search(self.name, array, labels, given, None if one else show,
                                                          None if self.name in warned else warn_of_charge)
        for text in told:
            warn(text)
        hits = [None if answer is None else to_hits(*answer) for answer in answers]
        hits += [None] * (len(array) - len(hits))
        if failure is not None:
            error = of_status(*failure)
            error.hits = hits
            raise error
        return hits[0] if one else hits

    def explain(self) -> Dict[str, Any]:
        """The last search of this state folder, as it was prepared for the server, as a dict; costs nothing.

        Joint: release, the rows of numbers that were sent, slots x embedding_dim (then the anchors).
        Cells: the cells asked for. bytes: of the request. Delivery is not recorded.
        """
        sent: Dict[str, Any] = json.loads(self._session.explain(self.name))
        if "rows" in sent:
            sent["release"] = np.array([row["values"] for row in sent.pop("rows")], np.float32)
        return sent

    def resend(self, query: Optional[ArrayLike] = None, *, label: Union[int, str, None] = None,
               k: Optional[int] = None) -> Matches:
        """Sends the last release again, byte for byte; costs nothing.

        label: joint: the class whose matches are returned; not sent. query: the target, d numbers, since no file names
        it, for cells and for joint without a label. k: by default as before, for cells 8.
        """
        array = None if query is None else _arrays.targets(query, "query")[0]
        labels = _labels_of(label, 1)
        return to_matches(*self._session.resend(self.name, array, None if labels is None else labels[0],
                                                None if k is None else _arrays.integer("k", k)))

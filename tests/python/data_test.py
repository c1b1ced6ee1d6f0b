"""Data as people have it, by the command line and the package: formats, labels by name, and rows that no call may lose."""

import datetime
import io
import json
import os
import pickle
import subprocess
import tempfile
import unittest
import uuid
import warnings

import numpy as np
import pandas

import privatemail as pm
from privatemail import _client
from page_service import vectors as gallery

DISHES = np.array(["ramen", "sushi", "tom yum", "crème brûlée"])
COST = {"epsilon": .1, "delta": 1e-6}


def setUpModule():
    global server, rows, labels, names, folder  # pylint: disable=global-statement
    folder = tempfile.TemporaryDirectory()
    server = pm.Server.local(state=os.path.join(folder.name, "state"))
    rows, labels = gallery(200)
    labels = labels % 4
    names = DISHES[labels]


def tearDownModule():
    server.close()
    folder.cleanup()


def run(*words, stdin=b""):
    """Exit code, JSON or None, standard error of the command line."""
    done = subprocess.run([os.environ["PRIVATEMAIL"], *words, "--json", "--server", server.address, "--ca", server.ca_file,
                           "--key-file", server.key_file, "--state", server.client.state],
                          input=stdin, capture_output=True, check=False)
    lines = done.stdout.decode().splitlines()
    return done.returncode, json.loads(lines[-1]) if lines else None, done.stderr.decode()


def path(name, content):
    """A file of bytes, text or an array."""
    file = os.path.join(folder.name, name)
    if isinstance(content, np.ndarray):
        with open(file, "wb") as opened:
            np.save(opened, content)
    else:
        with open(file, "wb") as opened:
            opened.write(content if isinstance(content, bytes) else content.encode())
    return file


def new(name, **options):
    return server.create_collection(name, **options)


class Formats(unittest.TestCase):

    def features_of(self, collection, count):
        found = {one["id"]: one["features"] for one in collection.items(features=True)}
        return np.array([found[str(row)] for row in range(count)])

    def test_every_array_of_numpy_is_read_as_numpy_reads_it(self):
        whole = np.round(rows[:20] * 50)
        arrays = {
            "f16": rows[:20].astype(np.float16), "f64": rows[:20].astype(np.float64), "fortran": np.asfortranarray(rows[:20]),
            "big": rows[:20].astype(">f4"), "big64": np.asfortranarray(rows[:20].astype(">f8")), "int8": whole.astype(np.int8),
            "int64": whole.astype(np.int64), "uint16": np.abs(whole).astype(np.uint16)}
        for kind, array in arrays.items():
            collection = new(f"format-{kind}")
            code, answer, error = run("ingest", collection.name, "--vectors", path(f"{kind}.npy", array))
            self.assertEqual((code, answer["inserted"]), (0, 20), error)
            np.testing.assert_array_equal(self.features_of(collection, 20), array.astype(np.float32), kind)
        for kind, save in ("plain", np.savez), ("deflated", np.savez_compressed):
            collection, file = new(f"format-{kind}"), os.path.join(folder.name, f"{kind}.npz")
            save(file, vectors=rows[:20], labels=names[:20])
            self.assertEqual(run("ingest", collection.name, "--vectors", file, "--labels", file)[0], 0)
            self.assertEqual(collection.get_items(["7"])[0]["label"], names[7])
            np.testing.assert_array_equal(self.features_of(collection, 20), rows[:20])
        code, _, error = run("ingest", "format-f16", "--vectors", path("object.npy", b"\x93NUMPY\x01\x00\x3e\x00" + (
            b"{'descr': '|O', 'fortran_order': False, 'shape': (1, 2), }".ljust(61) + b"\n")))
        self.assertIn('save it with np.save(path, array.astype("float32"))', error)

    def test_files_come_through_a_pipe(self):
        collection = new("piped")
        with open(path("piped.npy", rows[:5]), "rb") as file:
            vectors = file.read()
        self.assertEqual(run("ingest", "piped", "--vectors", "-", stdin=vectors)[1]["inserted"], 5)
        self.assertEqual(run("ingest", "piped", "--vectors", path("p.npy", rows[:2]), "--ids", "-",
                             stdin=b"\xef\xbb\xbfid\r\na\r\nb\r\n")[1]["inserted"], 2)
        self.assertEqual([one["id"] for one in collection.get_items(["a", "b"])], ["a", "b"])
        code, _, error = run("ingest", "piped", "--vectors", "-", "--ids", "-")
        self.assertEqual((code, "only one file can be standard input" in error), (2, True), error)

    def test_labels_saved_as_objects_are_read_and_never_run(self):
        vectors, header = path("v.npy", rows[:4]), io.BytesIO()
        np.lib.format.write_array_header_1_0(header, {"descr": "|O", "fortran_order": False, "shape": (4,)})
        given = np.array(["ramen", None, "ramen", "crème"], object)
        for number, content in enumerate([given] + [header.getvalue() + pickle.dumps(given, protocol) for protocol in range(2, 6)]):
            code, _, error = run("ingest", new(f"objects-{number}").name, "--vectors", vectors, "--labels", path("o.npy", content))
            self.assertEqual(code, 0, error)
            found = server.collection(f"objects-{number}").items()
            self.assertEqual([one["label"] for one in found], given.tolist())
        nullable = pandas.array([3, None, 4, None], "Int64").to_numpy(object)
        code, _, error = run("ingest", new("objects-nullable").name, "--vectors", vectors, "--labels", path("o.npy", nullable))
        self.assertEqual([one["label"] for one in server.collection("objects-nullable").items()], [3, None, 4, None], error)
        many = np.array([None if row % 7 == 0 else f"class {row % 400}" for row in range(5000)], object)  # batches and frames
        code, answer, error = run("ingest", new("objects-many").name, "--vectors", path("many.npy", np.ones((5000, 2))),
                                  "--labels", path("o.npy", many))
        self.assertEqual((code, answer["inserted"], len(answer["new_classes"])), (0, 5000, 400), error)

        class Hostile:
            def __reduce__(self):
                return os.mkdir, (os.path.join(folder.name, "run"),)

        for content in given.tolist()[:3] + [Hostile()], given.tolist()[:3] + [datetime.date(2026, 1, 1)]:
            code, _, error = run("ingest", "objects-0", "--vectors", vectors, "--labels", path("o.npy", np.array(content, object)))
            self.assertEqual(code, 2, error)
            self.assertIn("o.npy: row 3: expected text, a number or None, got another Python object, which could run code and is "
                          "not read: save text with np.save(path, labels.astype(str)), integers with labels.astype(int)", error)
        self.assertFalse(os.path.exists(os.path.join(folder.name, "run")))

    def test_objects_in_memory_are_arrays(self):
        class Table:  # of pandas, polars or arrow
            def __init__(self, values):
                self.values = values

            def __array__(self, dtype=None, copy=None):  # pylint: disable=unused-argument
                return np.asarray(self.values, dtype)

        lists = np.empty(3, object)
        lists[:] = [list(row) for row in rows[:3]]
        for number, given in enumerate((Table(rows[:3].astype(np.float64)), rows[:3].astype(object), lists)):
            collection = new(f"table-{number}")
            collection.ingest(given, labels=Table(["a", None, "b"]), ids=Table([7, 8, 9]))
            self.assertEqual([one["label"] for one in collection.get_items(["7", "8", "9"])], ["a", None, "b"])
        with self.assertRaisesRegex(pm.InvalidArgument, "^features must be an array of numbers"):
            new("table-bad").ingest(np.array([["x", None]], object))


class Tables(unittest.TestCase):
    """With pandas itself; polars and pyarrow are not packaged, so their protocols stand for them."""

    def ingested(self, features, **options):
        things = new(f"frame-{self.id().rsplit('.', 1)[1]}-{len(server.collections())}")
        things.ingest(features, **options)
        return things, list(things.items(features=True))

    def test_frame_of_floats_with_its_index_as_ids(self):
        frame = pandas.DataFrame(rows[:4], index=["d", "a", "c", "b"])
        for given in (frame, frame.astype("float64"), frame.astype("Float32"), frame.astype(object)):
            things, found = self.ingested(given, ids=frame.index)
            self.assertEqual([one["id"] for one in found], ["a", "b", "c", "d"])
            np.testing.assert_array_equal(found[0]["features"], rows[1])
            self.assertEqual(things.search(frame.loc["c"], k=1).ids, ["c"])
            self.assertEqual([one.ids for one in things.search(frame.iloc[:2], k=1)], [["d"], ["a"]])
        column = pandas.Series(list(rows[:4]), index=range(5, 9))
        things, found = self.ingested(column, ids=column.index)
        self.assertEqual([one["id"] for one in found], ["5", "6", "7", "8"])
        self.assertEqual([one.ids for one in things.search(column.iloc[:2], k=1)], [["5"], ["6"]])
        for given, message in ((frame.assign(name="x"), "column 16 holds a value of type str"),
                               (column.to_frame("v").assign(name="x"), "column 0 holds a value of type ndarray in row 0: give that"),
                               (frame.astype("Float32").mask(frame > 1), r"column \d+ holds a value of type NAType")):
            with self.assertRaisesRegex(pm.InvalidArgument, "^features must be an array of numbers, but " + message):
                self.ingested(given)

    def test_saved_tables_keep_their_ids_and_name_columns_of_text(self):
        frame = pandas.DataFrame(rows[:4, :3].astype(float))
        for number, (table, ids) in enumerate([(frame.set_index(pandas.Index(["d", "a, b", "c", "b"])), ["a, b", "b", "c", "d"]),
                                               (frame.rename_axis("id").iloc[::-1], ["0", "1", "2", "3"]), (frame[1:], ["1", "2", "3"])]):
            collection = new(f"saved-{number}")
            code, _, error = run("ingest", collection.name, "--vectors", path("t.csv", table.to_csv()))
            self.assertEqual(([one["id"] for one in collection.items()], code), (ids, 0), error)
        np.testing.assert_allclose(server.collection("saved-1").get_items(["3"], features=True)[0]["features"], rows[3, :3], rtol=1e-6)
        code, _, error = run("ingest", "saved-2", "--vectors", path("t.csv", (-frame[1:]).to_csv()))
        self.assertEqual(code, 1, error)
        self.assertIn("--replace to overwrite; nothing was sent", error)
        texts = frame.assign(name=["tea"] * 4)
        for table, column in ((texts.to_csv(), 5), (texts.to_csv(index=False), 4), (texts.add_prefix("x").rename(columns={"xname": "name"}).to_csv(), 5)):
            code, _, error = run("ingest", "saved-0", "--vectors", path("t.csv", table))
            self.assertEqual(code, 2, error)
            self.assertIn(f"t.csv: line 2 column {column} (name): expected a number, got text of length 3: leave a column of text out, "
                          "or give it by --labels or --ids", error)

    def test_label_columns_of_every_dtype(self):
        for dtype, values, wanted in (("category", ["b", None, "a"], ["b", None, "a"]), ("string", ["b", None, "a"], ["b", None, "a"]),
                                      ("object", ["b", np.nan, "a"], ["b", None, "a"]), ("Int64", [3, None, 4], [3, None, 4]),
                                      ("float64", [3, None, 4], [3, None, 4]), ("uint8", [3, 0, 4], [3, 0, 4])):
            labels_ = pandas.Series(values, index=[7, 8, 9], dtype=dtype)
            things, found = self.ingested(rows[:3], labels=labels_)
            self.assertEqual([one["label"] for one in found], wanted, dtype)
            table = things.search(rows[0], k=3).to_pandas().set_index("id").loc[["0", "1", "2"]]
            self.assertEqual([None if one is pandas.NA else one for one in table["label"]], wanted, dtype)

    def test_records_with_times_and_missing_values(self):
        table = pandas.DataFrame({
            "at": pandas.to_datetime(["2026-01-02 03:04", None]), "zone": pandas.to_datetime(["2026-01-02"] * 2, utc=True),
            "count": pandas.array([1, None], "Int64"), "price": [.5, np.nan], "kind": pandas.Categorical(["a", None]),
            "name": pandas.array(["x", None], "string"), "ok": [True, False]})
        first = {"at": "2026-01-02T03:04:00", "zone": "2026-01-02T00:00:00+00:00", "count": 1, "price": .5, "kind": "a",
                 "name": "x", "ok": True}
        second = {**dict.fromkeys(first), "zone": first["zone"], "ok": False}
        self.assertEqual([one["payload"] for one in self.ingested(rows[:2], payloads=table)[1]], [first, second])
        records = table.drop(columns=["price", "kind"]).to_dict("records")
        self.assertEqual(self.ingested(rows[:2], payloads=records)[1][1]["payload"]["count"], None)
        with self.assertRaisesRegex(pm.InvalidArgument, "row 1 holds NaN or an infinity"):
            self.ingested(rows[:2], payloads=table.assign(price=[0, np.inf]))

    def test_protocols_of_other_libraries(self):
        class Column:  # a list column of polars or arrow; integers with nulls are floats with NaN
            def __init__(self, values):
                self.values = values

            def to_numpy(self):
                return self.values

        class Table:  # DataFrame.to_dicts of polars, Table.to_pylist of arrow
            ndim = 2

            def __init__(self, name, records):
                setattr(self, name, lambda: records)

        class Stream:  # pylint: disable=too-few-public-methods
            def __arrow_c_stream__(self, requested_schema=None):
                raise NotImplementedError

        vectors = np.empty(3, object)
        vectors[:] = list(rows[:3])
        for name in ("to_dicts", "to_pylist"):
            _, found = self.ingested(Column(vectors), ids=Column(np.array([7, 8, 9])), labels=Column(np.array([3, np.nan, 4])),
                                     payloads=Table(name, [{"a": 1}, None, {"a": datetime.date(2026, 1, 2)}]))
            self.assertEqual([(one["id"], one["label"], one["payload"]) for one in found],
                             [("7", 3, {"a": 1}), ("8", None, None), ("9", 4, {"a": "2026-01-02"})])
        with self.assertRaisesRegex(pm.InvalidArgument, "^features must be an array of numbers, but holds a value of type Stream"):
            self.ingested(Stream())

    def test_ids_are_texts_integers_or_uuids(self):
        one = uuid.UUID(int=5)
        for given, wanted in ((range(1, 3), ["1", "2"]), ([1, 2], ["1", "2"]), ([one, uuid.UUID(int=6)], [str(one), str(uuid.UUID(int=6))]),
                              (pandas.Series(["p", "q"], dtype="string"), ["p", "q"])):
            self.assertEqual([one["id"] for one in self.ingested(rows[:2], ids=given)[1]], wanted)
        for given, row in ([True, False], 0), (pandas.Series(["p", None], dtype="string"), 1), ([1.5, 2.5], 0):
            with self.assertRaisesRegex(pm.InvalidArgument, f"^ids must be strings, but entry {row} is of type"):
                self.ingested(rows[:2], ids=given)


class Labels(unittest.TestCase):

    def test_names_are_given_and_returned(self):
        anchors, numbers = gallery(100, seed=2)
        texts = DISHES[numbers % 4]
        file = path("al.npy", texts)
        code, made, error = run("collection", "create", "dishes", "--anchors", path("a.npy", anchors), "--anchor-labels", file,
                                "--with-encrypted")
        self.assertEqual((code, made["class_names"]), (0, sorted(DISHES)), error)
        for number, given in enumerate((names, names.astype(object), list(names))):
            server.collection("dishes").ingest(rows, labels=given, ids=[f"{number}-{row}" for row in range(200)])
        for kind, content in ("txt", "\n".join(names) + "\n"), ("csv", ",dish\n" + "".join(
                f"{row},{name}\n" for row, name in enumerate(names))), ("npy", names):
            code, _, error = run("ingest", "dishes", "--vectors", path("g.npy", rows), "--labels", path(f"l.{kind}", content),
                                 "--id-prefix", kind)
            self.assertEqual(code, 0, error)
        dishes = server.collection("dishes")
        self.assertEqual({one["label"] for one in dishes.items()}, set(DISHES))
        self.assertEqual(dishes.search(rows[0], label="ramen", k=3).labels.tolist(), ["ramen"] * 3)
        dishes.build()
        dishes.budget.grant(epsilon=100, delta=.1)
        hits = dishes.search(rows[:2], scheme="joint", label=["tom yum", "sushi"], k=2, **COST)
        self.assertEqual([one.labels.tolist() for one in hits], [["tom yum"] * 2, ["sushi"] * 2])
        self.assertEqual(dishes.resend(label="sushi", k=1).labels.tolist(), ["sushi"])
        _, found, error = run("query", "dishes", "--vectors", path("g.npy", rows), "--row", "0", "-k", "2", "--label", "ramen")
        self.assertEqual([one["class"] for one in found["matches"]], ["ramen"] * 2, error)
        with self.assertRaisesRegex(pm.InvalidArgument, r'^labels must be .*\(0 crème brûlée, 1 ramen, .*but row 1 is "curry"'):
            dishes.ingest(rows[:2], labels=["ramen", "curry"], ids=["x", "y"])
        with self.assertRaisesRegex(pm.InvalidArgument, "^label must be the number or name"):
            dishes.search(rows[0], scheme="joint", label="curry", **COST)

    def test_names_need_no_anchors_and_may_become_more(self):
        new("plain")
        vectors = path("v.npy", rows[:4])
        code, answer, error = run("ingest", "plain", "--vectors", vectors, "--labels", path("few.txt", "sushi\nramen\nsushi\nramen"))
        self.assertEqual((code, answer["new_classes"]), (0, ["ramen", "sushi"]), error)
        plain = server.collection("plain")
        plain.ingest(rows[4:6], labels=np.array(["curry", None], object), ids=["c", "none"])
        self.assertEqual(plain.info()["class_names"], ["ramen", "sushi", "curry"])
        hits = plain.search(rows[4], k=6)
        self.assertEqual((hits.ids[0], hits.labels[0], set(hits.labels)), ("c", "curry", {"ramen", "sushi", "curry", None}))
        self.assertEqual(plain.search(rows[4], label="ramen").labels.tolist(), ["ramen"] * 2)
        self.assertEqual(len(plain.search(rows[4], label=["ramen", "curry"][1])), 1)
        with self.assertWarnsRegex(pm.PrivateMailWarning, "nothing is found: label must be"):
            self.assertEqual(repr(plain.search(rows[4], label="no such")), "EncryptedHits(0)")
        code, _, error = run("ingest", "plain", "--vectors", vectors, "--labels", path("n.npy", np.arange(4)), "--id-prefix", "n")
        self.assertEqual(code, 2)
        self.assertIn("but row 3 is 3", error)
        for text in "0\n1\n2\n1", "2001\n2001\n2001\n2001":
            file = path("n.txt", text)
            code, _, error = run("ingest", "plain", "--vectors", vectors, "--labels", file, "--id-prefix", "t")
            self.assertEqual(code, 2, error)
            self.assertIn(f"--labels {file} must be names of labels of the collection (0 ramen, 1 sushi, 2 curry), but row 0 is ", error)
            self.assertIn(": an array of integers (.npy) gives numbers of labels", error)
        plain.ingest(rows[:2], labels=["2001", "curry"], ids=["t0", "t1"])  # text by its type
        code, answer, error = run("ingest", "plain", "--vectors", vectors, "--labels", path("n.txt", "2001\n" * 4), "--id-prefix", "u")
        self.assertEqual((code, answer.get("new_classes")), (0, None), error)
        plain.ingest(rows[2:3], labels=[1], ids=["t2"])  # the number of a class by its type
        self.assertEqual([one["label"] for one in plain.get_items(["t0", "t1", "u1", "t2"])], ["2001", "curry", "2001", "sushi"])
        code, _, error = run("ingest", "plain", "--vectors", vectors, "--labels", path("h.csv", "ramen\n" * 5))
        self.assertEqual((code, "a first line is a label, too" in error), (2, True), error)
        shown = run("collection", "info", "plain")[1]
        self.assertEqual((shown["classes"], len(shown["class_names"])), (4, 4))
        numbered = new("numbered")
        numbered.ingest(rows[:2], labels=[5, 6])
        expected = "^labels must be numbers, since the collection has items but no names of labels, but row 0 is \"a\""
        with self.assertRaisesRegex(pm.InvalidArgument, expected):
            numbered.ingest(rows[:2], labels=["a", "b"], ids=["a", "b"])
        code, _, error = run("ingest", "numbered", "--vectors", vectors, "--labels", path("new.txt", "a\nb\na\nb"), "--id-prefix", "n")
        self.assertEqual((code, "ingest named labels into a collection without items" in error), (2, True), error)
        one = new("one-class", class_names=["only"])
        one.ingest(rows[:2], labels=["only", "only"])
        self.assertEqual(one.search(rows[0], k=1).labels.tolist(), ["only"])

    def test_one_class_needs_no_query_by_joint(self):
        expected = "must hold at least two classes, but hold only moth: joint finds items of the target's class, which every item would be of"
        with self.assertRaisesRegex(pm.InvalidArgument, f"^anchor_labels {expected}; encrypted and cells find"):
            new("single", anchors=rows, anchor_labels=["moth"] * 200)
        code, _, error = run("collection", "create", "single", "--anchors", path("a.npy", rows), "--anchor-labels",
                             path("moth.txt", "moth\n" * 200))
        self.assertEqual((code, f"--anchor-labels {expected}" in error), (2, True), error)
        single = new("single", anchors=rows, cells=[2], with_encrypted=True)
        single.ingest(rows[:4], labels=["moth"] * 4)
        single.build(wait=True)
        single.budget.grant(epsilon=1)
        self.assertEqual(single.search(rows[0], label="moth", k=1).labels.tolist(), ["moth"])
        self.assertEqual(set(single.search(rows[0], scheme="cells", epsilon=1, items=4).labels), {"moth"})

    def test_mistyped_names_get_suggestions(self):
        kinds = new("typed", anchors=rows, anchor_labels=names, with_encrypted=True)
        kinds.ingest(rows, labels=names)
        kinds.build()
        vectors = path("v.npy", rows[:2])
        query = ["query", "typed", "--vectors", vectors, "--row", "0"]
        for words, meant in ((["--scheme", "encryptd"], "encrypted"), (["--mechanism", "gausian"], "gaussian")):
            self.assertIn(f'; did you mean "{meant}"?', run(*query, *words)[2])
        self.assertIn('; did you mean "cosine"?', run("collection", "create", "x", "--metric", "cosin")[2])
        self.assertIn('; did you mean "sushi"?', run("ingest", "typed", "--vectors", vectors, "--labels", path("l.txt", "ramen\nsushy\n"))[2])
        # A target's label is private, and messages are pasted into reports.
        self.assertNotIn("mean", run(*query, "--label", "rammen")[2])
        with self.assertRaisesRegex(pm.InvalidArgument, "label must be .*, but that of query 1 is not$") as caught:
            kinds.search(rows[:2], scheme="joint", label=["ramen", "sushy"], **COST)
        self.assertEqual(caught.exception.row, 1)
        for options, meant in (({"scheme": "encryptd"}, "encrypted"), ({"scheme": "joint", "mechanism": "gausian"}, "gaussian")):
            with self.assertRaisesRegex(pm.InvalidArgument, f'; did you mean "{meant}"[?]'):
                kinds.search(rows[:2], **options)
        for options, meant in (({"metric": "cosin"}, "cosine"), ({"anchors": rows, "cells": [2], "cell_code": "scaler8"}, "scalar8")):
            with self.assertRaisesRegex(pm.InvalidArgument, f'; did you mean "{meant}"[?]'):
                new("x", **options)
        with self.assertRaisesRegex(pm.InvalidArgument, "; did you mean 'sushi'[?]"):
            kinds.search(rows[0], scheme="joint", dummies=rows[:1], dummy_labels=["sushy"], **COST)

    def test_column_of_a_table_has_a_header(self):
        vectors, kinds = path("v.npy", rows[:4]), path("kinds.csv", "kind\n" + "ramen\nsushi\n" * 2)
        new("header", anchors=rows, with_encrypted=True)
        code, answer, error = run("ingest", "header", "--vectors", vectors, "--labels", kinds)
        self.assertEqual((code, answer["new_classes"]), (0, ["ramen", "sushi"]), error)
        code, answer, error = run("query", "header", "--vectors", vectors, "--labels", kinds, "--row", "1", "-k", "1")
        self.assertEqual([one["class"] for one in answer["matches"]], ["sushi"], error)
        code, made, error = run("collection", "create", "header-anchors", "--anchors", path("a.npy", rows), "--anchor-labels",
                                path("numbers.csv", "kind\n" + "".join(f"{label}\n" for label in labels)))
        self.assertEqual((code, made["classes"], made["class_names"]), (0, 4, []), error)

    def test_text_is_a_name_before_it_is_a_number(self):
        new("digits", class_names=["9", "1", "0"]).ingest(rows[:3], labels=["1", "9", "0"])
        for label, found in ("1", "0"), ("0", "2"), ("2", "2"), ("9", "1"):
            _, answer, error = run("query", "digits", "--vectors", path("v.npy", rows[:1]), "--row", "0", "--label", label)
            self.assertEqual([one["id"] for one in answer["matches"]], [found], error)

    def test_name_without_a_match_is_shown_as_its_number(self):
        one = _client._item({"payload": "", "label": 7}, {0: "ramen"})  # pylint: disable=protected-access
        self.assertEqual(one["label"], 7)

    def test_new_name_voids_no_release(self):
        named = new("named", anchors=rows[:150], cells=[2], with_encrypted=True)
        named.ingest(rows[:4], labels=["ramen", "sushi", "ramen", None])
        named.build(wait=True)
        named.budget.grant(epsilon=10)
        digest = named.info()["fingerprint"]
        self.assertEqual(set(named.search(rows[0], scheme="cells", epsilon=8, items=4).labels), {"ramen", "sushi", None})
        named.ingest(rows[3:4], labels=["curry"], ids=["3"])
        self.assertEqual((named.info()["fingerprint"], named.info()["class_names"]), (digest, ["ramen", "sushi", "curry"]))
        named.build(wait=True)
        self.assertEqual(set(named.resend(rows[0]).labels), {"ramen", "sushi", "curry"})
        self.assertEqual(set(named.search(rows[0], k=4).labels), {"ramen", "sushi", "curry"})
        self.assertEqual(set(named.search(rows[0], scheme="cells", epsilon=1, items=4).labels) - {"ramen", "sushi"}, {"curry"})

    def test_numbers_of_any_type_are_labels(self):
        types = {"whole floats": np.array([3., np.nan]), "objects": np.array([3, None], object),
                 "masked": np.ma.array([3, 9], mask=[False, True]), "small": np.array([3, 4], np.uint8)}
        for number, (kind, given) in enumerate(types.items()):
            collection = new(f"numbers-{number}")
            collection.ingest(rows[:2], labels=given)
            self.assertEqual([one["label"] for one in collection.items()], [3, 4 if kind == "small" else None], kind)
        for given, message in (([1.5, 2], "whole numbers"), ([1, "a"], "all integers or all strings, but row 1 is of the other"),
                               ([2**40, 1], "fit into 32 bits"), ([2**2000, 1], "fit into 32 bits"), ([1], "must have shape"), ([{}, {}], "integers or strings")):
            with self.assertRaisesRegex(pm.InvalidArgument, f"^labels must .*{message}|^labels {message}"):
                collection.ingest(rows[:2], labels=given, ids=["a", "b"])


class Losses(unittest.TestCase):

    def test_package_refuses_a_malformed_row_before_sending(self):
        things = new("refused")
        for payload, message in (({"price": float("nan")}, "NaN"), ({"x": [np.float32("inf")]}, "NaN or an infinity"),
                                 ({"x": {1, 2}}, "type set"), ({"x": b"bytes"}, "type bytes")):
            with self.assertRaisesRegex(pm.InvalidArgument, f"^payloads must be JSON values, but row 2 holds .*{message}"):
                things.ingest(rows[:3], payloads=[None, {}, payload])
        with self.assertRaisesRegex(pm.InvalidArgument, "^payloads must be a list"):
            things.ingest(rows[:1], payloads={"a": 1})
        zero = rows[:4].copy()
        zero[1::2] = 0
        with self.assertRaisesRegex(pm.InvalidArgument, r"2 rows: features: .*\(rows 1, 3\); nothing was sent"):
            things.ingest(zero)
        self.assertEqual(len(things), 0)

    def test_values_of_numpy_and_times_are_converted(self):
        things = new("converted")
        day = datetime.datetime(2026, 11, 29, 9)
        things.ingest(rows[:1], payloads=[{"n": np.int64(3), "x": np.float32(.5), "b": np.bool_(True), "v": np.arange(2),
                                           "at": day, "t": np.datetime64("2026-11-29"), "s": np.str_("a")}])
        self.assertEqual(next(things.items())["payload"], {
            "n": 3, "x": .5, "b": True, "v": [0, 1], "at": "2026-11-29T09:00:00", "t": "2026-11-29", "s": "a"})

    def test_large_payloads_are_split_by_bytes(self):
        new("large")
        payloads = "".join(json.dumps({"text": "y" * 200000}) + "\n" for _ in range(400))
        code, answer, error = run("ingest", "large", "--vectors", path("v400.npy", np.vstack([rows] * 2)), "--payloads",
                                  path("large.jsonl", payloads))
        self.assertEqual((code, answer["inserted"]), (0, 400), error)

    def test_bad_rows_are_grouped_and_a_dry_run_sends_nothing(self):
        bad = rows[:60].copy()
        bad[7:57, 3] = np.nan
        bad[58] = 0
        things = new("grouped")
        file = path("bad.npy", bad)
        for words, items in ((["--dry-run"], 0), ([], 9)):
            code, answer, error = run("ingest", "grouped", "--vectors", file, *words)
            self.assertEqual((code, answer["rejected"]), (3, 51), error)
            self.assertEqual(answer["reasons"][0]["what"], "50 rows: NaN in column 3 (rows 7, 8, 9, 10, 11, ...)")
            self.assertEqual((answer["reasons"][1]["rows"], answer["reasons"][1]["row"]), (1, 58))
            self.assertEqual(len(things), items)
        payloads = path("bad.jsonl", "".join("{" * (row + 1) + "\n" for row in range(60)))
        _, answer, _ = run("ingest", "grouped", "--vectors", path("good.npy", rows[:60]), "--payloads", payloads, "--dry-run",
                           "--id-prefix", "p")
        self.assertRegex(answer["reasons"][0]["what"], r"^60 rows: such as payload must be .* its 1 bytes .*\(rows 0, 1, 2, 3, 4, ")

    def test_every_error_about_an_argument_names_it_and_its_row(self):
        things, file = new("places"), path("places.bin", b"none")
        classes = new("classes", anchors=rows, anchor_labels=labels)
        bad = np.ma.array(rows[:4], mask=np.arange(64).reshape(4, 16) > 40)
        for argument, row, call in (
                ("payloads", 2, lambda: things.ingest(rows[:3], payloads=[None, {}, {"a": "\ud800"}])),
                ("payloads", 2, lambda: things.ingest(rows[:3], payloads=["1" * 400, {}, {"a": [10**400]}])),
                ("payloads", 1, lambda: things.ingest(rows[:3], payloads=["\U0001f363", 10**5000, {}])),
                ("payloads", 1, lambda: things.ingest(rows[:2], payloads=[None, "y" * 70_000_000])),
                ("payloads", 1, lambda: things.ingest(rows[:2], payloads=[None, json.loads("[" * 90 + "]" * 90)])),
                ("payloads", 0, lambda: things.ingest(rows[:1], payloads=[{(1, 2): 3}])),
                ("payloads", None, lambda: things.ingest(rows[:1], payloads=3)),
                ("ids", 2, lambda: things.ingest(rows[:3], ids=["a", "b", "a"])),
                ("ids", None, lambda: things.ingest(rows[:2], ids={"a", "b"})),
                ("payloads", None, lambda: things.ingest(rows[:2], payloads=pandas.DataFrame([[1, 2]] * 2, columns=["a", "a"]))),
                ("ids", 1, lambda: things.ingest(rows[:2], ids=["a", "x" * 600])),
                ("features", 1, lambda: things.ingest(np.vstack([rows[:1], 0 * rows[:1]]))),
                ("features", None, lambda: things.ingest([[10**400] * 16] * 2)),
                ("features", 2, lambda: things.ingest(bad)), ("features", 1, lambda: things.ingest([[1, 2], [3]])),
                ("features", 1, lambda: things.ingest([[1, 2], [3, None]])),
                ("labels", 1, lambda: things.ingest(rows[:2], labels=[1, 1.5])), ("labels", 1, lambda: things.ingest(rows[:2], labels=[1, 2**40])),
                ("labels", 1, lambda: things.ingest(rows[:2], labels=[1, 2**2000])), ("labels", 1, lambda: things.ingest(rows[:2], labels=[1, {}])),
                ("labels", 1, lambda: things.ingest(rows[:2], labels=["a", 1])), ("labels", 0, lambda: things.ingest(rows[:2], labels=[b"a", 1])), ("labels", 1, lambda: things.ingest(rows[:2], labels=["a", "\ud800"])),
                ("labels", 1, lambda: things.ingest(rows[:2], labels=np.array([b"a", b"\xff"]))),
                ("labels", 1, lambda: classes.ingest(rows[:2], labels=[0, 9])),
                ("anchor_labels", 2, lambda: new("x", anchors=rows, anchor_labels=["a", "b", None] + ["a"] * 197)),
                ("label_graph", None, lambda: new("x", anchors=rows, anchor_labels=labels, label_graph=3)),
                ("alpha", None, lambda: new("x", anchors=rows, anchor_labels=labels, alpha="x")),
                ("steps", None, lambda: new("x", anchors=rows, anchor_labels=labels, steps=2**40)),
                ("embedding_dim", None, lambda: new("x", anchors=rows, anchor_labels=labels, embedding_dim=2**32 + 2)),
                ("cells", 1, lambda: new("x", anchors=rows, cells=[4, -1])), ("metric", None, lambda: new("x", metric="cosin")),
                ("model", None, lambda: pm.Extractor(file)), ("images", 1, lambda: pm.Extractor()([file, 3])),
                ("images", 0, lambda: pm.Extractor()(["\ud800"])), ("images", None, lambda: pm.Extractor()(3)),
                ("path", None, lambda: things.snapshot(os.path.join(folder.name, "none", "x"))),
                ("pictures", None, lambda: pm.page(things, pictures=file)), ("model", None, lambda: pm.page(things, model="/none.onnx")),
                ("path", None, lambda: things.snapshot("a\0b")), ("path", None, lambda: server.restore("x", file)),
                ("key_id", None, lambda: server.client.revoke_key("none")), ("scopes", None, lambda: server.client.create_key("k", scopes=["x"])),
                ("accounting", None, lambda: things.budget.grant(epsilon=1, accounting="x"))):
            with self.assertRaises(pm.PrivateMailError) as caught:
                call()
            self.assertEqual((caught.exception.argument, caught.exception.row), (argument, row), caught.exception)
        self.assertEqual(len(things), 0)

    def test_delete_names_ids_that_no_item_has(self):
        things = new("deleted")
        things.ingest(rows[:4])
        code, answer, error = run("items", "delete", "deleted", "9", "--ids-file", path("ids.txt", "\ufeff0\n1\n0\n"))
        self.assertEqual((code, answer), (3, {"deleted": 2, "missing": 1, "missing_ids": ["9"]}), error)
        self.assertEqual(run("items", "delete", "deleted", "2")[0], 0)
        things.ingest(rows[:2], replace=True)
        with self.assertWarnsRegex(pm.PrivateMailWarning, "^2 of 3 ids are of no item of collection deleted: '9', 'x'; 1 were deleted$"):
            self.assertEqual(things.delete_items(["9", "0", "x", "0"]), 1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertEqual(things.delete_items(["1"]), 1)

    def test_collection_without_items_costs_nothing(self):
        anchors, numbers = gallery(100, seed=2)
        empty = new("emptied", anchors=anchors, anchor_labels=numbers % 4, cells=[4])
        empty.ingest(rows, labels=labels)
        empty.build()
        empty.budget.grant(epsilon=100, delta=.1)
        empty.delete_items([str(row) for row in range(200)])
        for given in ({"scheme": "cells", "epsilon": 1, "items": 10}, dict(COST, scheme="joint", label=1)):
            with self.assertRaisesRegex(pm.FailedPrecondition, "^collection emptied has no items; nothing was spent"):
                empty.search(rows[0], **given)
        empty.ingest(rows, labels=labels)
        for given in ({"scheme": "cells", "epsilon": 1, "items": 10}, dict(COST, scheme="joint", label=1)):
            with self.assertRaisesRegex(pm.FailedPrecondition, "^collection emptied has no items that a search finds: build"):
                empty.search(rows[0], **given)
        self.assertEqual(empty.budget.spent.epsilon, 0)


if __name__ == "__main__":
    unittest.main()

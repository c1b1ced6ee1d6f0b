"""Rows from files and folders, their splits, and the image sets of the papers."""

import dataclasses
import io
import os
import pathlib
import struct
import tempfile
import unittest
from unittest import mock

import numpy as np
from matplotlib.image import imread

from privatemail.errors import InvalidArgument
from privatemail.evaluation import data
from privatemail.evaluation.study import Rows


class InFolder(unittest.TestCase):

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def write(self, name, content=b""):
        path = pathlib.Path(self.folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def vecs(rows, value):
    return b"".join(struct.pack(f"<i{len(row)}{value}", len(row), *row) for row in rows)


ROWS = [[3, 4], [0, 2]]
UNIT = [[.6, .8], [0, 1]]


class Files(InFolder):

    def rows(self, name, content, labels=("l.txt", "7\n9\n")):
        return data.read_vectors(self.write(name, content), self.write(*labels))

    def refused(self, text, name, content, labels=("l.txt", "7\n9\n")):
        with self.assertRaises(InvalidArgument) as caught:
            self.rows(name, content, labels)
        self.assertRegex(str(caught.exception), f"^(vectors|labels) must .*{text}")

    def test_each_format_of_vectors_gives_unit_rows(self):
        for name, content in (("v.csv", "3,4\n0,2\n"), ("v.Csv", "\ufeffx, y_2,\"z\"\r\n3, 4 ,0\r\n\r\n0,.2e1,0"),
                              ("pandas.csv", ",x,y\na,3,4\nb,0,2\n"), ("ids.csv", "id,x,y\n17,3,4\n4,0,2\n"),
                              ("v.fvecs", vecs(ROWS, "f")), ("v.NPY", npy(np.array(ROWS, np.float32))),
                              ("w.npy", npy(np.array(ROWS, ">f8", order="F")))):
            with self.subTest(name):
                rows = self.rows(name, content)
                np.testing.assert_allclose(rows.features[:, :2], UNIT, rtol=1e-15)
                self.assertEqual(rows.features.dtype, np.float64)
                self.assertEqual(rows.labels.tolist(), [7, 9])

    def test_lengths_of_extreme_rows_are_one(self):
        rows = self.rows("v.csv", "3e38,3e38\n1e-44,1e-44\n")
        np.testing.assert_allclose(rows.features, np.full((2, 2), .5**.5), rtol=1e-15)

    def test_each_format_of_labels_is_read(self):
        for name, content in (("l.csv", "Labels\n7\n-9\r\n"), ("l.txt", '"label"\n 7 \n\n-9'),
                              ("l.ivecs", vecs([[7], [-9]], "i")), ("l.npy", npy(np.array([[7], [-9]], np.int8))),
                              ("m.npy", npy(np.array([7, -9])))):
            with self.subTest(name):
                self.assertEqual(self.rows("v.csv", "3,4\n0,2\n", (name, content)).labels.tolist(), [7, -9])

    def test_labels_may_be_names(self):
        for name, content in (("l.csv", "label\n\"tea, green\"\n1\n"), ("l.txt", "tea, green\n1\n"),
                              ("l.npy", npy(np.array(["tea, green", "1"]))),
                              ("l.npy", npy(np.array(["tea, green", "1"], object)))):
            with self.subTest(name):
                rows = self.rows("v.csv", "3,4\n0,2\n", (name, content))
                self.assertEqual((rows.labels.tolist(), rows.class_names), ([1, 0], ("1", "tea, green")))

    def test_malformed_vectors_are_refused(self):
        for text, name, content in (
                ("row 1 is zero", "v.csv", "3,4\n0,0\n"), ("row 1 is not", "v.csv", "3,4\ninf,0\n"),
                ("row 0 is not", "v.csv", "nan,inf\n1,0\n"), ("row 0 is not", "v.csv", "1e39,0\n1,0\n"),
                ("line 3 column 2 .y.: expected a number", "v.csv", "x,y\n1,2\n3,four\n"),
                ("expected a name that ends in .npy, .npz, .fvecs, .ivecs or .csv", "v.txt", "1,2")):
            with self.subTest(text):
                self.refused(text, name, content)

    def test_malformed_labels_are_refused(self):
        for text, name, content in (
                (r"\(2,\), one for each row", "l.txt", "7\n"),
                ("line 2 column 1: expected one integer", "l.csv", "1\n1.5\n"), ("expected one label", "l.csv", "1,2\n3,4\n"),
                ("utf-8", "l.txt", b"caf\xe9\n1\n"), ("32-bit", "l.txt", "1\n2147483648\n"), ("row 1: the label is beyond", "l.npy", npy(np.array([1, 2**63], np.uint64))),
                ("row 1: the label is no whole", "l.npy", npy(np.array([1, 1.5]))),
                ("row 1 has none", "l.npy", npy(np.array([1, np.nan]))), ("expected labels of shape", "l.npy", npy(np.ones((2, 2), int))),
                ("expected 1 column", "l.ivecs", vecs([[1, 2], [3, 4]], "i")),
                ("expected a name that ends in .npy, .npz, .ivecs, .csv or .txt", "l.fvecs", "x")):
            with self.subTest(text):
                self.refused(text, "v.csv", "3,4\n0,2\n", (name, content))

def numbered(sizes):
    """Rows of classes 10, 20, ... of these sizes, in turn; the feature of each is its own number."""
    labels = np.random.default_rng(3).permutation(np.repeat(10 * np.arange(1, len(sizes) + 1), sizes))
    return Rows(np.arange(len(labels), dtype=float)[:, None], labels, tuple("abc"))


class Splits(unittest.TestCase):

    def test_parties_are_stratified_and_share_no_row(self):
        rows = numbered([30, 40, 20])
        parties = data.split(rows, anchors_per_class=4, targets=7, gallery_per_class=15, seed=1)
        taken = [party.features[:, 0].astype(int) for party in (parties.anchors, parties.gallery, parties.targets)]
        self.assertEqual(len(np.unique(np.concatenate(taken))), sum(map(len, taken)))
        for party, members in zip((parties.anchors, parties.gallery, parties.targets), taken):
            np.testing.assert_array_equal(party.labels, rows.labels[members])
            self.assertEqual(party.class_names, ("a", "b", "c"))
        anchors, gallery, targets = (np.bincount(party.labels)[10::10]
                                     for party in (parties.anchors, parties.gallery, parties.targets))
        self.assertEqual(anchors.tolist(), [4, 4, 4])
        self.assertEqual(sorted(targets), [2, 2, 3])
        self.assertEqual(gallery.tolist(), [15, 15, 20 - 4 - targets[2]])
        self.assertTrue((np.diff(taken[1]) > 0).all())

    def test_seed_alone_decides(self):
        rows = numbered([30, 40, 20])
        features = [data.split(rows, 4, 7, 15, seed).targets.features.tolist() for seed in (1, 1, 2)]
        self.assertEqual(features[0], features[1])
        self.assertNotEqual(features[0], features[2])

    def test_class_with_one_target_more_is_drawn(self):
        rows = numbered([5, 5])
        self.assertEqual({int(data.split(rows, 1, 1, 9, seed).targets.labels[0]) for seed in range(20)}, {10, 20})

    def test_every_row_is_drawn_alike(self):
        rows = numbered([4, 6])
        counts = np.zeros((3, 10))
        for seed in range(2000):
            parties = data.split(rows, 1, 2, 9, seed)
            for count, party in zip(counts, (parties.anchors, parties.gallery, parties.targets)):
                count[party.features[:, 0].astype(int)] += 1 / 2000
        size = np.where(rows.labels == 10, 4, 6)
        np.testing.assert_allclose(counts, [1 / size, (size - 2) / size, 1 / size], atol=.05)  # 4.5 deviations

    def test_small_class_gives_targets_until_one_row_is_left(self):
        rows = numbered([3, 20])
        parties = data.split(rows, 1, 10, 100, 1)
        self.assertEqual(np.bincount(parties.targets.labels)[[10, 20]].tolist(), [1, 9])
        self.assertEqual(np.bincount(parties.gallery.labels)[[10, 20]].tolist(), [1, 10])
        self.assertEqual(len(data.split(rows, 1, 19, 100, 1).targets), 19)
        with self.assertRaisesRegex(InvalidArgument, "^targets must be at most 19, .* but is 20"):
            data.split(rows, 1, 20, 100, 1)

    def test_impossible_sizes_are_refused(self):
        rows = numbered([5, 9])
        for sizes, text in (((0, 1, 1), "anchors_per_class must be at least 1, but is 0"),
                            ((1, 0, 1), "targets must be at least 1"),
                            ((1, 1, 0), "gallery_per_class must be at least 1"),
                            ((5, 1, 1), "anchors_per_class must .* is 5 and class 10 has 5 rows")):
            with self.assertRaisesRegex(InvalidArgument, f"^{text}"):
                data.split(rows, *sizes, 1)
        data.split(rows, 4, 1, 1, 1)
        with self.assertRaisesRegex(InvalidArgument, "^labels must have at least 2 classes, but have 1"):
            data.split(numbered([5]), 1, 1, 1, 1)

    def test_halves_are_of_classes(self):
        rows = numbered([1, 2, 3, 4, 5])
        self.assertIs(data.half_of_classes(rows, "all"), rows)
        self.assertEqual(set(data.half_of_classes(rows, "first").labels), {10, 20})
        second = data.half_of_classes(rows, "second")
        self.assertEqual(set(second.labels), {30, 40, 50})
        np.testing.assert_array_equal(second.labels, rows.labels[second.features[:, 0].astype(int)])
        self.assertEqual(len(second), 12)
        with self.assertRaisesRegex(InvalidArgument, '^classes must be all, first or second, but is "third"'):
            data.half_of_classes(rows, "third")

    def test_digest_tells_values_labels_and_shapes_apart(self):
        rows = Rows(np.eye(2), np.array([1, 2]))
        others = [dataclasses.replace(rows, labels=np.array([2, 2])), Rows(np.eye(2) + .5, rows.labels),
                  Rows(np.eye(2).reshape(1, 4), rows.labels)]
        self.assertEqual(data.digest(rows), data.digest(Rows(np.eye(2), np.array([1, 2]))))
        self.assertEqual(len({data.digest(one) for one in [rows, *others]}), 4)
        transposed = Rows(np.arange(4.).reshape(2, 2).T, rows.labels)
        self.assertEqual(data.digest(transposed), data.digest(Rows(np.array([[0, 2], [1, 3.]]), rows.labels)))


class Presets(unittest.TestCase):

    def test_are_those_of_table_2(self):
        for name, bandwidth, alpha, classes in (("cars196", 6, .6, "second"), ("cub200", 5, .5, "second"),
                                                ("cifar100", 6, .6, "all")):
            preset = data.preset(name)
            self.assertEqual((preset.name, preset.epsilon, preset.delta, preset.classes), (name, .1, 1e-5, classes))
            settings = preset.settings
            self.assertEqual((settings.kernel_bandwidth, settings.alpha, settings.embedding_dim, settings.steps,
                              settings.start_stddev), (bandwidth, alpha, 2, 5, 1e-8))
            self.assertEqual((settings.label_graph, settings.start), ("distance", "random"))

class ImageSets(InFolder):

    def relative(self, images):
        return [os.path.relpath(path, self.folder) for path in images.paths]

    def test_folder_is_listed_by_class(self):
        for name in ("pear/b.png", "pear/a.JPG", "pear/notes.txt", "pear/.hidden.png", "pear/more.png/c.png",
                     "pear-like/d.jpeg", "onion/e.webp", "empty/readme.md", ".git/x.png", "loose.png"):
            self.write(name)
        images = data.image_folder(self.folder)
        self.assertEqual(images.class_names, ("onion", "pear", "pear-like"))
        self.assertEqual(self.relative(images), ["onion/e.webp", "pear/a.JPG", "pear/b.png", "pear-like/d.jpeg"])
        self.assertEqual(images.labels, [0, 1, 1, 2])
        self.assertEqual(len(images.skipped), 7)
        with self.assertRaisesRegex(InvalidArgument, "^images must .*has none"):
            data.image_folder(os.path.join(self.folder, "empty"))

    def test_cub_is_found_from_above_and_from_within(self):
        self.write("CUB_200_2011/images/002.Laysan_Albatross/b.jpg")
        self.write("CUB_200_2011/images/001.Black_footed_Albatross/a.jpg")
        self.write("CUB_200_2011/images.txt", "1 001.Black_footed_Albatross/a.jpg\n")
        for path in ("", "CUB_200_2011", "CUB_200_2011/images"):
            images = data.cub200(os.path.join(self.folder, path))
            self.assertEqual(images.class_names, ("001.Black_footed_Albatross", "002.Laysan_Albatross"))
            self.assertEqual(images.labels, [0, 1])
            self.assertTrue(images.paths[1].endswith("b.jpg"))

    def test_cars_in_train_and_test_are_taken_together(self):
        for part in ("train", "test"):
            for name in ("Audi", "BMW"):
                self.write(f"car_data/{part}/{name}/{part}.jpg")
        images = data.cars196(self.folder)
        self.assertEqual(images.class_names, ("Audi", "BMW"))
        self.assertEqual(self.relative(images), [f"car_data/{part}/{name}/{part}.jpg" for part in ("test", "train")
                                                 for name in ("Audi", "BMW")])
        self.assertEqual(images.labels, [0, 1, 0, 1])
        self.write("car_data/test/Volvo/1.jpg")
        with self.assertRaisesRegex(InvalidArgument, "^data must have the same classes .* 2 and 3"):
            data.cars196(self.folder)

    def cifar_image(self, coarse, fine, *planes):
        return bytes([coarse, fine]) + b"".join(bytes([plane]) * 1024 for plane in planes)

    def test_cifar_is_unpacked_by_fine_label(self):
        content = (self.cifar_image(1, 20, 255, 1, 2) + self.cifar_image(2, 3, 128, 3, 4) +
                   self.cifar_image(1, 20, 0, 0, 0)[:-1] + b"\x09")
        file = self.write("cifar-100-binary/test.bin", content)
        for path in (self.folder, os.path.dirname(file), file):
            images = data.cifar100(path, os.path.join(self.folder, "scratch"))
            self.assertEqual(images.class_names, ("03", "20"))
            self.assertEqual(images.labels, [1, 0, 1])
            pixels = [np.uint8(255 * imread(path)[:, :, :3]).tobytes() for path in images.paths]
            self.assertEqual(pixels[0], b"\xff\x01\x02" * 1024)
            self.assertEqual(pixels[1], b"\x80\x03\x04" * 1024)
            self.assertEqual(pixels[2], bytes(3 * 1024 - 1) + b"\x09")

class Descriptions(InFolder):
    """With an extractor that gives (size of the file, its last byte)."""

    def setUp(self):
        super().setUp()
        self.write("images/a/1.png", "12")
        self.write("images/b/2.png", "123")
        self.model = self.write("model.onnx", "weights")
        self.cache = os.path.join(self.folder, "cache", "features")
        self.version, self.described = 1, 0
        self.enterContext(mock.patch.object(data, "_seeded", mock.Mock(Extractor=self.create)))
        self.enterContext(mock.patch.object(data, "_PART", 2))

    def create(self, model, width, height):
        content = pathlib.Path(model).read_text(encoding="utf-8") if model else ""
        return mock.Mock(identity=f"{self.version} {content} {width} x {height}", extract=self.extract)

    def extract(self, paths, _threads):
        self.described += len(paths)
        contents = [pathlib.Path(path).read_bytes() for path in paths]
        features = [[len(one), one[-1]] if one else [0, 0] for one in contents]
        return np.array(features, np.float32), [f"{path}: empty" * (not one) for path, one in zip(paths, contents)]

    def describe(self, onnx=None, input_size=(224, 200)):
        """(rows, how many images were described)"""
        self.described = 0
        rows = data.describe(data.image_folder(os.path.join(self.folder, "images")), self.cache, onnx, input_size)
        return rows, self.described

    def test_rows_are_of_unit_length_in_the_order_of_images(self):
        self.write("images/b/3.png", "1234")
        rows, _ = self.describe()
        expected = np.array([[2, ord("2")], [3, ord("3")], [4, ord("4")]], float)
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
        np.testing.assert_allclose(rows.features, expected, rtol=1e-12)
        self.assertEqual((rows.labels.tolist(), rows.class_names), ([0, 1, 1], ("a", "b")))

    def test_features_are_cached_for_the_same_images_and_extractor(self):
        first, _ = self.describe()
        again, described = self.describe()
        self.assertEqual((described, data.digest(again)), (0, data.digest(first)))
        (file,) = pathlib.Path(self.cache).iterdir()
        for damaged in (file.read_bytes()[:130], b"", npy(np.ones((1, 2), np.float32)), npy(np.ones(2, np.float32))):
            file.write_bytes(damaged)
            again, described = self.describe()
            self.assertEqual((described, data.digest(again)), (2, data.digest(first)))
        self.write("images/b/2.png", "321")  # as long as before
        self.assertEqual(self.describe()[1], 2)
        self.write("images/a/1.png", "123")  # the same bytes in a row
        self.write("images/b/2.png", "21")
        self.assertEqual(self.describe()[1], 2)
        for input_size in ((224, 200), (64, 64)):
            self.assertEqual([self.describe(self.model, input_size)[1] for _ in range(2)], [2, 0])
        self.write("model.onnx", "others")
        self.assertEqual(self.describe(self.model)[1], 2)
        self.version = 2
        self.assertEqual(self.describe()[1], 2)

    def test_unreadable_images_are_refused(self):
        self.write("images/b/2.png")
        with self.assertRaisesRegex(InvalidArgument, "^images must .* 1 of 2 are not; the first: .*/b/2.png: empty"):
            self.describe()

"""Labelled rows from vector files and folders of images, their splits, and the image sets of the papers."""

import dataclasses
import hashlib
import itertools
import os
import pathlib
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, TypeVar

import numpy as np
from matplotlib.image import imsave
from numpy.typing import NDArray

from privatemail import _arrays
from privatemail.errors import FailedPrecondition, InvalidArgument, wrong
from privatemail.evaluation import _seeded
from privatemail.evaluation.study import Floats, Rows, Settings, Split

Array = NDArray[Any]
_Content = TypeVar("_Content")


def _unit_rows(field: str, features: Array) -> Floats:
    rows = _arrays.rows(field, features).astype(np.float64)  # squares of float32 neither vanish nor overflow
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if not lengths.all():
        raise wrong(field, f"must have a direction, but row {lengths.argmin()} is zero")
    unit: Floats = rows / lengths
    return unit


def _of_file(field: str, read: Callable[[], _Content]) -> _Content:
    try:
        return read()
    except (InvalidArgument, UnicodeDecodeError) as error:
        raise wrong(field, f"must be a readable file, but are not: {error}") from error


def read_vectors(vectors: str, labels: str) -> Rows:
    """The rows of a file of vectors, scaled to length 1, with the labels of another.

    vectors: .npy or .npz (rows x columns), .fvecs, .ivecs, or .csv with or without a line of names and an index.
    labels: .npy or .npz of integers, text or objects (n or n x 1), .ivecs of one column, or .csv or .txt of one integer
    or name a line.
    """
    features = _unit_rows("vectors", _of_file("vectors", lambda: _seeded.read_vectors(vectors)))
    numbers, texts = _of_file("labels", lambda: _seeded.read_labels(labels, len(features)))
    if numbers:
        return Rows(features, _arrays.labels("labels", numbers, len(features)).astype(np.int64))
    names, of_row = np.unique(_arrays.label_column("labels", texts, len(features))[1], return_inverse=True)
    return Rows(features, of_row.astype(np.int64), tuple(names.tolist()))


def split(rows: Rows, anchors_per_class: int, targets: int, gallery_per_class: int, seed: int) -> Split:
    """A stratified random split that depends on the rows and `seed` alone.

    anchors_per_class: exactly. targets: in all, spread evenly over the classes. gallery_per_class: at most, of the
    rest; at least 1. The gallery is in the order of `rows`.
    """
    for field, size in (("anchors_per_class", anchors_per_class), ("targets", targets),
                        ("gallery_per_class", gallery_per_class)):
        if size < 1:
            raise wrong(field, f"must be at least 1, but is {size}")
    classes, sizes = np.unique(rows.labels, return_counts=True)
    if len(classes) < 2:
        raise wrong("labels", f"must have at least 2 classes, but have {len(classes)}")
    if sizes.min() <= anchors_per_class:
        raise wrong("anchors_per_class", f"must leave a row of every class to the gallery, but is {anchors_per_class} and class "
            f"{classes[sizes.argmin()]} has {sizes.min()} rows")
    draws = np.random.default_rng(seed)
    by_class = [draws.permutation(np.flatnonzero(rows.labels == label)) for label in draws.permutation(classes)]
    anchors = np.concatenate([members[:anchors_per_class] for members in by_class])
    left = [members[anchors_per_class:] for members in by_class]
    # One of each class after the other; the last of a class stays for the gallery.
    turns = itertools.chain.from_iterable(itertools.zip_longest(*(members[:-1] for members in left)))
    chosen = np.array([row for row in turns if row is not None][:targets], np.int64)
    if len(chosen) < targets:
        raise wrong("targets", f"must be at most {len(chosen)}, the rows that anchors and gallery leave, but is "
                              f"{targets}")
    gallery = np.concatenate([members[~np.isin(members, chosen)][:gallery_per_class] for members in left])
    return Split(anchors=rows.take(anchors), gallery=rows.take(np.sort(gallery)), targets=rows.take(chosen))


def half_of_classes(rows: Rows, which: str) -> Rows:
    """The rows of "all" classes, or of the "first" or "second" half of them by number; the second is the larger."""
    if which not in ("all", "first", "second"):
        raise wrong("classes", f'must be all, first or second, but is "{which}"')
    classes = np.unique(rows.labels)
    if which == "all" or not classes.size:
        return rows
    return rows.take(np.flatnonzero((rows.labels < classes[len(classes) // 2]) == (which == "first")))


def digest(rows: Rows) -> str:
    """SHA-256 of shape, values and labels, in hexadecimal."""
    head = repr(rows.features.shape).encode()
    return hashlib.sha256(head + rows.features.tobytes() + rows.labels.tobytes()).hexdigest()


@dataclasses.dataclass(frozen=True)
class Preset:
    """The parameters of the second paper (table 2) for one of its image sets. classes: those that are searched."""

    name: str
    settings: Settings
    epsilon: float
    delta: float
    classes: str


def preset(name: str) -> Preset:
    """The preset "cars196", "cub200" or "cifar100".

    Of the first two, networks are trained on the first half of the classes, and the second is searched.
    """
    presets = {"cars196": (6, .6, "second"), "cub200": (5, .5, "second"), "cifar100": (6, .6, "all")}
    if name not in presets:
        raise wrong("preset", f'must be cars196, cub200 or cifar100, but is "{name}"')
    bandwidth, alpha, classes = presets[name]
    settings = Settings(kernel_bandwidth=bandwidth, alpha=alpha, label_graph="distance", steps=5, start="random")
    return Preset(name, settings, epsilon=.1, delta=1e-5, classes=classes)


class ImageList(NamedTuple):
    """Image files and their classes. labels: indices of class_names. skipped: what was left out, and why."""

    paths: List[str]
    labels: List[int]
    class_names: Tuple[str, ...]
    skipped: List[Tuple[str, str]]


_IMAGE_ENDINGS = (".jpeg", ".jpg", ".png", ".webp")


def _reason_to_skip(file: pathlib.Path) -> str:
    """Empty for an image."""
    if file.name.startswith("."):
        return "its name begins with a dot"
    if not file.is_file():
        return "expected a file in the folder of a class"
    return "" if file.suffix.lower() in _IMAGE_ENDINGS else "its name does not end in " + " ".join(_IMAGE_ENDINGS)


def _entries(field: str, folder: pathlib.Path) -> List[pathlib.Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise wrong(field, f"must be a folder of images, but {folder}: {error.strerror}") from error


def _list_images(field: str, folder: pathlib.Path) -> ImageList:
    images = ImageList([], [], (), [])
    names: List[str] = []
    for entry in _entries(field, folder):
        if entry.name.startswith(".") or not entry.is_dir():
            images.skipped.append((entry.name, "no folder of a class, or hidden"))
            continue
        reasons = {file: _reason_to_skip(file) for file in _entries(field, entry)}
        found = [str(file) for file, why in reasons.items() if not why]
        images.skipped.extend((f"{entry.name}/{file.name}", why) for file, why in reasons.items() if why)
        if not found:
            images.skipped.append((entry.name, "the folder holds no image"))
            continue
        images.paths.extend(found)
        images.labels.extend([len(names)] * len(found))
        names.append(entry.name)
    if not names:
        raise wrong(field, f"must have one sub-folder of images for each class, but {folder} has none")
    return images._replace(class_names=tuple(names))


def image_folder(path: str) -> ImageList:
    """The images `path`/CLASS/FILE by class and name; none is opened.

    Skipped: hidden names, files beside the classes, folders in a class, classes without an image, and files that do
    not end like an image.
    """
    return _list_images("images", pathlib.Path(path))


def _within(path: pathlib.Path, name: str) -> pathlib.Path:
    return path / name if (path / name).is_dir() else path


def cub200(path: str) -> ImageList:
    """CUB-200-2011 as published: images/CLASS/FILE, in `path` or in its CUB_200_2011."""
    return _list_images("data", _within(_within(pathlib.Path(path), "CUB_200_2011"), "images"))


def cars196(path: str) -> ImageList:
    """Cars196 sorted by class: CLASS/FILE, in `path` or its car_data, or there in train and test together."""
    root = _within(pathlib.Path(path), "car_data")
    parts = [root / "test", root / "train"]
    if not all(part.is_dir() for part in parts):
        images = _list_images("data", root)
        if len(images.class_names) < 4:  # cars_train, cars_test and devkit, as published
            raise wrong("data", f"must have a folder of images for each class, or such folders in train and "
                                  f"test, but {root} has {len(images.class_names)}: sort the images by class first")
        return images
    test, train = (_list_images("data", part) for part in parts)
    if test.class_names != train.class_names:
        raise wrong("data", f"must have the same classes in train and test, but {root} has "
                              f"{len(train.class_names)} and {len(test.class_names)}, of which some differ")
    skipped = [(f"{part.name}/{name}", why) for part, one in zip(parts, (test, train)) for name, why in one.skipped]
    return ImageList(test.paths + train.paths, test.labels + train.labels, test.class_names, skipped)


def cifar100(path: str, scratch: str) -> ImageList:
    """CIFAR-100's binary version, unpacked into images by fine label.

    path: test.bin or train.bin, or the folder of test.bin or the one above. scratch: a folder for the images, which
    the caller removes.
    """
    file = _within(pathlib.Path(path), "cifar-100-binary")
    file = file / "test.bin" if file.is_dir() else file
    try:
        data = np.fromfile(file, np.uint8)
    except OSError as error:
        raise wrong("data", f"must be test.bin of CIFAR-100 or its folder, but {file}: "
                              f"{error.strerror}") from error
    record = 2 + 3 * 32 * 32  # coarse label, fine label, planes of red, green and blue
    if not data.size or data.size % record:
        raise wrong("data", f"must be images of {record} bytes each, but {file} has {data.size} bytes")
    records = data.reshape(-1, record)
    fine = records[:, 1]
    if fine.max() > 99:
        raise wrong("data", f"must have fine labels up to 99, but image {fine.argmax()} of {file} has "
                              f"{fine.max()}")
    classes, labels = np.unique(fine, return_inverse=True)
    names = tuple(f"{label:02d}" for label in classes)
    for name in names:
        os.makedirs(os.path.join(scratch, name), exist_ok=True)
    paths = [os.path.join(scratch, names[label], f"{image:05d}.png") for image, label in enumerate(labels)]
    for target, planes in zip(paths, records[:, 2:]):
        imsave(target, planes.reshape(3, 32, 32).transpose(1, 2, 0))
    return ImageList(paths, labels.tolist(), names, [])


_PART = 500  # images that are described and cached together


def _digest_of_files(paths: Sequence[str]) -> str:
    found = hashlib.sha256()
    for path in paths:
        try:
            content = pathlib.Path(path).read_bytes()
        except OSError:
            content = b""  # the extractor says why
        found.update(f"{len(content)}\n".encode())
        found.update(content)
    return found.hexdigest()


def _cached(file: str, count: int) -> Optional[Array]:
    """None where there is no file, or a damaged one."""
    try:
        features: Array = np.load(file)
    except (OSError, ValueError, EOFError):
        return None
    return features if features.ndim == 2 and len(features) == count else None


def describe(images: ImageList, cache: str, onnx: Optional[str], input_size: Tuple[int, int],
             progress: Optional[Callable[[float], None]] = None) -> Rows:
    """Describes images on all cores, and caches their features in the folder `cache` by images and extractor.

    onnx: the path of a model for images of input_size, (width, height); None: the built-in descriptor. progress: called
    with the number of images done so far. InvalidArgument: an image that cannot be described.
    """
    extractor = _seeded.Extractor(onnx or "", *(input_size if onnx else (0, 0)))
    try:
        os.makedirs(cache, exist_ok=True)
    except OSError as error:
        raise FailedPrecondition(f"cache must be a folder, but {cache} cannot be made: {error.strerror}") from error
    parts: List[Array] = []
    failed: List[str] = []
    for first in range(0, len(images.paths), _PART):
        paths = images.paths[first:first + _PART]
        key = hashlib.sha256(f"{extractor.identity}-{_digest_of_files(paths)}".encode()).hexdigest()
        file = os.path.join(cache, f"{key[:32]}.npy")
        features = _cached(file, len(paths))
        if features is None:
            features, reasons = extractor.extract(paths, min(os.cpu_count() or 1, 256))
            failed.extend(filter(None, reasons))
            if not any(reasons):
                np.save(file, features)
        parts.append(features)
        if progress:
            progress(first + len(paths))
    if failed:
        raise wrong("images", f"must be readable, but {len(failed)} of {len(images.paths)} are not; the first: "
                              f"{failed[0]}")
    return Rows(_unit_rows("images", np.concatenate(parts)), np.array(images.labels, np.int64), images.class_names)

"""Features of images, so that they can be ingested and searched."""

import collections.abc
import os
from typing import Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from privatemail import _arrays, _core
from privatemail._calls import checked_call
from privatemail._client import Path
from privatemail.errors import about, wrong


@checked_call
class Extractor:
    """Describes images by feature vectors, on all cores of this machine; nothing is sent.

    model: an ONNX file, run by OpenCV as NAME.toml beside NAME.onnx says, or the name of an installed one
    ("mobilenet_v2"); "": the built-in descriptor of 548 values. input_size: (width, height) of the model's input;
    (0, 0): what profile or model state. identity: names everything that the vectors depend on, for
    `create_collection(extractor=...)`: queries and items must come from the same. dim: of a vector.
    """

    def __init__(self, model: Path = "", *, input_size: Tuple[int, int] = (0, 0)) -> None:
        sizes = _arrays.integers("input_size", input_size)
        if len(sizes) != 2:
            raise wrong("input_size", f"must be width and height, but has {len(sizes)} entries")
        with about("model"):
            self._core = _core.Extractor(_arrays.path("model", model), *sizes)

    @property
    def identity(self) -> str:
        return self._core.identity

    @property
    def dim(self) -> int:
        return self._core.dim

    def __call__(self, images: Sequence[Path]) -> NDArray[np.float32]:
        """n x dim, a row an image. images: paths of files (JPEG, PNG, WebP).

        Transparent pixels are composited over white; of an animation the first frame is taken.
        """
        if isinstance(images, (str, os.PathLike)) or not isinstance(images, collections.abc.Iterable):
            raise wrong("images", f"must be a list of paths, but is of type {type(images).__name__}")
        paths = [_arrays.path("images", path, row) for row, path in enumerate(images)]
        if not paths:
            raise wrong("images", "must not be empty")
        features, failures = self._core.extract(paths, min(os.cpu_count() or 1, 256))
        for row, failure in enumerate(failures):
            if failure:
                raise wrong("images", f"must be readable, but row {row} is not: {failure}")
        return features

    def __repr__(self) -> str:
        return f"Extractor({self.identity!r})"

"""Features of images, so that they can be ingested and searched."""

import os
from typing import Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from privatemail import _core
from privatemail._client import Path
from privatemail.errors import wrong


class Extractor:
    """Describes images by feature vectors, on all cores of this machine; nothing is sent.

    model: an ONNX file, run by OpenCV as NAME.toml beside NAME.onnx says, or the name of an installed one
    ("mobilenet_v2"); "": the built-in descriptor of 548 values. input_size: (width, height) of the model's input;
    (0, 0): what profile or model state. identity: names everything that the vectors depend on, for
    `create_collection(extractor=...)`: queries and items must come from the same. dim: of a vector.
    """

    def __init__(self, model: Path = "", *, input_size: Tuple[int, int] = (0, 0)) -> None:
        self._core = _core.Extractor(str(model), *input_size)

    @property
    def identity(self) -> str:
        return self._core.identity

    @property
    def dim(self) -> int:
        return self._core.dim

    def __call__(self, images: Sequence[Path]) -> NDArray[np.float32]:
        """n x dim, a row an image. images: paths of files (JPEG, PNG, WebP)."""
        if isinstance(images, (str, os.PathLike)):
            raise wrong("images", "must be a list of paths, but is one")
        if len(images) == 0:
            raise wrong("images", "must not be empty")
        features, failures = self._core.extract([str(path) for path in images], min(os.cpu_count() or 1, 256))
        for failure in failures:
            if failure:
                raise wrong("images", f"must be readable, but one is not: {failure}")
        return features

    def __repr__(self) -> str:
        return f"Extractor({self.identity!r})"

"""The C++ core with a network channel and exact noise. Its names may change; use the package's."""

import numpy as np

from privatemail import _noise

_noise.claim("secure")

# pylint: disable=wrong-import-position,wildcard-import,unused-wildcard-import
from privatemail._native import *
from privatemail._native import __version__, reads_numpy_2

if int(np.__version__.split(".")[0]) >= 2 and not reads_numpy_2:
    raise ImportError(f"privatemail was built with a pybind11 before 2.12, which cannot read arrays of numpy "
                      f"{np.__version__}: install numpy<2, or build privatemail with a newer pybind11")

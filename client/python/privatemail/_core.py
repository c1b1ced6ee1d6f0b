"""The C++ core with a network channel and exact noise. Its names may change; use the package's."""

from privatemail import _noise

_noise.claim("secure")

# pylint: disable=wrong-import-position,wildcard-import,unused-wildcard-import
from privatemail._native import *
from privatemail._native import __version__

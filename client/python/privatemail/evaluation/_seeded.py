"""The C++ core of the evaluation, with seeded noise. Its names may change."""

from privatemail import _noise

_noise.claim("seeded")

# pylint: disable=wrong-import-position,wildcard-import,unused-wildcard-import
from privatemail.evaluation._native import *
from privatemail.evaluation._native import __version__

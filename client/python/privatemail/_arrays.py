"""Checks of arrays. Errors name the argument, what was expected and what came; never a value."""

import collections.abc
import operator
import os
from typing import Any, List, Optional, Tuple

import numpy as np
from numpy.typing import NDArray

from privatemail.errors import wrong


def as_array(field: str, given: Any) -> "np.ndarray[Any, Any]":
    if isinstance(given, np.ma.MaskedArray) and np.any(np.asarray(given.mask)):
        raise wrong(field, "must have no masked values, but has some")
    try:
        return np.asarray(given)
    except ValueError as error:
        raise wrong(field, f"must be an array of numbers, but its rows differ in length") from error


def rows(field: str, given: Any, columns: Optional[int] = None, copy: bool = False) -> NDArray[np.float32]:
    """A C-contiguous float32 array of finite numbers, n x columns, n > 0. copy: always a new one."""
    array = as_array(field, given)
    if array.dtype.kind not in "fiu":
        raise wrong(field, f"must have a dtype of numbers, but has {array.dtype}")
    if array.ndim != 2:
        raise wrong(field, f"must have 2 dimensions, rows x features, but has shape {array.shape}")
    if array.shape[0] == 0 or array.shape[1] == 0:
        raise wrong(field, f"must not be empty, but has shape {array.shape}")
    if columns is not None and array.shape[1] != columns:
        raise wrong(field, f"must have {columns} columns, as the collection, but has {array.shape[1]}")
    with np.errstate(over="ignore"):
        array = np.array(array, np.float32, order="C") if copy else np.ascontiguousarray(array, np.float32)
    if not np.isfinite(array).all():
        raise wrong(field, f"must be finite, but row {int(np.where(~np.isfinite(array).all(axis=1))[0][0])} "
                              "is not")
    return array


def targets(given: Any, field: str = "queries") -> Tuple[NDArray[np.float32], bool]:
    """Queries: one row, or rows. Returns (n x d, whether it was one). Always a copy."""
    array = as_array(field, given)
    one = array.ndim == 1
    return rows(field, array[None] if one else array, copy=True), one


def labels(field: str, given: Any, count: int) -> NDArray[np.int32]:
    """A C-contiguous int32 array of `count` labels."""
    array = np.asarray(given)
    if array.dtype.kind not in "iu":
        raise wrong(field, f"must be integers, but has dtype {array.dtype}")
    if array.shape != (count,):
        raise wrong(field, f"must have shape ({count},), one for each row, but has {array.shape}")
    if array.size and (array.min() < -2**31 or array.max() >= 2**31):
        raise wrong(field, f"must fit into 32 bits, but do not")
    return np.ascontiguousarray(array, np.int32)


def integer(field: str, given: Any) -> int:
    """An integer of 64 bits, no bool."""
    try:
        if isinstance(given, (bool, np.bool_)):
            raise TypeError
        number = operator.index(given)
    except TypeError:
        raise wrong(field, f"must be an integer, but is of type {type(given).__name__}") from None
    if not -2**63 <= number < 2**63:
        raise wrong(field, f"must fit into 64 bits, but does not")
    return number


def integers(field: str, given: Any) -> List[int]:
    """A list of integers of 32 bits."""
    if isinstance(given, str) or not isinstance(given, collections.abc.Iterable):
        raise wrong(field, f"must be a list of integers, but is of type {type(given).__name__}")
    found = [integer(field, one) for one in given]
    if any(not -2**31 <= one < 2**31 for one in found):
        raise wrong(field, "must fit into 32 bits, but do not")
    return found


def number(field: str, given: Any) -> float:
    """A float, no bool; NaN is left to the core."""
    try:
        if isinstance(given, (str, bytes, bool, np.bool_)) or np.ndim(given) != 0:
            raise TypeError
        return float(given)
    except (TypeError, ValueError, OverflowError):
        raise wrong(field, f"must be a number, but is of type {type(given).__name__}") from None


def numbers(field: str, given: Any) -> List[float]:
    """A list of numbers."""
    if isinstance(given, str) or not isinstance(given, collections.abc.Iterable):
        raise wrong(field, f"must be a list of numbers, but is of type {type(given).__name__}")
    return [number(field, one) for one in given]


def flag(field: str, given: Any) -> bool:
    """True or False; nothing else, since "no" is true in Python."""
    if not isinstance(given, (bool, np.bool_)):
        raise wrong(field, f"must be True or False, but is of type {type(given).__name__}")
    return bool(given)


def text(field: str, given: Any) -> str:
    """A string that UTF-8 can hold."""
    if not isinstance(given, str):
        raise wrong(field, f"must be a string, but is of type {type(given).__name__}")
    if not _is_utf8(given):
        raise wrong(field, f"must be text in UTF-8, but holds a lone surrogate")
    return given


def path(field: str, given: Any) -> str:
    """A path, as a string; "": none."""
    try:
        return os.fsdecode(given)
    except TypeError:
        raise wrong(field, f"must be a path, but is of type {type(given).__name__}") from None


def _is_utf8(given: str) -> bool:
    try:
        given.encode()
    except UnicodeEncodeError:
        return False
    return True


def texts(field: str, given: Any, count: Optional[int] = None) -> List[str]:
    """A list of strings, `count` if it is given."""
    if isinstance(given, str):
        raise wrong(field, f"must be a list of strings, but is one string")
    try:
        found = [str(text) for text in given] if isinstance(given, np.ndarray) else list(given)
    except TypeError:
        raise wrong(field, f"must be a list of strings, but is of type {type(given).__name__}") from None
    if count is not None and len(found) != count:
        raise wrong(field, f"must have {count} entries, one for each row, but has {len(found)}")
    for row, text in enumerate(found):
        if not isinstance(text, str):
            raise wrong(field, f"must be strings, but entry {row} is of type {type(text).__name__}")
        if not _is_utf8(text):
            raise wrong(field, f"must be text in UTF-8, but entry {row} holds a lone surrogate")
    return found

"""Checks of arrays. Errors name the argument, what was expected and what came; never a value."""

import collections.abc
import json
import operator
import os
import re
import uuid
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

import numpy as np
from numpy.typing import NDArray

from privatemail.errors import wrong


def _to_numpy(given: Any) -> Any:
    """An object with to_numpy alone, such as a column of a library without numpy's protocol, as an array."""
    return given.to_numpy() if hasattr(given, "to_numpy") and not hasattr(given, "__array__") else given


def as_array(field: str, given: Any) -> "np.ndarray[Any, Any]":
    given = _to_numpy(given)
    if isinstance(given, np.ma.MaskedArray) and np.any(np.asarray(given.mask)):
        raise wrong(field, f"must have no masked values, but row {np.argwhere(given.mask)[0][0]} has some")
    try:
        return np.asarray(given)
    except ValueError as error:
        lengths = [np.size(one) for one in given]
        other = next((row for row, length in enumerate(lengths) if length != lengths[0]), 0)
        raise wrong(field, f"must be an array of numbers, but its rows differ in length, such as row {other}") from error


_DESCRIBE = ": pm.Extractor describes pictures by vectors, for a collection that was created with its identity as extractor"


def _unpacked(field: str, array: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """An array of dtype object of numbers, or of rows of numbers, such as a column of a table, as one of numbers."""
    try:
        stacked = np.array(list(array)) if array.ndim == 1 else array
        if stacked.dtype.kind != "O":
            return stacked
    except (TypeError, ValueError):  # ValueError: rows that differ in length
        raise wrong(field, "must be an array of numbers, but holds other objects or rows that differ in length") from None
    for place, one in np.ndenumerate(stacked):
        if isinstance(one, bool) or not isinstance(one, (int, float, np.number)):
            where = f"column {place[1]} holds" if len(place) == 2 else "holds"
            row = f" in row {place[0]}" if place else ""
            remedy = (": give that column alone" if isinstance(one, (list, np.ndarray))
                      else _DESCRIBE if isinstance(one, os.PathLike) else "")
            raise wrong(field, f"must be an array of numbers, but {where} a value of type {type(one).__name__}{row}{remedy}")
    try:
        return stacked.astype(np.float64)
    except OverflowError:
        raise wrong(field, "must fit into 64-bit floats, but does not") from None


def rows(field: str, given: Any, columns: Optional[int] = None, copy: bool = False) -> NDArray[np.float32]:
    """A C-contiguous float32 array of finite numbers, n x columns, n > 0. copy: always a new one."""
    array = as_array(field, given)
    if array.dtype.kind == "O":
        array = _unpacked(field, array)
    if array.dtype.kind not in "fiu":
        raise wrong(field, f"must have a dtype of numbers, but has {array.dtype}{_DESCRIBE * (array.dtype.kind == 'U')}")
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
    if array.dtype.kind == "O":  # a column of vectors, or one vector
        array = _unpacked(field, array)
    one = array.ndim == 1
    return rows(field, array[None] if one else array, copy=True), one


def _is_missing(one: Any) -> bool:
    """None, NaN, and pandas' NA and NaT."""
    return one is None or type(one).__name__ in ("NAType", "NaTType") or (isinstance(one, (float, np.floating))
                                                                         and bool(np.isnan(one)))


def labels(field: str, given: Any, count: int) -> NDArray[np.int32]:
    """A C-contiguous int32 array of `count` labels that are integers, none of them missing."""
    numbers, _ = label_column(field, given, count)
    if numbers is None:
        raise wrong(field, "must be integers, but row 0 is a string")
    if (numbers == -2**31).any():
        raise wrong(field, f"must be integers, but row {numbers.argmin()} has none")
    return numbers


def _refuse_first(field: str, expected: str, is_wrong: "NDArray[np.bool_]", actual: str) -> None:
    """Raises an error about the first row that is wrong, if one is."""
    if is_wrong.any():
        raise wrong(field, f"must {expected}, but row {is_wrong.argmax()} {actual}")


def _names(field: str, array: "np.ndarray[Any, Any]", missing: NDArray[np.bool_]) -> List[str]:
    found = ["" if gone else str(one) for one, gone in zip(array, missing)]
    return texts(field, found)


def label_column(field: str, given: Any, count: int) -> Tuple[Optional[NDArray[np.int32]], List[str]]:
    """`count` labels: as a C-contiguous int32 array, -2**31 where one is missing, or as strings, then "".

    Takes integers, whole floats, strings and arrays of dtype object with one kind of them.
    """
    # numpy would make text of a number in a list that also holds text.
    array = np.array(given, object) if isinstance(given, (list, tuple)) else np.asarray(_to_numpy(given))
    if array.shape != (count,):
        raise wrong(field, f"must have shape ({count},), one for each row, but has {array.shape}")
    missing = np.zeros(count, bool)
    if isinstance(given, np.ma.MaskedArray):
        missing |= np.asarray(given.mask)
    if array.dtype.kind == "O":
        missing |= np.fromiter(map(_is_missing, array), bool, count)
        kinds: Set[Any] = {str if isinstance(one, str) else type(one) for one in array[~missing]}
        if kinds == {str}:
            return None, _names(field, array, missing)
        if str in kinds:
            texts_ = np.fromiter((isinstance(one, str) for one in array), bool, count)
            first = texts_[~missing][0]
            _refuse_first(field, "be all integers or all strings", ~missing & (texts_ != first), "is of the other kind")
        others = np.fromiter((isinstance(one, (bool, np.bool_)) or not isinstance(one, (int, float, np.integer, np.floating))
                              for one in array), bool, count)
        others &= ~missing
        if others.any():
            raise wrong(field, f"must be integers or strings, but row {others.argmax()} is of type {type(array[others.argmax()]).__name__}")
        array = np.where(missing, 0, array)
        _refuse_first(field, "fit into 32 bits", np.fromiter((abs(one) > 2**32 and one == one // 1 for one in array), bool, count),
                      "does not")
        array = array.astype(np.float64)  # exact for every label
    if array.dtype.kind == "S":
        array = np.array([one.decode(errors="surrogateescape") for one in array], object)
        return None, _names(field, array, missing)
    if array.dtype.kind in "UT":
        return None, _names(field, array, missing)
    if array.dtype.kind == "f":
        missing |= np.isnan(array)
        array = np.where(missing, 0, array)
        _refuse_first(field, "be whole numbers", ~(np.isfinite(array) & (array == np.trunc(array))), "is not")
    elif array.dtype.kind not in "iu":
        raise wrong(field, f"must be integers or strings, but has dtype {array.dtype}")
    _refuse_first(field, "fit into 32 bits", (array < -2**31) | (array >= 2**31), "does not")
    return np.ascontiguousarray(np.where(missing, -2**31, array), np.int32), []


def json_value(one: Any) -> Any:
    """What JSON has in place of numpy's values and of times."""
    if isinstance(one, np.ndarray):
        return one.tolist()
    if isinstance(one, np.datetime64) and not np.isnat(one):
        return str(one)
    if isinstance(one, (np.bool_, np.number)):
        return one.item()
    if _is_missing(one):  # NA and NaT of pandas; of floats NaN is refused
        return None
    if hasattr(one, "isoformat"):
        return one.isoformat()
    raise TypeError(f"holds a value of type {type(one).__name__}, which JSON does not have")


def _payload_text(one: Any) -> str:
    if _is_missing(one):
        return ""
    try:
        found = json.dumps(one, allow_nan=False, default=json_value)
        if "\\ud" in found:  # perhaps a half of a pair
            json.dumps(one, ensure_ascii=False, default=json_value).encode()
        if _MANY_DIGITS.search(found):  # perhaps within a text
            json.loads(found, parse_int=lambda digits: operator.truediv(int(digits), 1))
        return found
    except UnicodeEncodeError:
        raise TypeError("holds a lone surrogate, which UTF-8 does not have") from None
    except OverflowError:
        raise TypeError("holds an integer beyond 1.8e308: give it as text") from None
    except ValueError as error:  # NaN, which JSON does not have, too many digits, or a list within itself
        kind = ("itself" if "ircular" in str(error) else "an integer of too many digits: give it as text" if "digits" in str(error)
                else "NaN or an infinity, which JSON does not have: give None")
        raise TypeError(f"holds {kind}") from None
    except TypeError as error:
        raise TypeError("holds a dict with keys that are no text" if "keys must" in str(error) else str(error)) from None
    except RecursionError:
        raise TypeError("is nested too deep") from None


_MANY_DIGITS = re.compile(r"\d{309}")  # of an integer beyond what a float holds


def payload_texts(field: str, given: Any, count: int) -> List[str]:
    """JSON texts of `count` values, or of the rows of a table of pandas, polars or arrow; "" for None."""
    if hasattr(given, "notna") and given.ndim == 2:  # of pandas, whose NaN is a missing value
        if not given.columns.is_unique:
            raise wrong(field, f"must have columns of different names, but two are {given.columns[given.columns.duplicated()][0]!r}")
        given = given.astype(object).where(given.notna(), None)
    for method, arguments in (("to_dicts", ()), ("to_pylist", ()), ("to_dict", ("records",))):
        if getattr(given, "ndim", 2) == 2 and hasattr(given, method):
            given = getattr(given, method)(*arguments)
    if isinstance(given, (str, bytes, dict)) or not isinstance(given, collections.abc.Iterable):
        raise wrong(field, f"must be a list of values, one for each row, but is of type {type(given).__name__}")
    rows, found = list(given), []
    if len(rows) != count:
        raise wrong(field, f"must have {count} entries, one for each row, but has {len(rows)}")
    for row, one in enumerate(rows):
        try:
            found.append(_payload_text(one))
        except TypeError as error:
            raise wrong(field, f"must be JSON values, but row {row} {error}; nothing was sent") from None
    return found


def integer(field: str, given: Any, bits: int = 64) -> int:
    """An integer of so many bits, no bool."""
    try:
        if isinstance(given, (bool, np.bool_)):
            raise TypeError
        number = operator.index(given)
    except TypeError:
        raise wrong(field, f"must be an integer, but is of type {type(given).__name__}") from None
    if not -2**(bits - 1) <= number < 2**(bits - 1):
        raise wrong(field, f"must fit into {bits} bits, but does not")
    return number


def integers(field: str, given: Any) -> List[int]:
    """A list of integers from 0 to 2**31 - 1."""
    if isinstance(given, str) or not isinstance(given, collections.abc.Iterable):
        raise wrong(field, f"must be a list of integers, but is of type {type(given).__name__}")
    found = [integer(field, one) for one in given]
    for row, one in enumerate(found):
        if not 0 <= one < 2**31:
            raise wrong(field, f"must be at least 0 and fit into 32 bits, but entry {row} is {one}")
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


def path(field: str, given: Any, row: Optional[int] = None) -> str:
    """A path, as a string; "": none. row: of a list of paths."""
    place = "" if row is None else f"row {row} "
    try:
        found = os.fsdecode(given)
    except TypeError:
        raise wrong(field, f"must be a path, but {place}is of type {type(given).__name__}") from None
    if "\0" in found or not _is_utf8(found):
        raise wrong(field, f"must be a path in UTF-8, but {place}has other characters")
    return found


# The arguments that calls take as **settings, with their checks.
SETTINGS: Dict[str, Callable[[str, Any], Any]] = {
    "label_graph": text, "alpha": number, "embedding_dim": lambda field, given: integer(field, given, 32), "kernel_bandwidth": number,
    "steps": lambda field, given: integer(field, given, 32)}


def settings(given: Dict[str, Any]) -> Dict[str, Any]:
    return {name: SETTINGS[name](name, one) for name, one in given.items()}


def _is_utf8(given: str) -> bool:
    try:
        given.encode()
    except UnicodeEncodeError:
        return False
    return True


def ids(field: str, given: Any, count: Optional[int] = None) -> List[str]:
    """A list of ids, `count` if it is given: strings, or all integers or UUIDs, which become text."""
    if count is not None and isinstance(given, (set, frozenset)):
        raise wrong(field, "must be in the order of rows, but a set has no order")
    given = _to_numpy(given)
    found = np.asarray(given) if hasattr(given, "__array__") else given
    if isinstance(found, collections.abc.Iterable) and not isinstance(found, str):
        found = list(found)
        if all(isinstance(one, (int, np.integer, uuid.UUID)) and not isinstance(one, bool) for one in found):
            found = [str(one) for one in found]
    return texts(field, found, count)


def texts(field: str, given: Any, count: Optional[int] = None) -> List[str]:
    """A list of strings, `count` if it is given."""
    if isinstance(given, str):
        raise wrong(field, f"must be a list of strings, but is one string")
    try:
        found = list(given)
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

"""Exceptions, one for each status of a call. No message holds a value of a target."""

import contextlib
import re
from typing import Any, Iterator, List, Optional

# The package exports these.
__all__ = [
    "Aborted", "AlreadyExists", "BudgetExhausted", "Cancelled", "DataLoss", "DeadlineExceeded", "FailedPrecondition",
    "Internal", "InvalidArgument", "NotFound", "PermissionDenied", "PrivateMailError", "PrivateMailWarning",
    "ResourceExhausted", "Unauthenticated", "Unavailable", "WrongUse"
]


_ROW = re.compile(r"\b(?:rows?|query|entry) (\d+)\b")
# A name, which may look like a row. An apostrophe within a word opens no quote.
_QUOTED = re.compile(r"""(?<!\w)('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")


class PrivateMailWarning(UserWarning):
    """Something that a searcher should know before relying on an answer."""


class PrivateMailError(Exception):
    """Base class.

    code: the status, such as "INVALID_ARGUMENT". argument: the one that is wrong, and row: the row of it, where the
    message names them; else None. expected, actual: of the argument.
    hits: of a batch of queries, the answers that came; an entry is None where none did.
    """

    code = "UNKNOWN"

    def __init__(self, message: str, code: Optional[str] = None, argument: Optional[str] = None,
                 expected: Optional[str] = None, actual: Optional[str] = None) -> None:
        super().__init__(message)
        self.code = code or self.code
        self.argument, self.expected, self.actual = argument, expected, actual
        named = _ROW.search(_QUOTED.sub("", message))
        self.row = None if named is None else int(named[1])
        self.hits: Optional[List[Any]] = None

    @property
    def field(self) -> Optional[str]:
        """The older name of argument."""
        return self.argument


class InvalidArgument(PrivateMailError, ValueError):
    """An argument is wrong; nothing was charged."""
    code = "INVALID_ARGUMENT"


class WrongUse(InvalidArgument, TypeError):
    """A call that can never work: an argument that it does not have, or a copy of a client."""


def wrong(argument: str, problem: str) -> InvalidArgument:
    """The error about an argument: "k must be at least 1, but is 0"."""
    return InvalidArgument(f"{argument} {problem}", argument=argument)


@contextlib.contextmanager
def about(argument: str) -> Iterator[None]:
    """Errors about a file are of the argument that names it, unless they name another."""
    try:
        yield
    except (InvalidArgument, DataLoss) as error:
        error.argument = error.argument or argument
        raise


class NotFound(PrivateMailError, LookupError):
    """There is no such collection, item or key."""
    code = "NOT_FOUND"


class AlreadyExists(PrivateMailError):
    """The name is taken, or another item has the id."""
    code = "ALREADY_EXISTS"


class FailedPrecondition(PrivateMailError):
    """The state does not allow it: no budget, not built, another extractor. Nothing was charged."""
    code = "FAILED_PRECONDITION"


class ResourceExhausted(PrivateMailError):
    """A limit of the server, or of this client (`max_memory`)."""
    code = "RESOURCE_EXHAUSTED"


class BudgetExhausted(ResourceExhausted):
    """What is left of the privacy budget does not suffice; nothing was charged."""


class PermissionDenied(PrivateMailError):
    """The key is not for this; or others may read a file that must be private."""
    code = "PERMISSION_DENIED"


class Unauthenticated(PrivateMailError):
    """No key, or one that is wrong, revoked or expired."""
    code = "UNAUTHENTICATED"


class Unavailable(PrivateMailError):
    """The server cannot be reached, or is not ready yet."""
    code = "UNAVAILABLE"


class DeadlineExceeded(PrivateMailError, TimeoutError):
    """No answer in time. A charged query stays charged."""
    code = "DEADLINE_EXCEEDED"


class Cancelled(PrivateMailError):
    """The call was cancelled. A charged query stays charged."""
    code = "CANCELLED"


class Aborted(PrivateMailError):
    """Another change came first, such as a new build."""
    code = "ABORTED"


class DataLoss(PrivateMailError):
    """A malformed answer, or a ledger that does not match its witness."""
    code = "DATA_LOSS"


class Internal(PrivateMailError):
    """A fault of the server."""
    code = "INTERNAL"


_BY_CODE = {
    one.code: one
    for one in (InvalidArgument, NotFound, AlreadyExists, FailedPrecondition, ResourceExhausted, PermissionDenied,
                Unauthenticated, Unavailable, DeadlineExceeded, Cancelled, Aborted, DataLoss, Internal)
}


def of_status(code: str, message: str, argument: Optional[str] = None, expected: Optional[str] = None,
              actual: Optional[str] = None) -> PrivateMailError:
    """The exception for a status of the core. argument: the one that is wrong."""
    kind = _BY_CODE.get(code, PrivateMailError)
    if code == "RESOURCE_EXHAUSTED" and argument == "budget":
        kind = BudgetExhausted
    if code == "DEADLINE_EXCEEDED":
        message += "; connect(deadline=...) gives a call longer"
    elif (code, argument) == ("FAILED_PRECONDITION", "embedding"):
        message += "; build() builds it"
    elif (code, argument) == ("UNAVAILABLE", "quality"):
        message += "; build(wait=True) waits for it"
    return kind(message, code, argument, expected, actual)

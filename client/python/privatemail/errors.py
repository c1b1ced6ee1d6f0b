"""Exceptions, one for each status of a call. No message holds a value of a target."""

import re
from typing import Any, List, Optional


class PrivateMailWarning(UserWarning):
    """Something that a searcher should know before relying on an answer."""


class PrivateMailError(Exception):
    """Base class.

    code: the status, such as "INVALID_ARGUMENT". field: the argument that the message names, or None.
    hits: of a batch of queries, the answers that came; an entry is None where none did.
    """

    code = "UNKNOWN"

    def __init__(self, message: str, code: Optional[str] = None) -> None:
        super().__init__(message)
        self.code = code or self.code
        named = re.match(r"(?:--)?([A-Za-z_][\w.]*) (?:must|has|is|cannot)\b", message)
        self.field = named.group(1) if named else None
        self.hits: Optional[List[Any]] = None


class InvalidArgument(PrivateMailError, ValueError):
    """An argument is wrong; nothing was charged."""
    code = "INVALID_ARGUMENT"


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


# The core names flags and commands of the command line. Those whose names differ here:
_ARGUMENTS = {"bandwidth": "kernel_bandwidth", "ca": "ca_file", "cert": "certificate", "cert-key": "certificate_key",
              "dim": "embedding_dim", "force": "replace", "in": "path", "out": "path"}
_CALLS = {"": "connect", "budget history": "budget.history", "budget set": "budget.grant",
          "collection create": "create_collection", "key list": "keys", "query": "search"}
_FLAG = r"--([a-z][a-z-]*)"
_COMMAND = re.compile(r"privatemail( (?:budget (?:history|set)|collection create|key list|build|ingest|plan|query|"
                      rf"resend))?(?: (?:NAME|\.\.\.|(?!--)[^\s`]+(?=`| --)))?((?: {_FLAG}(?: [^\s`-][^\s`]*)?)*)")


def _argument(flag: str) -> str:
    return _ARGUMENTS.get(flag, flag.replace("-", "_"))


def _call(command: "re.Match[str]") -> str:
    name = (command[1] or "").strip()
    if not name and not command[2]:
        return command[0]
    arguments = [f"{_argument(flag)}={value or '...'}"
                 for flag, value in re.findall(rf"{_FLAG}(?: ([^\s`-][^\s`]*))?", command[2])]
    return f"{_CALLS.get(name, name)}({', '.join(arguments)})"


def in_python(message: str) -> str:
    """A message of the core with arguments and calls in place of flags and commands, but for the daemon's flags."""
    return re.sub(rf"(?<!run with )(?<!keys \()(?<![\w./-]){_FLAG}", lambda flag: _argument(flag[1]),
                  _COMMAND.sub(_call, message))


def of_status(code: str, message: str) -> PrivateMailError:
    """The exception for a status of the core."""
    message = in_python(message)
    if code == "RESOURCE_EXHAUSTED" and "budget" in message:
        return BudgetExhausted(message)
    return _BY_CODE.get(code, PrivateMailError)(message, code)

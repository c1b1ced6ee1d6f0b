"""Arguments that a call does not have, lacks or has twice, as errors of this package."""

import difflib
import functools
import inspect
import re
from typing import Any, Callable, TypeVar, cast

from privatemail import _arrays
from privatemail.errors import WrongUse

_Checked = TypeVar("_Checked", bound=Callable[..., Any])


def _check(call: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(call)
    kinds = {one.kind: name for name, one in signature.parameters.items()}
    others = kinds.get(inspect.Parameter.VAR_KEYWORD)
    known = [*signature.parameters, *(_arrays.SETTINGS if others == "settings" else ())]

    @functools.wraps(call)
    def checked(*arguments: Any, **options: Any) -> Any:
        for name in options if others in (None, "settings") else ():
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                raise WrongUse(f"{call.__name__}() has no argument {name!r}" + "".join(f": did you mean {one!r}?" for one in near),
                               argument=name)
        try:
            signature.bind(*arguments, **options)
        except TypeError as error:
            named = re.search(r"'(\w+)'", str(error))
            raise WrongUse(f"{call.__name__}(): {error}", argument=named[1] if named else None) from None
        return call(*arguments, **options)

    return checked


def checked_call(of: _Checked) -> _Checked:
    """Of a class, every public call. Adds a frame to the stack."""
    if not inspect.isclass(of):
        return cast(_Checked, _check(of))
    for name, one in vars(of).copy().items():
        if name.startswith("_") and name not in ("__init__", "__call__"):
            continue
        if inspect.isfunction(one):
            setattr(of, name, _check(one))
        elif isinstance(one, classmethod):
            setattr(of, name, classmethod(_check(one.__func__)))
    return cast(_Checked, of)

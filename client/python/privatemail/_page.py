"""The local web page of `privatemail page`."""

import json
import os
import re
import shutil
import subprocess
import weakref
from typing import Any, Optional

from privatemail import _arrays
from privatemail._calls import checked_call
from privatemail._client import Collection, Path
from privatemail._server import _end, not_started
from privatemail.errors import FailedPrecondition, Unavailable, wrong


class Page:
    """A running page, which a notebook shows as a link. See `page`.

    address: opens the page once; the browser that opened it keeps it. Private: until then, whoever reads the notebook's
    file on this machine may open it instead of you, and you then read "this address was used".
    """

    def __init__(self, process: "subprocess.Popen[str]", address: str) -> None:
        self.address = address
        self._end = weakref.finalize(self, _end, os.getpid(), process, None)  # also when Python ends

    def _repr_html_(self) -> str:
        return f'<a href="{self.address}" target="_blank" rel="noopener noreferrer">Open the page (works once)</a>'

    def close(self) -> None:
        """Ends the page."""
        self._end()

    def __enter__(self) -> "Page":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


@checked_call
def page(collection: Collection, *, pictures: Path = "", model: Path = "", program: Optional[Path] = None) -> Page:
    """Serves the web page of `privatemail page` on this machine, with the collection's connection and budget.

    pictures: folder class/file of the gallery's pictures. model: ONNX file of a collection of pictures. program: by
    default $PRIVATEMAIL, or privatemail on the PATH.
    """
    program = program or os.environ.get("PRIVATEMAIL") or shutil.which("privatemail")
    if not program:
        raise FailedPrecondition("program must be given, or the environment's PRIVATEMAIL: privatemail is not on the "
                                 "PATH", argument="program")
    command = [program, *collection._client._flags, "--json", "page", "--no-browser", "--collection", collection.name]
    pictures, model = _arrays.path("pictures", pictures), _arrays.path("model", model)
    if pictures and not os.path.isdir(pictures):
        raise wrong("pictures", f"must be a folder, but {pictures} is none")
    for flag, value in (("--pictures", pictures), ("--model", model)):
        command += [flag, value] if value else []
    # A connection is what its arguments say.
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("PRIVATEMAIL_TRUST", "PRIVATEMAIL_CA", "PRIVATEMAIL_KEY_FILE")}
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True)
    except OSError as error:
        raise not_started(program, "PRIVATEMAIL", error) from error
    assert process.stdout is not None
    told = json.loads(process.stdout.readline() or "{}")
    if "file" not in told:
        _end(os.getpid(), process, None)
        problem = told.get("error", {})
        if problem.get("field") == "model" and not problem["actual"]:  # `expected` is the whole sentence
            raise wrong("model", problem["expected"])
        raise Unavailable(f"the page did not start: {problem.get('message', 'it printed nothing')}")
    # Only the file of mode 0600 holds the address.
    with open(told["file"], encoding="ascii") as file:
        found = re.search(r'url=([^"]+)"', file.read())
    assert found is not None
    return Page(process, found[1])

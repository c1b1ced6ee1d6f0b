"""Progress bars, where a terminal or a notebook is."""

import contextlib
import sys
from typing import Callable, Iterator, Optional


def _notebook() -> bool:
    shell = sys.modules.get("IPython")
    return shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"


@contextlib.contextmanager
def progress_bar(what: str, total: float) -> Iterator[Optional[Callable[[float], None]]]:
    """Yields a function of what is done so far, or None."""
    if not (sys.stderr.isatty() or _notebook()):
        yield None
        return
    try:
        from tqdm.auto import tqdm  # pylint: disable=import-outside-toplevel
    except ImportError:
        yield None
        return
    with tqdm(desc=what, total=total, delay=2) as bar:
        def show(done: float) -> None:
            bar.update(done - bar.n)

        yield show

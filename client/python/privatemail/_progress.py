"""Progress bars, where a terminal or a notebook is."""

import contextlib
import sys
import warnings
from typing import Callable, Iterator, Optional


def _notebook() -> bool:
    shell = sys.modules.get("IPython")
    return shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"


@contextlib.contextmanager
def progress_bar(what: str, total: Optional[float] = None) -> Iterator[Optional[Callable[..., None]]]:
    """Yields a function of what is done so far, of the total if it was not known (0 or None: it is not), and of another
    title; or None.
    """
    if not (sys.stderr.isatty() or _notebook()):
        yield None
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # without ipywidgets the bar is text
            from tqdm.auto import tqdm  # pylint: disable=import-outside-toplevel
    except ImportError:
        yield None
        return
    with tqdm(desc=what, total=total, delay=2) as bar:
        def show(done: float = 0, of: Optional[float] = total, what: str = "") -> None:
            if what:
                bar.bar_format = None if of else "{desc}, {elapsed}"
                bar.set_description_str(what, refresh=False)
            bar.total = of
            with contextlib.suppress(OSError):  # a terminal that is gone must not cost the answers
                bar.update(done - bar.n)

        yield show

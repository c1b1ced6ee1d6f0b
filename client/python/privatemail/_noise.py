"""Keeps seeded noise and network channels out of one process: a release with seeded noise hides nothing."""

from typing import Optional

_imported: Optional[str] = None


def claim(kind: str) -> None:
    """Called before the compiled module of this kind, "secure" or "seeded", is loaded. Both would end the process."""
    global _imported  # pylint: disable=global-statement
    if _imported not in (None, kind):
        raise ImportError("privatemail.evaluation computes with seeded noise, which hides nothing, and cannot be in "
                          "one process with a client: start it as one of its own, python3 -m privatemail.evaluation")
    _imported = kind

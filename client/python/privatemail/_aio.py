"""Calls as coroutines."""

import asyncio
import functools
from typing import Any, Awaitable, Callable


class Aio:
    """The calls of a client or collection as coroutines, on threads of their own: `await fruit.aio.search(...)`.

    Cancelling one neither stops it nor refunds its charge.
    """

    def __init__(self, of: Any) -> None:
        self._of = of

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        call = getattr(self._of, name)
        if name.startswith("_") or not callable(call):
            raise AttributeError(f"{name} is no call")

        @functools.wraps(call)
        async def run(*arguments: Any, **options: Any) -> Any:
            return await asyncio.to_thread(call, *arguments, **options)

        return run

"""Calls as coroutines."""

import asyncio
import functools


class Aio:
    """The calls of a client or collection as coroutines, on threads of their own: `await birds.aio.search(...)`.

    Cancelling one neither stops it nor refunds its charge.
    """

    def __init__(self, of):
        self._of = of

    def __getattr__(self, name):
        call = getattr(self._of, name)
        if name.startswith("_") or not callable(call):
            raise AttributeError(f"{name} is no call")

        @functools.wraps(call)
        async def run(*arguments, **options):
            return await asyncio.to_thread(call, *arguments, **options)

        return run

"""Blocking work in threads, never left half done."""

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, TypeVar

import anyio

T = TypeVar("T")
P = ParamSpec("P")


class Threads:
    """A few threads for the database.

    However a call is cancelled, by a scope or by the event loop itself, the cancellation goes on
    only when the thread has finished: nobody else uses its connection meanwhile.
    """

    def __init__(self, most: int) -> None:
        self._pool = ThreadPoolExecutor(most, thread_name_prefix="toolgate-database")

    async def run(self, work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
        """Run a function in a thread and wait for its end."""
        loop = asyncio.get_running_loop()
        ended = loop.run_in_executor(self._pool, partial(work, *given, **named))
        try:
            return await asyncio.shield(ended)
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True):
                await _end_of(ended)
            raise

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=True)


async def _end_of(work: "asyncio.Future[Any]") -> None:
    """Wait for the end, however often the wait is cancelled; what it came to is nobody's."""
    while not work.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([work])
    if not work.cancelled():
        work.exception()

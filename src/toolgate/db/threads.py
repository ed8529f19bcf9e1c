"""Blocking work in threads, never left half done."""

import asyncio
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
        cancelled = None
        with anyio.CancelScope(shield=True):
            cancelled = await _end_of(ended)
        if cancelled is not None:
            raise cancelled
        return ended.result()

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=True)


async def _end_of(work: "asyncio.Future[Any]") -> asyncio.CancelledError | None:
    """Wait for the end; return the cancellation that came meanwhile."""
    cancelled = None
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError as told:
            cancelled = told
    return cancelled

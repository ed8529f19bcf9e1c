"""Work that runs beside the calls for as long as something is open."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import anyio

logger = logging.getLogger(__name__)


@asynccontextmanager
async def beside(*work: Callable[[], Coroutine[Any, Any, None]]) -> AsyncGenerator[None, None]:
    """Start each function as a task; on leaving, cancel them and wait for their end.

    Unlike a task group it leaves exceptions of the block as they are.
    """
    # A scope, and not the task itself, is cancelled: only scopes wait for a thread that is in the
    # middle of a write, or respect a shield.
    scopes = [anyio.CancelScope() for _ in work]
    tasks = [asyncio.create_task(_within(*pair)) for pair in zip(scopes, work, strict=True)]
    try:
        yield
    finally:
        for scope in scopes:
            scope.cancel()
        for ended in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(ended, Exception):
                logger.error("background work failed", exc_info=ended)


async def _within(scope: anyio.CancelScope, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with scope:
        await work()

"""Work that runs beside the calls for as long as something is open."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import anyio

STOP_SECONDS = 1.5
"""How long the work may take to end when it is asked to, and then when it is cancelled."""

logger = logging.getLogger(__name__)


@asynccontextmanager
async def run_in_background(
    *work: Callable[[], Coroutine[Any, Any, None]],
) -> AsyncGenerator[None, None]:
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
        await _end(tasks)


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    """Wait until every task has ended by itself; a little later it is cancelled itself."""
    _, late = await asyncio.wait(tasks, timeout=STOP_SECONDS)
    for task in late:
        task.cancel()
    if late:
        await asyncio.wait(late, timeout=STOP_SECONDS)
    for task in tasks:
        if task.done() and not task.cancelled() and (failed := task.exception()):
            logger.error("background work failed", exc_info=failed)


async def _within(scope: anyio.CancelScope, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with scope:
        await work()

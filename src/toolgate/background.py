"""Work that runs beside the calls for as long as something is open."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

logger = logging.getLogger(__name__)


@asynccontextmanager
async def beside(*work: Callable[[], Coroutine[Any, Any, None]]) -> AsyncGenerator[None, None]:
    """Start each function as a task; on leaving, cancel them and wait for their end.

    Unlike a task group it leaves exceptions of the block as they are.
    """
    tasks = [asyncio.create_task(one()) for one in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for ended in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(ended, Exception):
                logger.error("background work failed", exc_info=ended)

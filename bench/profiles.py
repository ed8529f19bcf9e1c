"""Where the CPU time of a call goes, function by function: `python -m bench profile`.

In this process, without a network, sixteen callers at a time. The profiler makes functions dearer
than statements, so the shares count, not the microseconds; the first line is without it.
"""

import asyncio
import cProfile
import pstats
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.documents import FIELDS, FOUND
from bench.postgres import postgres
from toolgate.testing import Kit, opened_kit

CALLERS, CALLS, TOLD = 16, 2_000, 14
Call = Callable[[Kit], Awaitable[Any]]


async def query(kit: Kit) -> Any:
    return await kit.send(FOUND["name"], FOUND["arguments"])


async def create(kit: Kit) -> Any:
    return await kit.send("create_document", {"collection": "apps", "data": FIELDS})


WHAT: dict[str, Call] = {"query_collection": query, "create_document": create}


def main(without: list[str]) -> None:
    """Print a table for each call and database."""
    with ExitStack() as stack:
        urls: dict[str, str | None] = {"SQLite": None}
        if "postgresql" not in without:
            urls["PostgreSQL"] = stack.enter_context(postgres()).new_database("profile")
        for database, url in urls.items():
            for name, call in WHAT.items():
                asyncio.run(_profile(f"{name}, {database}", call, url))


async def _profile(title: str, call: Call, url: str | None) -> None:
    settings: dict[str, Any] = {"writes": True, "demo_data": True}
    if url:
        settings["database__url"] = url
    with tempfile.TemporaryDirectory() as folder:
        async with opened_kit(Path(folder), **settings) as kit:
            await _calls(kit, call)
            plain = min([await _calls(kit, call) for _ in range(3)])
            profiler = cProfile.Profile(time.thread_time)
            profiler.enable()
            await _calls(kit, call)
            profiler.disable()
    print(f"\n{title}: {plain:.0f} µs of CPU a call, all threads, without the profiler")
    _print(profiler)


async def _calls(kit: Kit, call: Call) -> float:
    """Microseconds of CPU a call."""

    async def caller() -> None:
        for _ in range(CALLS // CALLERS):
            found = await call(kit)
            assert found.error is None, found.error

    started = time.process_time()
    await asyncio.gather(*[caller() for _ in range(CALLERS)])
    return (time.process_time() - started) / CALLS * 1e6


def _print(profiler: cProfile.Profile) -> None:
    told: Any = pstats.Stats(profiler)
    functions: dict[tuple[str, int, str], Any] = told.stats
    own: list[tuple[float, tuple[str, int, str], int]] = sorted(
        ((at[2], key, at[0]) for key, at in functions.items()), reverse=True
    )
    total = sum(one for one, _, _ in own)
    print(f"{'own time':>9} {'share':>6} {'a call':>7}  function (event loop's thread)")
    for seconds, (file, line, name), times in own[:TOLD]:
        where = f"{'/'.join(Path(file).parts[-2:])}:{line} " if line else ""
        figures = f"{seconds / CALLS * 1e6:7.1f} µs {seconds / total:6.1%} {times / CALLS:7.2f}"
        print(f"{figures}  {where}{name}")

"""Reading the database for a backup in a process of its own, which ends with this one."""

import asyncio
import contextlib
import logging
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import orjson

from toolgate.backups.archive import BadBackup
from toolgate.backups.reading_process import (
    DATA,
    END,
    FAILURE,
    HEADER,
    PROGRESS,
    Failure,
    Order,
)

PROCESS = "toolgate.backups.reading_process"
Take = Callable[[bytes], Awaitable[None]]
"""Takes the next bytes of the file; the process waits meanwhile."""
Tell = Callable[[int, int], Awaitable[None]]
"""Told how many rows of about how many are read."""
logger = logging.getLogger(__name__)


class ReadingFailed(Exception):
    """The database could not be read to its end; another attempt may do it. A sentence."""


async def read_apart(order: Order, take: Take, tell: Tell) -> dict[str, Any]:
    """Hand over the file of a backup; what its first and its last line say.

    However this ends, the process does. Raises `ReadingFailed`, or `BadBackup` where trying again
    would not help.
    """
    async with _started(order) as process:
        assert process.stdout is not None
        try:
            told = await _received(process.stdout, take, tell)
        except asyncio.IncompleteReadError:
            code = await process.wait()
            raise ReadingFailed(
                f"The process that reads the database for a backup ended too early ({_how(code)})."
            ) from None
        await process.wait()
        return told


async def _received(frames: asyncio.StreamReader, take: Take, tell: Tell) -> dict[str, Any]:
    while True:
        kind, size = HEADER.unpack(await frames.readexactly(HEADER.size))
        data = await frames.readexactly(size)
        if kind == DATA:
            await take(data)
        elif kind == PROGRESS:
            await tell(*orjson.loads(data))
        elif kind == END:
            return orjson.loads(data)
        else:
            assert kind == FAILURE
            raise _problem(Failure(**orjson.loads(data)))


def _problem(failure: Failure) -> Exception:
    if failure.detail:
        logger.warning("a backup could not be read: %s", failure.detail)
    return (BadBackup if failure.lasting else ReadingFailed)(failure.sentence)


def _how(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


@asynccontextmanager
async def _started(order: Order) -> AsyncGenerator[asyncio.subprocess.Process]:
    """The process, told what to read; killed on leaving, if it still runs."""
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            PROCESS,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # what a terminal sends to the server is not for it
        )
    except OSError as problem:
        why = problem.strerror or type(problem).__name__
        raise ReadingFailed(f"No process can be started for a backup ({why}).") from problem
    try:
        assert process.stdin is not None
        # Not in its arguments, which everybody on the machine can read. It stays open: see there.
        process.stdin.write(orjson.dumps(order._asdict()) + b"\n")
        yield process
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            with anyio.CancelScope(shield=True):
                await process.wait()

"""The process that reads the database for a backup: `python -m toolgate.backups.reading_process`.

A server that did this itself, in a thread, would hardly answer meanwhile. Standard input has one
line, as JSON: which database, whose address may hold a password, and which documents are left out.
Standard output has frames: a letter, a length and so many bytes.

    D    the next bytes of the file
    P    [rows done, rows in all]
    E    what the first and the last line of the file say; nothing follows
    F    why there is no file; nothing follows

It ends with its input: who started it is gone then, or wants no more.
"""

import asyncio
import importlib
import logging
import os
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from toolgate.backups.archive import BadBackup
from toolgate.backups.dump import Request, write_backup
from toolgate.db.engine import Database
from toolgate.db.outages import describe, is_outage

HEADER = struct.Struct("!cI")
DATA, PROGRESS, END, FAILURE = b"D", b"P", b"E", b"F"
PIECE_BYTES = 1024**2
"""At most so many at once, so that who reads them needs no more memory than that."""
TOLD_SECONDS = 1.0
"""Between two words on how far it has come."""
GONE = "The file of the database is not there. Check the setting database.url."
SILENT = "The database did not answer while its backup was made. Try again later."


class Order(NamedTuple):
    """What is to be read."""

    database_url: str
    expression: str | None = None
    """Leaves out the documents whose path it matches; RE2 takes it."""


class Failure(NamedTuple):
    """Why there is no file."""

    sentence: str
    detail: str = ""
    """For the log alone."""
    lasting: bool = False
    """Whether another attempt would end in the same way."""


def main() -> None:
    """Write the frames of one backup."""
    # Stopping the server is the server's business; this ends with it.
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, signal.SIG_IGN)
    logging.disable(logging.CRITICAL)  # what goes wrong is told in the last frame
    with open(0, "rb", buffering=0, closefd=False) as given:
        order = Order(**orjson.loads(given.readline()))
    threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        _send_json(END, asyncio.run(_written(order)))
    except BrokenPipeError:
        return
    except Exception as error:
        failure = _failure(error)
        if failure is None:
            raise  # who started it has the same standard error
        _send_json(FAILURE, failure._asdict())


def _end_with_input() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)


async def _written(order: Order) -> dict[str, Any]:
    # Statements are not prepared: each is asked once.
    database = Database(order.database_url, prepared=False)
    if database.dialect == "sqlite":
        _check_file(database.url.database)
    request = Request(
        _matcher(order.expression) if order.expression else None, order.expression, _now_and_then()
    )
    try:
        return await write_backup(database, _send_data, request)
    finally:
        await database.close()


def _check_file(file: str | None) -> None:
    """Raise where there is none: SQLite would make an empty one."""
    if not file or not Path(file).is_file():
        raise FileNotFoundError(file)


def _matcher(expression: str) -> Callable[[str], bool]:
    # Imported here: most backups leave out nothing. It has no types.
    re2: Any = importlib.import_module("re2")
    pattern = re2.compile(expression)
    return lambda path: pattern.search(path) is not None


def _now_and_then() -> Callable[[int, int], None]:
    told = time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal told
        if time.monotonic() - told >= TOLD_SECONDS:
            told = time.monotonic()
            _send_json(PROGRESS, [done, total])

    return tell


def _failure(error: Exception) -> Failure | None:
    """How an error is told; None for one that nobody expected."""
    match error:
        case BadBackup():
            return Failure(str(error), lasting=True)
        case FileNotFoundError():
            return Failure(GONE, lasting=True)
        case _ if is_outage(error):
            return Failure(SILENT, describe(error))
        case _:
            return None


def _send_data(data: bytes) -> None:
    for start in range(0, len(data), PIECE_BYTES):
        _send(DATA, data[start : start + PIECE_BYTES])


def _send_json(kind: bytes, value: Any) -> None:
    _send(kind, orjson.dumps(value))


def _send(kind: bytes, data: bytes) -> None:
    output = sys.stdout.buffer
    output.write(HEADER.pack(kind, len(data)))
    output.write(data)
    output.flush()


if __name__ == "__main__":
    main()

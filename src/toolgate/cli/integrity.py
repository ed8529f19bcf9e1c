"""Whether the file of an embedded database is whole."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from toolgate.cli.checks import CheckResult, State

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from toolgate.db.engine import Database

NAME = "database file"
LARGE = 64 * 1024**2
"""Bytes from which on the check takes so long that a person wants to know what is going on."""
STEP = (
    "Stop every toolgate that uses it and restore it from a backup; "
    "`sqlite3 FILE .recover` may recover newer data."
)


async def check_integrity(database: "Database", file: Path) -> CheckResult:
    """Every page can be read and belongs where it is (SQLite's `quick_check`)."""
    from sqlalchemy.exc import DatabaseError

    from toolgate.db.health import is_corrupt

    try:
        with _progress(file):
            answer = await database.read(_look)
    except DatabaseError as error:
        if not is_corrupt(error):
            raise
        answer = str(error.orig)
    if answer == "ok":
        return CheckResult(NAME, State.OK, f"{file} is intact.")
    why = " ".join(answer.split())
    return CheckResult(
        NAME, State.FAIL, f"{file} is corrupt: {why}. {STEP.replace('FILE', str(file))}"
    )


def _look(connection: "Connection") -> str:
    return str(connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one())


@contextmanager
def _progress(file: Path) -> Generator[None]:
    """On a terminal, a sign of life while a large file is read."""
    if not sys.stderr.isatty() or file.stat().st_size < LARGE:
        yield
        return
    # Imported here: only a person who waits needs it.
    from rich.console import Console

    size = f"{file.stat().st_size / 1024**2:.0f} MiB"
    with Console(stderr=True).status(f"Checking {file} ({size}) …"):
        yield

"""How far a call has come, on the terminal of who made it."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from toolgate.cli.output import printable

if TYPE_CHECKING:
    from toolgate.gate.context import Report


@contextmanager
def progress_line(tool: str) -> "Generator[Report | None]":
    """What shows a call's progress on standard error, once there is some; None without a terminal.

    The line is gone when the call has ended.
    """
    if not sys.stderr.isatty():
        yield None
        return
    # Imported here: only a person who waits needs it.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    text = TextColumn("{task.description}", markup=False)
    bar = Progress(
        text, BarColumn(), TaskProgressColumn(), console=Console(stderr=True), transient=True
    )
    task = bar.add_task(printable(tool), total=None)

    async def report(done: float, total: float | None, message: str | None) -> None:
        bar.start()
        bar.update(task, completed=done, total=total)
        if message is not None:
            bar.update(task, description=printable(message))

    try:
        yield report
    finally:
        bar.stop()


Bar = Callable[[int, int], None]
"""Told how much is done of how much, from any thread."""


@contextmanager
def progress_bar(what: str) -> Generator[Bar]:
    """Shows how far a command has come, on standard error; nothing without a terminal."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    # Imported here: only a person who waits needs it.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    shown = Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
    task = shown.add_task(what, total=None)

    def move(done: int, total: int) -> None:
        shown.update(task, completed=done, total=total)

    with shown:
        yield move

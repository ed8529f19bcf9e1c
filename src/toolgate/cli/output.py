"""Words and tables on a terminal, plain text in a pipe, JSON for machines."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import typer

GAP = "  "
LEAST_WRAPPED = 24
LONGEST_ID = 40


def on_terminal() -> bool:
    """Whether a person looks at standard output."""
    return sys.stdout is not None and sys.stdout.isatty()  # pyright: ignore[reportUnnecessaryComparison] (it may be closed)


def say(text: str = "") -> None:
    """A line of the answer."""
    typer.echo(text)


def note(text: str) -> None:
    """A line beside the answer, on standard error."""
    typer.echo(text, err=True)


def say_json(value: Any) -> None:
    """The answer as JSON: indented for a person, one line for a machine."""
    typer.echo(json_for_terminal(value) if on_terminal() else json.dumps(value, ensure_ascii=False))


def json_for_terminal(value: Any) -> str:
    """The same JSON, with escapes for what a terminal would obey, hide or turn round."""
    return escaped_json(json.dumps(value, ensure_ascii=False, indent=2))


def escaped_json(text: str) -> str:
    """JSON with escapes for what is not printable; strings are the only place where that may be."""
    return "".join(
        one if one.isprintable() or one == "\n" else json.dumps(one)[1:-1] for one in text
    )


def strong(text: str) -> str:
    """Text that stands out; the colour is left out in a pipe."""
    return typer.style(text, bold=True)


def success(text: str) -> str:
    """Text in the colour of success."""
    return typer.style(text, fg="green")


def failure(text: str) -> str:
    """Text in the colour of failure."""
    return typer.style(text, fg="red")


def warning(text: str) -> str:
    """Text in the colour of a warning."""
    return typer.style(text, fg="yellow")


def printable(text: Any) -> str:
    """One line without control characters: what callers sent may hold escape sequences."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in str(text))


def definitions(pairs: Mapping[str, str]) -> None:
    """Names with their values, aligned."""
    width = max(len(name) for name in pairs)
    for name, value in pairs.items():
        say(f"{GAP}{name.ljust(width)}{GAP}{value}")


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Rows under their headings; on a narrow terminal the last column wraps."""
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    if on_terminal():
        _rich_table(columns, cells, widths)
    else:
        _plain_table(columns, cells, widths)


def _rich_table(columns: Sequence[str], cells: list[list[str]], widths: list[int]) -> None:
    # Imported here: most commands print no table.
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, padding=(0, len(GAP), 0, 0), header_style="bold")
    for heading in columns[:-1]:
        grid.add_column(heading, no_wrap=True)
    grid.add_column(columns[-1], overflow="fold")
    for row in cells:
        grid.add_row(*(Text(cell) for cell in row))
    # Ids must stay in one piece to be copied, so a very narrow terminal wraps whole lines.
    least = sum(widths[:-1]) + len(GAP) * len(columns) + min(widths[-1], LEAST_WRAPPED)
    console = Console()
    console.width = max(console.width, least)
    console.print(grid)


def _plain_table(columns: Sequence[str], cells: list[list[str]], widths: list[int]) -> None:
    for line in ([heading.upper() for heading in columns], *cells):
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        say(GAP.join(padded).rstrip())


def client_label(name: str | None, id_: str) -> str:
    """A client by the name it chose and its id, so that it passes for no key or other client."""
    short = id_ if len(id_) <= LONGEST_ID else f"{id_[:LONGEST_ID]}…"
    return f"\u201c{name}\u201d {short}" if name else id_

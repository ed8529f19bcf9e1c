"""The result of a run: on the terminal, and as docs/performance.md."""

import re

from bench import table
from bench.calls import BARE
from bench.servers import ROOT
from bench.table import Book

PAGE = ROOT / "docs" / "performance.md"
PRIVATE = re.compile(r"\w+://\S+|(?<![\w.])/\S+")
INTRO = """# Performance

Written by `make bench`; do not edit. Compare ratios, not microseconds: only ratios carry over from one
machine to another.
"""
HOW = """## How it is measured

Servers and the load generator are separate processes on loopback, one on each of two cores, with
16 persistent connections; `toolgate serve` has {tools} tools of its own beside the built-in ones,
and keys, rules, limits and audit are on. CPU per call is the CPU time of all processes and threads of a
server, including the audit batches and seals that follow, divided by the calls. A PostgreSQL server's CPU has
a column of its own and is in no ratio; it runs on the servers' core, so calls per second show it. Every answer
is compared byte for byte, and each figure is the best of {rounds} interleaved rounds after a warm-up.

- The bare ASGI handler reads the request and sends the bytes that toolgate sent, under the same uvicorn.
- The SDK, FastMCP and Toolbox run without keys, rules, limits and audit.
- `get_document`: Toolbox reads the same row of the same database. `create_document`: Toolbox inserts the same row
  into a table of its own with the same columns and constraints; toolgate also stores the document's index entries,
  the change and the audit row in the same commit. Every call has a new, random id.
- `query_collection` finds three of nine documents by one field. `make bench-store` shows what calls cost among a
  thousand and among a million documents.
- `{spread}`: every call uses the next key in turn, so that each key has left the cache when it is
  used again, and the key is looked up with its user.
- The runs with one and two workers have both cores, shared with the generator.
- At half load, calls are scheduled at fixed times and timed from the schedule, even if they are sent later.
  The bare handler gets the same rate: its slowest calls show the machine's share.
"""


def printed(book: Book, facts: dict[str, str]) -> str:
    """For a terminal."""
    head = "\n".join(f"{name:12} {value}" for name, value in facts.items())
    figures = table.plain(table.FIGURES, [table.figure_cells(*one) for one in book.figures])
    must = table.plain(table.MUST, [one.cells for one in book.checks])
    parts = [head, figures, must, _verdict(book)]
    if book.skipped:
        parts.append("\n".join(f"Skipped: {one}" for one in book.skipped))
    return "\n\n".join(parts)


def page(book: Book, facts: dict[str, str], *, tools: int, rounds: int, spread: str) -> str:
    """For the documentation."""
    figures = table.markdown(table.FIGURES, [table.figure_cells(*one) for one in book.figures])
    rows = [
        [f"**{cell}**" if cell in table.BAD else cell for cell in one.cells] for one in book.checks
    ]
    parts = [
        INTRO,
        table.markdown(["", ""], [[name, value] for name, value in facts.items()]),
        f"\n## What must hold\n\n{table.markdown(table.MUST, rows)}\n\n{_verdict(book)}",
        f"\n## Figures\n\n{figures}",
    ]
    if book.skipped:
        parts.append("\n" + "\n".join(f"- Skipped: {_public(one)}" for one in book.skipped))
    parts.append("\n" + HOW.format(tools=tools, rounds=rounds, spread=spread))
    return "\n".join(parts)


def _public(why: str) -> str:
    """A reason without addresses and folders of this machine."""
    return PRIVATE.sub("…", why.replace("\n", " "))


def disturbance(book: Book) -> dict[str, str]:
    """How much others used the servers' core meanwhile: where it is much, times say little."""
    alone = [one.waited for _, name, one in book.figures if name == BARE]
    return (
        {"Disturbed": f"the bare handler had no core for {max(alone):.0%} of its time"}
        if alone
        else {}
    )


def _verdict(book: Book) -> str:
    missed = [one for one in book.checks if not one.holds]
    return f"{len(book.checks) - len(missed)} of {len(book.checks)} hold in this run."

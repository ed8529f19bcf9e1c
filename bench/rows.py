"""`make bench`: every part in one run, and the table."""

from collections.abc import Callable

from bench import calls, documents, pipes, report, scale, table
from bench.facts import facts
from bench.racing import tell
from bench.stage import TOOLS, Stage

PARTS: dict[str, Callable[[Stage], None]] = {
    "echo": calls.echo,
    "list": calls.listing,
    "document": documents.document,
    "create": documents.creation,
    "query": documents.search,
    "stdio": pipes.stdio,
    "tools": scale.tools,
    "audit": scale.audit,
    "principals": scale.principals,
    "workers": scale.workers,
    "half-load": scale.half_load,
}


def main(only: list[str], without: list[str], rounds: int) -> None:
    """Run the parts, print the tables; a whole run also writes the page."""
    told = facts()
    book = table.Book()
    with Stage(book, without, rounds) as stage:
        for name, part in PARTS.items():
            if name in only:
                part(stage)
        tell("ending the servers")
    told |= report.disturbance(book)
    print(report.printed(book, told))
    if set(PARTS) <= set(only) and not without:
        page = report.page(book, told, tools=TOOLS, rounds=rounds, spread=scale.SPREAD)
        report.PAGE.write_text(page)
        tell(f"written: {report.PAGE.name}")

"""A pack whose tools write documents in every way that no tool of toolgate's own does.

A call changes several documents at once, documents that others change too, and one that it has
read before. `install` puts this file where a server finds it.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from shutil import copy
from typing import Literal, NamedTuple

from pydantic import Field

import toolgate.pack as tg

NAME = "ledger"
ENTRIES, COUNTERS = "entries", "counters"

family = tg.Family(NAME, tg.Pack(NAME, tg.SENTENCE, "What was written, and how often."))


class World(NamedTuple):
    documents: tg.DocumentStore


class NewEntry(tg.Input):
    name: str = Field(description="The id of the entry.")
    counter: str = Field(description="The counter that counts it.")
    instead_of: str | None = Field(default=None, description="An entry that is deleted.")


class Counter(tg.Input):
    counter: str = Field(description="The counter's id.")


class OneChange(tg.Input):
    kind: Literal["add", "revise", "replace", "remove"] = Field(description="What is done.")
    id: str = Field(description="The counter's or the entry's id.")
    note: str = Field(description="Something new.")


class Done(tg.Output):
    success: bool = Field(description="Always true.")


@family.tool(
    "ledger.enter",
    role=tg.Role.ADMIN,
    effect=tg.Effect.WRITE,
    writes=[tg.Target.DOCUMENTS],
    title="Make an entry",
)
async def enter(ctx: tg.Context[World], args: NewEntry) -> Done:
    """Make an entry and count it, all in one write that the store may leave to the commit."""
    writes: list[tg.Write] = [
        tg.Create(ENTRIES, args.name, entry_of(args.name)),
        tg.Merge(COUNTERS, args.counter, {"n": tg.Increment(1), "last": args.name}),
    ]
    if args.instead_of is not None:
        writes.append(tg.Delete(ENTRIES, args.instead_of))
    taken = tg.Conflict(f"There is an entry {args.name} already.")
    await ctx.world.documents.write(ctx.tx, *writes, conflict=taken)
    return Done(success=True)


@family.tool(
    "ledger.count",
    role=tg.Role.ADMIN,
    effect=tg.Effect.WRITE,
    writes=[tg.Target.DOCUMENTS],
    title="Count",
)
async def count(ctx: tg.Context[World], args: Counter) -> Done:
    """Read a counter that everybody counts with, and store the next number."""

    async def next_number(documents: tg.DocumentTransaction) -> None:
        found = await documents.get(COUNTERS, args.counter)
        documents.write(tg.Set(COUNTERS, args.counter, {"n": (found or {"n": 0})["n"] + 1}))

    await ctx.world.documents.transact(ctx.tx, next_number)
    return Done(success=True)


@family.tool(
    "ledger.change",
    role=tg.Role.ADMIN,
    effect=tg.Effect.DESTROY,
    writes=[tg.Target.DOCUMENTS],
    title="Change one document",
)
async def change(ctx: tg.Context[World], args: OneChange) -> Done:
    """Change an entry or a counter, in a write that the store may leave to the commit."""
    write: tg.Write
    match args.kind:
        case "add":
            write = tg.Merge(COUNTERS, args.id, {"n": tg.Increment(1), "last": args.note})
        case "revise":
            parts = tg.ArrayUnion([args.note])
            write = tg.Update(ENTRIES, args.id, {"of.note": args.note, "parts": parts})
        case "replace":
            write = tg.Set(ENTRIES, args.id, {**entry_of(args.id), "note": args.note})
        case "remove":
            write = tg.Delete(ENTRIES, args.id)
    missing = tg.NotFound(f"There is no document {args.id}.")
    await ctx.world.documents.write(ctx.tx, write, conflict=missing)
    return Done(success=True)


def entry_of(name: str) -> dict[str, object]:
    return {"name": name, "parts": ["entry", name], "of": {"pack": NAME}}


class LedgerSettings(tg.Section):
    """None."""


@asynccontextmanager
async def opened(site: tg.Site, settings: LedgerSettings) -> AsyncGenerator[World]:
    yield World(site.documents)


OFFER = tg.Offer(
    pack=family.pack,
    tools=tuple(family.tools),
    settings=LedgerSettings,
    open=opened,
    documents=True,
)


def install(folder: Path) -> None:
    """As pip would, but into the working folder of a server, where Python looks first."""
    copy(__file__, folder / f"{NAME}.py")
    package = folder / f"{NAME}-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {NAME}\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(f"[toolgate.packs]\n{NAME} = {NAME}:OFFER\n")

"""Both databases of the application: what is at a path is read and written."""

# ruff: noqa: N815 (names of fields are the seed's)

from typing import Annotated, Any, Literal

import orjson
from pydantic import Field, WithJsonSchema

from toolgate.gate.context import Context
from toolgate.gate.fields import Between
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Input, Output, StoredOutput, Target
from toolgate.packs.network.data import firestore, realtime
from toolgate.packs.network.data.firestore import Change, Found, Part
from toolgate.packs.network.errors import invalid, invalid_type, too_large
from toolgate.packs.network.pack import ANY_JSON, NETWORK, Database, Path
from toolgate.packs.network.world import NetworkWorld
from toolgate.ports.transforms import now
from toolgate.ports.tree_writes import holds_more_than

family = Family("firebase", NETWORK)

FIRESTORE = "firestore"
MOST_VALUES = 20_000
"""In the data of one write, lists and objects too: each is a row, or entries of an index."""
Scalar = Annotated[
    str | bool | int | float, WithJsonSchema({"type": ["string", "number", "boolean"]})
]
AnyJson = Annotated[Any, WithJsonSchema(ANY_JSON)]


class ReadQuery(Input):
    """Which documents of a collection, or children of a path."""

    orderBy: str | None = Field(
        default=None,
        max_length=1500,
        description="Field to order results by. In the realtime database also `$key` and `$value`.",
    )
    limit: Annotated[int, Between(1, 1000)] | None = Field(
        default=None, description="Maximum number of results."
    )
    startAt: Scalar | None = Field(
        default=None,
        description="Starting point for query: a value of the field, itself included; "
        "without `orderBy` an id or key.",
    )
    endAt: Scalar | None = Field(
        default=None, description="Ending point for query, itself included."
    )


class Read(Input):
    """What to read."""

    database: Database = Field(description="Database type to read from.")
    path: Path = Field(
        description="Path to the data (collection/document for Firestore, path for Realtime DB)."
    )
    query: ReadQuery | None = Field(
        default=None, description="Which documents of a collection, or children of a path."
    )
    shallow: bool = Field(
        default=False, description="For Realtime DB: return only keys at the path."
    )


class ReadMetadata(Output):
    """What is known of a read."""

    path: str = Field(description="The path that was read.")
    timestamp: str = Field(
        description="When it was read.", json_schema_extra={"format": "date-time"}
    )
    count: int = Field(description="How many documents, or children of the path; 1 for a value.")
    hasMore: bool = Field(
        default=False, description="Whether a collection has more documents than are returned."
    )


class ReadResult(StoredOutput):
    """What is at the path."""

    success: bool = Field(description="Always true.")
    data: AnyJson = Field(
        description="Retrieved data: a document's fields, the documents of a collection as an "
        "array, each with its `id`, or what is at a path of the realtime database."
    )
    metadata: ReadMetadata = Field(default=..., description="What is known of the read.")


@family.tool(
    "firebase.read",
    role=Role.ADMIN,
    effect=Effect.READ,
    title="Read from Firestore or the realtime database",
    example={"database": "firestore", "path": "agents/agent-001", "query": {"limit": 10}},
)
async def firebase_read(ctx: Context[NetworkWorld], args: Read) -> ReadResult:
    """Read data from Firebase Realtime Database or Firestore.

    In Firestore a path of an odd number of names is a collection (at most 1,000 of its documents
    are returned), one of an even number a document. An empty collection is an empty array; a
    document or a realtime path where nothing is, is not found. The agents, tasks and skills of this
    network are the documents at `agents`, `tasks` and `skills`.
    """
    found = await _found(ctx.world, args)
    metadata: dict[str, Any] = {"path": args.path, "timestamp": now(), "count": found.count}
    if found.more:
        metadata["hasMore"] = True
    return ReadResult.model_construct(success=True, data=found.data, metadata=metadata)


async def _found(world: NetworkWorld, args: Read) -> Found:
    part = None if args.query is None else _part(args.query)
    if args.database != FIRESTORE:
        return await realtime.read(world.tree, args.path, part, shallow=args.shallow)
    if args.shallow:
        raise invalid("shallow", "shallow is for the realtime database", True, "Leave shallow out.")
    return await firestore.read(world.documents, args.path, part or Part())


def _part(query: ReadQuery) -> Part:
    return Part(query.orderBy or None, query.limit, query.startAt, query.endAt)


class Written(Input):
    """What to write, and where."""

    database: Database = Field(description="Database type to write to.")
    path: Path = Field(description="Path to write data.")
    data: AnyJson = Field(description="Data to write; for `delete` it is not looked at.")
    operation: Literal["set", "update", "push", "delete"] = Field(
        default="set", description="Type of write operation."
    )
    merge: bool = Field(
        default=False, description="For Firestore: merge with existing document; with `set`."
    )
    transaction: bool = Field(default=False, description="Execute as transaction.")


class WriteMetadata(Output):
    """What is known of a write."""

    path: str = Field(description="The path that was written to.")
    timestamp: str = Field(
        description="When it was written.", json_schema_extra={"format": "date-time"}
    )
    operation: str = Field(description="What was done.")


class WriteResult(Output):
    """What was written."""

    success: bool = Field(description="Always true.")
    key: str = Field(default="", description="Generated key for push operations.")
    metadata: WriteMetadata = Field(default=..., description="What is known of the write.")


@family.tool(
    "firebase.write",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.DOCUMENTS, Target.TREE],
    title="Write to Firestore or the realtime database",
    example={
        "database": "firestore",
        "path": "messages/conversations/conv-123",
        "data": {
            "from": "agent-001",
            "to": "agent-002",
            "message": "Task completed successfully",
            "timestamp": "2025-11-03T10:35:00Z",
        },
        "operation": "push",
    },
)
async def firebase_write(ctx: Context[NetworkWorld], args: Written) -> WriteResult:
    """Write data to Firebase Realtime Database or Firestore.

    `set` replaces what is at the path, `update` only the fields or children that it names, `push`
    adds a document to a collection, or a child, under a new key that sorts by time, and `delete`
    removes. In the realtime database null is nothing: to set it removes, too. With `transaction`,
    nobody else changes what is there between reading and writing it, or the write is a conflict.
    Documents at `agents`, `tasks` and `skills` are checked: they are the network's own records.
    """
    _check(ctx.world, args)
    change = Change(args.path, args.data, args.operation, args.merge, args.transaction)
    if args.database == FIRESTORE:
        key = await firestore.write(ctx.world.documents, ctx.tx, change)
    else:
        key = await realtime.write(ctx.world.tree, ctx.tx, change)
    metadata = WriteMetadata(path=args.path, timestamp=now(), operation=args.operation)
    if key is None:
        return WriteResult(success=True, metadata=metadata)
    return WriteResult(success=True, key=key, metadata=metadata)


def _check(world: NetworkWorld, args: Written) -> None:
    """What holds for both databases."""
    if args.merge and (args.database != FIRESTORE or args.operation != "set"):
        raise invalid(
            "merge",
            "merge is for operation set in Firestore",
            True,
            "Use operation update, or leave merge out.",
        )
    if holds_more_than(MOST_VALUES, args.data):
        raise too_large(f"data has more than {MOST_VALUES:,} values in it.")
    try:
        size = len(orjson.dumps(args.data))
    except TypeError:  # an integer of more than 64 bits, half of a surrogate pair
        raise invalid_type(
            None, "data must be valid JSON, with integers of at most 64 bits", "Send text instead."
        ) from None
    if size > (most := world.settings.data_bytes):
        raise too_large(f"data has {size:,} bytes as JSON, over the limit of {most:,}.")

"""Storing content: rows are inserted, or replace what has the same natural key."""

import uuid
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Table

from toolgate.packs.content.sql.tables import blocks, entities, performance, projects, relations
from toolgate.packs.content.store import Row
from toolgate.packs.content.vocabulary import ENTITY_TYPES, fold

KEYS: dict[str, tuple[str, ...]] = {
    projects.name: ("slug",),
    entities.name: ("project_id", "entity_type", "slug"),
    relations.name: ("project_id", "from_type", "from_id", "to_type", "to_id", "relation_type"),
    performance.name: ("project_id", "query", "page_url", "date_start", "date_end"),
    blocks.name: ("id",),
}
KEPT = {"number", "id", "created_at"}
SPACE = uuid.UUID("6f0f6d0e-3c1c-5b1e-9a53-1a7c0c7f2b11")


def id_for(table: Table, *key: str) -> str:
    """The id of a row that was given none: always the same for the same natural key."""
    return str(uuid.uuid5(SPACE, "\x1f".join((table.name, *key))))


def store(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert rows; one whose natural key is there already replaces all but its id."""
    if connection.dialect.name == "sqlite":
        from sqlalchemy.dialects.sqlite import insert  # noqa: PLC0415
    else:
        from sqlalchemy.dialects.postgresql import insert  # noqa: PLC0415
    complete = [_complete(table, row) for row in rows]
    adding: Any = insert(table)
    replaced = {
        column.name: adding.excluded[column.name]
        for column in table.c
        if column.name not in KEPT | set(KEYS[table.name])
    }
    adding = adding.on_conflict_do_update(index_elements=KEYS[table.name], set_=replaced)
    if connection.dialect.name == "postgresql":
        # With something to return, many rows go in one statement, and so do their totals.
        adding = adding.returning(table.c.id)
    connection.execute(adding, complete)


def _complete(table: Table, row: Row) -> Row:
    """The row with what is derived from it: folded text, ends that are entities."""
    complete = {column.name: row.get(column.name) for column in table.c if column.name != "number"}
    for name in complete:
        if name.endswith("_folded"):
            text = complete[name.removesuffix("_folded")]
            complete[name] = None if text is None else fold(text)
    if table is relations:
        for end in ("from", "to"):
            entity = complete[f"{end}_type"] in ENTITY_TYPES
            complete[f"{end}_entity"] = complete[f"{end}_id"] if entity else None
    return complete

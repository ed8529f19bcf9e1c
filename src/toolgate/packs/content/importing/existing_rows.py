"""A batch of rows beside what is stored: what it keeps of that, and what that forbids."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson
from sqlalchemy import (
    Connection,
    FromClause,
    String,
    Table,
    and_,
    bindparam,
    cast,
    column,
    func,
    outerjoin,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB

from toolgate.packs.content.importing.rows import DEFAULTS, KEPT
from toolgate.packs.content.sql import tables
from toolgate.packs.content.sql.upserts import KEYS, Row
from toolgate.packs.content.vocabulary import ENTITY_TYPES

TABLES: dict[str, Table] = {
    "entities": tables.entities,
    "relations": tables.relations,
    "blocks": tables.blocks,
    "performance": tables.performance,
}
# What a stored row must share with one that brings the same id.
SAME = KEYS | {tables.blocks.name: ("project_id",)}
Batch = list[tuple[int, Row]]


@dataclass(frozen=True, slots=True)
class PackedBatch:
    """A checked batch until it is stored; packed, as a file may have millions of rows."""

    size: int
    """How many bytes of the file it was."""
    content: bytes

    @classmethod
    def of(cls, batch: Batch, size: int) -> "PackedBatch":
        """Pack a batch."""
        return cls(size, zlib.compress(orjson.dumps(batch), 1))

    def batch(self) -> Batch:
        """The batch again."""
        return [(number, row) for number, row in orjson.loads(zlib.decompress(self.content))]


@dataclass(slots=True)
class ReconciledBatch:
    """Rows as they are to be stored, and those that must not be."""

    rows: list[Row] = field(default_factory=list[Row])
    refused: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])


def reconcile(connection: Connection, kind: str, project: str, batch: Batch) -> ReconciledBatch:
    """Complete rows by what is stored under the same key; refuse what does not go with it."""
    table, rows = TABLES[kind], [row for _, row in batch]
    conflicts = _conflicting_ids(connection, table, rows)
    there = _stored_values(connection, kind, project, rows)
    reconciled = ReconciledBatch(
        [DEFAULTS[kind] | there.get(_key(table, row), {}) | row for row in rows],
    )
    entities = _entities(connection, kind, project, reconciled.rows)
    for (number, _), row in zip(batch, reconciled.rows, strict=True):
        gone = [name for name, id in _entity_ids(kind, row) if id not in entities]
        if row["id"] in conflicts:
            reconciled.refused.append((number, f"id {row['id']} is that of another row already"))
        elif gone:
            reconciled.refused.append((number, f"{gone[0]} names no entity of this project"))
        elif row.get("entity_type") == "project" and not row["repo_url"]:
            reconciled.refused.append((number, "a project needs repoUrl"))
    return reconciled


def _key(table: Table, row: Any) -> tuple[str, ...]:
    return tuple(row[name] for name in KEYS[table.name])


def _conflicting_ids(connection: Connection, table: Table, rows: list[Row]) -> set[str]:
    """The ids that stored rows have which are not the same."""
    by_id = {row["id"]: row for row in rows}
    names = SAME[table.name]
    statement = select(table.c.id, *(table.c[name] for name in names if name != "id"))
    result: Any = connection.execute(statement.where(table.c.id.in_(by_id)))
    return {
        there["id"]
        for there in result.mappings()
        if any(there[name] != by_id[there["id"]][name] for name in names)
    }


def _stored_values(
    connection: Connection, kind: str, project: str, rows: list[Row]
) -> dict[tuple[str, ...], Row]:
    """What is stored in the fields that rows of the file lack, by the rows' keys."""
    table, fields = TABLES[kind], sorted(KEPT[kind])
    keys = [_key(table, row) for row in rows if not row.keys() >= KEPT[kind]]
    if not keys:
        return {}
    key_table, parts = _as_table(connection, keys)
    same = [table.c[name] == part for name, part in zip(KEYS[table.name], parts, strict=True)]
    # An outer join, as SQLite would else look through the whole table for each key.
    beside = outerjoin(key_table, table, and_(table.c.project_id == project, *same))
    names = {"id", *KEYS[table.name], *fields}
    result: Any = connection.execute(select(*(table.c[name] for name in names)).select_from(beside))
    return {
        _key(table, there): {name: there[name] for name in fields}
        for there in result.mappings()
        if there["id"] is not None
    }


def _as_table(connection: Connection, keys: list[tuple[str, ...]]) -> tuple[FromClause, list[Any]]:
    """Keys as a table in a query, and its columns; as JSON, so that it is one parameter."""
    parameter = bindparam("keys", orjson.dumps(keys).decode(), String, unique=True)
    places = range(len(keys[0]))
    if connection.dialect.name == "sqlite":
        key_table = func.json_each(parameter).table_valued("value", name="wanted")
        return key_table, [func.json_extract(key_table.c.value, f"$[{place}]") for place in places]
    elements = func.jsonb_array_elements(cast(parameter, JSONB))
    key_table = elements.table_valued(column("value", JSONB), name="wanted")
    return key_table, [key_table.c.value[place].astext for place in places]


def _entity_ids(kind: str, row: Row) -> Iterator[tuple[str, str]]:
    """The entities that a row names: the field, and the id."""
    if kind == "relations":
        for end in ("from", "to"):
            if row[f"{end}_type"] in ENTITY_TYPES:
                yield end, row[f"{end}_id"]
    elif row.get("entity_id"):
        yield "entityId", row["entity_id"]


def _entities(connection: Connection, kind: str, project: str, rows: list[Row]) -> set[str]:
    ids = {id for row in rows for _, id in _entity_ids(kind, row)}
    if not ids:
        return set()
    statement = select(tables.entities.c.id).where(tables.entities.c.project_id == project)
    return set(connection.execute(statement.where(tables.entities.c.id.in_(ids))).scalars())

"""The statements that read documents by their index, made once for each shape.

Each gives rows of (key, id, fields, number) after a place, in order, as many as asked for.
"""

from functools import lru_cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    LargeBinary,
    Select,
    bindparam,
    column,
    exists,
    func,
    literal_column,
    select,
    table,
    tuple_,
    union,
)

from toolgate.db.prepared import PreparedStatement
from toolgate.db.tables import document_index, documents

Condition = ColumnElement[bool]
NO_KEY = literal_column("''", LargeBinary).label("key")
"""Where documents are read by id alone."""
REST = (documents.c.fields, documents.c.seq)
ours = (documents.c.namespace == bindparam("namespace")) & (
    documents.c.collection == bindparam("collection")
)


@lru_cache(maxsize=64)
def of_collection(*, descending: bool) -> PreparedStatement:
    """Every document, by id."""
    id = documents.c.id
    return PreparedStatement(
        select(NO_KEY, id, *REST)
        .where(ours, _after_id(id, descending))
        .order_by(id.desc() if descending else id)
        .limit(bindparam("rows"))
    )


def _after_id(id: ColumnElement[str], descending: bool) -> Condition:
    return id < bindparam("after_id") if descending else id > bindparam("after_id")


@lru_cache(maxsize=256)
def of_range(equalities: tuple[int, ...], *, descending: bool) -> PreparedStatement:
    """Documents by the values of a field, narrowed by equalities with so many keys each."""
    entry = document_index
    after = tuple_(bindparam("after_key"), bindparam("after_id"))
    place = tuple_(entry.c.key, entry.c.id)
    bounds = (
        (place < after) & (entry.c.key >= bindparam("low"))
        if descending
        else (place > after) & (entry.c.key < bindparam("high"))
    )
    columns = [entry.c.key, entry.c.id]
    return PreparedStatement(
        select(*columns, *REST)
        .join_from(entry, documents, ours & (documents.c.id == entry.c.id))
        .where(entry.c.field == bindparam("field"), bounds, *_narrowed(equalities, entry.c.id))
        .order_by(*(one.desc() if descending else one for one in columns))
        .limit(bindparam("rows"))
    )


@lru_cache(maxsize=256)
def of_keys(keys: int, equalities: tuple[int, ...], *, descending: bool) -> PreparedStatement:
    """Documents with one of so many keys, by id; each key is read as far as can be needed."""
    parts = [_with_key(number, equalities, descending) for number in range(keys)]
    ids = union(*parts).subquery() if keys > 1 else parts[0].subquery()
    return PreparedStatement(
        select(NO_KEY, ids.c.id, *REST)
        .join_from(ids, documents, ours & (documents.c.id == ids.c.id))
        .order_by(ids.c.id.desc() if descending else ids.c.id)
        .limit(bindparam("rows"))
    )


def _with_key(number: int, equalities: tuple[int, ...], descending: bool) -> Select[Any]:
    entry = document_index.alias(f"with_key_{number}")
    id = entry.c.id
    page = (
        select(id)
        .where(
            entry.c.field == bindparam("field"),
            entry.c.key == bindparam(f"key_{number}"),
            _after_id(id, descending),
            *_narrowed(equalities, id),
        )
        .order_by(id.desc() if descending else id)
        .limit(bindparam("rows"))
        .subquery()
    )
    return select(page.c.id)  # SQLite takes no limit in a part of a union


@lru_cache(maxsize=64)
def count_of(keys: int) -> PreparedStatement:
    """How many entries have one of so many keys, at most as many as asked for."""
    entry = document_index
    some = (
        select(entry.c.id)
        .where(
            entry.c.field == bindparam("field"),
            entry.c.key.in_([bindparam(f"key_{number}") for number in range(keys)]),
        )
        .order_by(entry.c.key, entry.c.id)  # as they lie: else PostgreSQL collects all of them
        .limit(bindparam("rows"))
        .subquery()
    )
    return PreparedStatement(select(func.count().label("entries")).select_from(some))


def _narrowed(equalities: tuple[int, ...], id: ColumnElement[str]) -> list[Condition]:
    """Conditions that a document has an entry of one of an equality's keys."""
    return [_has_entry(number, keys, id) for number, keys in enumerate(equalities)]


def _has_entry(number: int, keys: int, id: ColumnElement[str]) -> Condition:
    entry = table("document_index", column("field"), column("key"), column("id")).alias(
        f"narrowed_{number}"
    )
    accepted: list[ColumnElement[Any]] = [
        bindparam(f"narrowed_{number}_key_{one}") for one in range(keys)
    ]
    found = select(entry.c.id).where(
        entry.c.field == bindparam(f"narrowed_{number}_field"),
        entry.c.key == accepted[0] if keys == 1 else entry.c.key.in_(accepted),
        entry.c.id == id,
    )
    # With an offset PostgreSQL looks for each document by itself. Without, it may first read all
    # that have the key, for all it knows of them.
    return exists(found.offset(0))

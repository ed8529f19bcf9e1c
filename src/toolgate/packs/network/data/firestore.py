"""Documents by path, as Firestore has them: names take turns, collection, document, collection.

The documents at `agents/`, `tasks/` and `skills/` are records: what is stored there is checked as a
whole, also where a write changes only some of it.
"""

from dataclasses import dataclass
from typing import Any, cast

from toolgate.db.transactions import Transaction
from toolgate.gate.errors import InvalidArguments, Problem
from toolgate.packs.network.errors import (
    INVALID_DATA_TYPE,
    invalid,
    invalid_path,
    invalid_type,
    not_found,
    store_errors,
)
from toolgate.packs.network.records.checks import completed, is_record
from toolgate.ports.documents import (
    DOCUMENT_ID,
    Create,
    Cursor,
    Delete,
    DocumentNotFound,
    DocumentReader,
    DocumentStore,
    DocumentTransaction,
    Fields,
    Json,
    Merge,
    Order,
    Query,
    Reference,
    Set,
    Update,
    Write,
)
from toolgate.ports.push_ids import push_id
from toolgate.ports.rules import broken_field_rule, broken_fields_rule, broken_path_rule
from toolgate.ports.transforms import fields_after, now

MOST = 1000
"""Documents of a collection that one read returns."""


@dataclass(frozen=True, slots=True)
class Part:
    """Which documents of a collection."""

    order_by: str | None = None
    limit: int | None = None
    start_at: Json = None
    end_at: Json = None

    @property
    def chooses(self) -> bool:
        """Whether it says more than how many."""
        return self != Part(limit=self.limit)


@dataclass(frozen=True, slots=True)
class Found:
    """What a read returns."""

    data: Json
    count: int
    more: bool = False
    """Whether there is more than that."""


def is_collection(path: str) -> bool:
    """Whether a path is of a collection, and not of a document."""
    return path.count("/") % 2 == 0


async def read(store: DocumentReader, path: str, part: Part) -> Found:
    """What is at a path: a document's fields, or the documents of a collection."""
    _check_path(path, of_document=not is_collection(path))
    with store_errors("query"):
        if is_collection(path):
            return await _collection(store, path, part)
        if part.chooses:
            raise invalid(
                "query",
                f"query orders and bounds the documents of a collection, and {path} is a document",
                suggestion="Leave query out, or read the collection that the document is in.",
            )
        fields = await store.get(*_reference(path))
    if fields is None:
        raise not_found(
            path,
            f"There is no document at {path}.",
            f"Read the collection {path.rpartition('/')[0]} to see which there are.",
        )
    return Found(fields, 1)


async def _collection(store: DocumentReader, path: str, part: Part) -> Found:
    limit = part.limit or MOST
    order = part.order_by or DOCUMENT_ID
    if order != DOCUMENT_ID and (problem := broken_field_rule(order)):
        raise invalid("query.orderBy", f"query.orderBy {problem}", order)
    start, end = (
        None if value is None else _cursor(name, value, order)
        for name, value in (("startAt", part.start_at), ("endAt", part.end_at))
    )
    query = Query(path, order=[Order(order)], limit=limit + 1, start=start, end=end)
    found = await store.query(query)
    shown = [{"id": one.id, **one.fields} for one in found[:limit]]
    return Found(shown, len(shown), more=len(found) > limit)


def _cursor(name: str, value: Json, order: str) -> Cursor:
    if order == DOCUMENT_ID and not isinstance(value, str):
        raise invalid(
            f"query.{name}",
            f"query.{name} must be a document's id where there is no query.orderBy",
            value,
            "Name the field that it is a value of in query.orderBy.",
        )
    return Cursor((value,), inclusive=True)


@dataclass(frozen=True, slots=True)
class Change:
    """What is to be written."""

    path: str
    data: Json
    operation: str
    merge: bool = False
    transaction: bool = False


async def write(store: DocumentStore, tx: Transaction, change: Change) -> str | None:
    """Write; returns the id that was made for a new document."""
    (collection, document_id), key = _place(change)
    one = _write_of(change, collection, document_id)
    missing = not_found(
        change.path,
        f"There is no document at {change.path} to update.",
        "Use operation set, which makes one.",
    )
    with store_errors():
        if change.transaction or (is_record(collection) and not isinstance(one, Delete)):
            try:
                await store.transact(tx, lambda inside: _write_over(inside, one))
            except DocumentNotFound:
                raise missing from None
        else:
            await store.write(tx, one, conflict=missing)
    return key


async def _write_over(inside: DocumentTransaction, one: Write) -> None:
    """Write over what is there, which nobody else changes meanwhile."""
    collection, document_id = one.collection, one.document_id
    before = await inside.get(collection, document_id)
    time = now()
    after = fields_after(one, before, time)
    if after is not None and is_record(collection):
        one = Set(collection, document_id, completed(collection, document_id, after, time))
    inside.write(one)


def _place(change: Change) -> tuple[Reference, str | None]:
    """Which document is written, and its id if it is a new one."""
    path = change.path
    if change.operation != "push":
        if is_collection(path):
            raise invalid_path(
                path,
                f"path must be of a document to {change.operation}, and {path} is a collection",
                f"Write to {path}/ID, or push to {path}.",
            )
        _check_path(path, of_document=True)
        return _reference(path), None
    if not is_collection(path):
        raise invalid_path(
            path,
            f"path must be of a collection to push to, and {path} is a document",
            f"Set {path}, or push to a collection below it, such as {path}/items.",
        )
    _check_path(path, of_document=False)
    key = push_id()
    return (path, key), key


def _write_of(change: Change, collection: str, document_id: str) -> Write:
    if change.operation == "delete":
        return Delete(collection, document_id)
    data = _fields(change.data)
    match change.operation:
        case "update":
            _check_names(data)
            return Update(collection, document_id, data)
        case "push":
            return Create(collection, document_id, data)
        case _:
            return (Merge if change.merge else Set)(collection, document_id, data)


def _fields(data: Json) -> Fields:
    if not isinstance(data, dict):
        raise invalid_type(
            data,
            "data must be an object in Firestore, not an array, a single value or null",
            'Write an object, such as {"value": …}; the realtime database takes any JSON.',
        )
    fields = cast(Fields, data)
    if problem := broken_fields_rule(fields):
        rule = Problem("data", "type", f"data {problem}", name=INVALID_DATA_TYPE)
        raise InvalidArguments([rule])
    return fields


def _check_names(changes: dict[str, Any]) -> None:
    """Names of fields in an update, with dots between those of maps and what is in them."""
    if not changes:
        raise invalid("data", "data must name at least one field to update")
    for name in changes:
        if problem := broken_field_rule(name):
            raise invalid("data", f"data has the field {name[:100]!r}, which {problem}")


def _check_path(path: str, *, of_document: bool) -> None:
    if problem := broken_path_rule(path, of_document=of_document):
        raise invalid_path(path, f"path {problem}", "Choose other names.")


def _reference(path: str) -> Reference:
    collection, _, document_id = path.rpartition("/")
    return collection, document_id

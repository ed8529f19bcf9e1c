"""How a query reads the index, page by page, until it has its results.

The database gives candidates in order; `ports.filters` and `ports.ordering` have the last word on
each, so both databases answer alike, also where the index has only the beginning of a value.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection

from toolgate.adapters.sql.documents import statements
from toolgate.adapters.sql.documents.index import CollectionIndex, index_key, is_cut
from toolgate.adapters.sql.documents.plans import Equality, Plan, plan_of
from toolgate.db.prepared import PreparedStatement
from toolgate.ports.documents import DOCUMENT_ID, Query, StoredDocument
from toolgate.ports.filters import matches
from toolgate.ports.ordering import (
    is_between_cursors,
    is_past_end,
    position,
    selected,
    sort_by_order,
)

PAGE = 500
"""Rows read at once, at most."""
FEW = 200
"""So many documents are sorted sooner than as many are looked for in the order of another field."""
LAST_ID = "\U0010ffff" * 376
"""After every id: they have at most 1,500 bytes."""


@dataclass(frozen=True, slots=True)
class Read:
    """A statement and its values, apart from the place to read on from."""

    statement: PreparedStatement
    values: dict[str, Any]
    after: dict[str, Any]
    in_order: bool
    """Whether candidates come in the order of the query's first field."""


def search(
    connection: Connection, namespace: str, query: Query, index: CollectionIndex
) -> list[StoredDocument]:
    """What a query finds."""
    plan = plan_of(query, index)
    if plan.impossible or query.limit == 0:
        return []
    read = _read(connection, plan, {"namespace": namespace, "collection": query.collection})
    read = replace(read, after=read.after | _place_of_cursor(query, plan, read))
    size = min(query.limit or PAGE, PAGE)
    if not read.in_order:
        return _best(_candidates(connection, read, PAGE), query)
    return _first(_candidates(connection, read, size), query, plan)


def _first(
    candidates: Iterator[tuple[bytes, StoredDocument]], query: Query, plan: Plan
) -> list[StoredDocument]:
    """The first that pass, of candidates in the order of the first field.

    Where further fields decide among those with the same key, all of these are read.
    """
    placed: list[tuple[list[bytes], StoredDocument]] = []
    last_key, simple = b"", _is_simple(plan)
    for key, place, document in _passing(candidates, query, plan):
        full = query.limit is not None and len(placed) >= query.limit
        if full and key != last_key:
            break
        placed.append((place, document))
        last_key = key
        if simple and len(placed) == query.limit and not is_cut(key):
            break
        if query.limit and len(placed) > query.limit + PAGE:
            placed = sort_by_order(placed, plan.order)[: query.limit]
    return [one for _, one in sort_by_order(placed, plan.order)[: query.limit]]


def _passing(
    candidates: Iterator[tuple[bytes, StoredDocument]], query: Query, plan: Plan
) -> Iterator[tuple[bytes, list[bytes], StoredDocument]]:
    """Those among candidates that a query accepts, up to its end; each with its place."""
    for key, document in candidates:
        place = position(document, plan.order)
        # An entry may be left of an earlier state, if the document was changed past this store.
        if place is None or not place[0].startswith(key):
            continue
        if is_past_end(place, query, plan.order) and not is_cut(key):
            return
        if matches(document.fields, query.filters) and is_between_cursors(place, query, plan.order):
            yield key, place, document


def _best(candidates: Iterator[tuple[bytes, StoredDocument]], query: Query) -> list[StoredDocument]:
    """The first in the query's order, of candidates in any; never many more at once."""
    kept: list[StoredDocument] = []
    for _, document in candidates:
        if matches(document.fields, query.filters):
            kept.append(document)
        if query.limit and len(kept) > query.limit + PAGE:
            kept = selected(kept, query)
    return selected(kept, query)


def _candidates(
    connection: Connection, read: Read, size: int
) -> Iterator[tuple[bytes, StoredDocument]]:
    after = read.after
    while True:
        rows = read.statement.rows(connection, {**read.values, **after, "rows": size})
        for key, id, fields, number in rows:
            yield bytes(key or b""), StoredDocument(id, fields, number)
        if len(rows) < size:
            return
        key, id, *_ = rows[-1]
        after = (
            {"after_key": bytes(key), "after_id": id} if "after_key" in after else {"after_id": id}
        )
        size = min(2 * size, PAGE)


def _read(connection: Connection, plan: Plan, values: dict[str, Any]) -> Read:
    """What to read: the order's own field, or an equality that few documents meet."""
    counted = _counted(connection, plan)
    if counted and (plan.range is None or counted[0][0] < FEW):
        fewest, driver = counted[0]
        others = [one for _, one in counted[1:]] if fewest >= FEW else []
        return _by_keys(driver, others, plan, values)
    descending = plan.descending
    if plan.range is None:
        statement = statements.of_collection(descending=descending)
        after = {"after_id": LAST_ID if descending else ""}
        return Read(statement, values, after, in_order=plan.by_id)
    part, equalities = plan.range, plan.equalities
    sizes = tuple(len(one.keys) for one in equalities)
    bound = {"low": part.low} if descending else {"high": part.high}
    start = part.high if descending else part.low
    values = {**values, **bound, "field": part.field, **_narrowing(equalities)}
    statement = statements.of_range(sizes, descending=descending)
    return Read(statement, values, {"after_key": start, "after_id": ""}, in_order=True)


def _place_of_cursor(query: Query, plan: Plan, read: Read) -> dict[str, Any]:
    """Where reading begins for a cursor that names a document's whole place."""
    cursor = query.start
    if cursor is None or not read.in_order or not _is_simple(plan):
        return {}
    *first, id = cursor.values
    if len(cursor.values) != len(plan.order) or not isinstance(id, str):
        return {}
    # The database goes on after a place: one that is among the results has to be behind it.
    if cursor.inclusive:
        id = f"{id}\1" if plan.descending else id[:-1]
    if not first:
        return {"after_id": id}
    key = index_key(first[0])
    if is_cut(key):
        return {}
    begins = key + b"\0" if plan.descending else key
    # Where a filter begins later than the cursor, all documents of its first key count.
    return {"after_key": key, "after_id": id} if read.after["after_key"] == begins else {}


def _by_keys(
    driver: Equality, others: Sequence[Equality], plan: Plan, values: dict[str, Any]
) -> Read:
    descending = plan.by_id and plan.descending
    sizes = tuple(len(one.keys) for one in others)
    statement = statements.of_keys(len(driver.keys), sizes, descending=descending)
    keys = {f"key_{number}": key for number, key in enumerate(driver.keys)}
    values = {**values, "field": driver.field, **keys, **_narrowing(others)}
    after = {"after_id": LAST_ID if descending else ""}
    return Read(statement, values, after, in_order=plan.by_id)


def _counted(connection: Connection, plan: Plan) -> list[tuple[int, Equality]]:
    """Equalities, that with the fewest entries first; counted only where there is a choice."""
    choices = len(plan.equalities) + (plan.range is not None)
    if choices < 2:
        return [(0, one) for one in plan.equalities]
    counted = [(_count(connection, one), one) for one in plan.equalities]
    return sorted(counted, key=lambda one: one[0])


def _count(connection: Connection, one: Equality) -> int:
    keys = {f"key_{number}": key for number, key in enumerate(one.keys)}
    values = {"field": one.field, "rows": FEW, **keys}
    return statements.count_of(len(one.keys)).rows(connection, values)[0][0]


def _narrowing(equalities: Sequence[Equality]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for number, one in enumerate(equalities):
        values[f"narrowed_{number}_field"] = one.field
        for place, key in enumerate(one.keys):
            values[f"narrowed_{number}_key_{place}"] = key
    return values


def _is_simple(plan: Plan) -> bool:
    """Whether the index has the whole order: by id, or by one field and id in one direction."""
    one_direction = len({one.descending for one in plan.order}) == 1
    return plan.order[-1].field == DOCUMENT_ID and len(plan.order) <= 2 and one_direction

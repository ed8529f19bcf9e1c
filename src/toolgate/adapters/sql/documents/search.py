"""How a query reads the index, page by page, until it has its results."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolgate.adapters.sql.documents import statements
from toolgate.adapters.sql.documents.index import CollectionIndex, index_key, is_cut
from toolgate.adapters.sql.documents.plans import BEYOND, Equality, Plan, plan_of
from toolgate.adapters.sql.documents.reading import places_for
from toolgate.adapters.sql.documents.results import (
    OrderedResults,
    Results,
    UnorderedResults,
    is_simple,
)
from toolgate.db.prepared import PreparedStatement
from toolgate.db.questions import Questions
from toolgate.ports.documents import Query, StoredDocument
from toolgate.ports.filters import for_many

PAGE = 500
"""Rows read at once, at most."""
FEW = 200
"""So many documents are sorted sooner than as many are looked for in the order of another field."""
MAX_NARROWING = 2
"""Equalities that narrow what is read; the others are checked on the documents found."""
MAX_KEYS = 300
"""Keys in one statement, counting each as often as it is written there."""
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


def search(namespace: str, query: Query, index: CollectionIndex) -> Questions[list[StoredDocument]]:
    """What a query finds."""
    plan = plan_of(query, index)
    if plan.impossible or query.limit == 0:
        return []
    query = replace(query, filters=list(map(for_many, query.filters)))
    read = yield from _read(plan, {"namespace": namespace, "collection": query.collection})
    if not read.in_order:
        results = UnorderedResults(query)
        yield from _give_candidates(results, read, read.after, PAGE)
    else:
        results = OrderedResults(query, plan)
        after = read.after | _place_of_cursor(query, plan, read)
        yield from _give_candidates(results, read, after, min(query.limit or PAGE, PAGE))
    return results.found()


def _give_candidates(
    results: Results, read: Read, after: dict[str, Any], size: int
) -> Questions[None]:
    while True:
        rows = yield read.statement, {**read.values, **after, "rows": size}
        for key, id, fields, number in rows:
            if results.add(bytes(key or b""), StoredDocument(id, fields, number)):
                return
        if len(rows) < size:
            return
        key, id, *_ = rows[-1]
        after = (
            {"after_key": bytes(key), "after_id": id} if "after_key" in after else {"after_id": id}
        )
        size = min(2 * size, PAGE)


def _read(plan: Plan, values: dict[str, Any]) -> Questions[Read]:
    """What to read: the order's own field, or an equality that few documents meet."""
    counted = yield from _counted(plan)
    if counted and (plan.range is None or counted[0][0] < FEW):
        fewest, driver = counted[0]
        others = [one for _, one in counted[1:]] if fewest >= FEW else []
        return _by_keys(driver, _narrowing(others, _places(driver)), plan, values)
    descending = plan.descending
    if plan.range is None:
        statement = statements.of_collection(descending=descending)
        after = {"after_id": LAST_ID if descending else ""}
        return Read(statement, values, after, in_order=plan.by_id)
    part, equalities = plan.range, _narrowing([one for _, one in counted], 1)
    bound = {"low": part.low} if descending else {"high": part.high}
    start = part.high if descending else part.low
    values = {**values, **bound, "field": part.field, **_values_of(equalities)}
    statement = statements.of_range(tuple(map(_places, equalities)), descending=descending)
    return Read(statement, values, {"after_key": start, "after_id": ""}, in_order=True)


def _place_of_cursor(query: Query, plan: Plan, read: Read) -> dict[str, Any]:
    """Where reading begins for a cursor that names a document's whole place."""
    cursor = query.start
    if cursor is None or not read.in_order or not is_simple(plan):
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
    sizes = tuple(map(_places, others))
    statement = statements.of_keys(_places(driver), sizes, descending=descending)
    values = {**values, "field": driver.field, **_named_keys("key", driver), **_values_of(others)}
    after = {"after_id": LAST_ID if descending else ""}
    return Read(statement, values, after, in_order=plan.by_id)


def _counted(plan: Plan) -> Questions[list[tuple[int, Equality]]]:
    """Equalities, that with the fewest entries first; counted only where there is a choice.

    Of those with many entries, that with the fewest keys: what narrows it is written once a key.
    """
    choices = len(plan.equalities) + (plan.range is not None)
    if choices < 2:
        return [(0, one) for one in plan.equalities]
    counted: list[tuple[int, Equality]] = []
    for one in plan.equalities:
        values = {"field": one.field, "rows": FEW, **_named_keys("key", one)}
        rows = yield statements.count_of(_places(one)), values
        counted.append((rows[0][0], one))
    return sorted(counted, key=lambda one: (one[0], len(one[1].keys)))


def _narrowing(equalities: Sequence[Equality], times: int) -> list[Equality]:
    """The first of them that fit into a statement, which has each so many times.

    In the order of their sizes: it is compiled for each set of sizes, on the event loop.
    """
    chosen: list[Equality] = []
    for one in equalities:
        keys = sum(map(_places, [*chosen, one]))
        if len(chosen) < MAX_NARROWING and times * (1 + keys) <= MAX_KEYS:
            chosen.append(one)
    return sorted(chosen, key=_places)


def _places(one: Equality) -> int:
    """How many keys a statement has for those of an equality."""
    return places_for(len(one.keys))


def _named_keys(name: str, one: Equality) -> dict[str, bytes]:
    """Keys by the names of their places in the statement; one without entries for those left."""
    given = dict.fromkeys(range(_places(one)), BEYOND) | dict(enumerate(one.keys))
    return {f"{name}_{number}": key for number, key in given.items()}


def _values_of(equalities: Sequence[Equality]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for number, one in enumerate(equalities):
        values[f"narrowed_{number}_field"] = one.field
        values |= _named_keys(f"narrowed_{number}_key", one)
    return values

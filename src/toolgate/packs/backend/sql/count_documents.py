"""Every document is counted, of which the database reads no more than what numbers depend on."""

from collections import Counter
from typing import Any

import orjson
from sqlalchemy import Connection, bindparam, func, select, text

from toolgate.db.tables import documents
from toolgate.packs.backend.pack import BACKEND
from toolgate.packs.backend.stats.counting import (
    COLLECTIONS,
    ENDS,
    KIND,
    Counted,
    Numbers,
    count,
    kind_of,
    second_of,
)
from toolgate.ports.users import USERS

PAGE = 2_000


def count_documents(connection: Connection, numbers: Numbers) -> None:
    """Count what there is; the caller looks at one moment."""
    every = select(func.count()).select_from(documents)
    for collection in COLLECTIONS:
        if collection == USERS:
            _count_users(connection, numbers)
            continue
        ours = every.where(
            documents.c.namespace == BACKEND.name, documents.c.collection == collection
        )
        count(numbers, f"{collection}/", {}, connection.scalar(ours) or 0)


def _count_users(connection: Connection, numbers: Numbers) -> None:
    page = _page(connection.dialect.name)
    alike: Counter[tuple[str | None, ...]] = Counter()
    after = ""
    while rows := connection.execute(page, {"after": after}).all():
        alike.update(tuple(row[1:]) for row in rows)
        after = rows[-1].id
    kinds: dict[tuple[str | None, ...], Counted | None] = {}
    for (ends, *kind), number in alike.items():
        key = tuple(kind)
        if key not in kinds:
            kinds[key] = kind_of([_value(one) for one in kind])
        numbers[Counted(USERS), 0] += number
        if (what := kinds[key]) and (second := second_of(_value(ends))):
            numbers[what, second] += number


def _value(json: str | None) -> Any:
    return None if json is None else orjson.loads(json)


def _page(dialect: str) -> Any:
    """The next users: of each, JSON of the fields that count."""
    fields = [text(_field(path, dialect)) for path in (ENDS, *KIND)]
    return (
        select(documents.c.id, *fields)
        .where(
            documents.c.namespace == BACKEND.name,
            documents.c.collection == USERS,
            documents.c.id > bindparam("after"),
        )
        .order_by(documents.c.id)
        .limit(PAGE)
    )


def _field(path: tuple[str, ...], dialect: str) -> str:
    """Names of our own, not of anybody's documents."""
    if dialect == "sqlite":
        return f"documents.fields -> '$.{'.'.join(path)}'"
    return f"CAST(documents.fields #> '{{{','.join(path)}}}' AS text)"

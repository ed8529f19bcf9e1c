"""The statement for a page of settings or preferences."""

from typing import Any

from sqlalchemy import ColumnElement, Table, bindparam, func, select


def shown(table: Table) -> list[Any]:
    """The columns of a record that callers see."""
    names = ("key", "value", "value_type", "version", "updated_at", "updated_by")
    return [table.c[name] for name in names]


def page_of(table: Table, in_place: list[ColumnElement[bool]]) -> Any:
    """Keys first, then the values of those that fit: large values beyond the page are not read."""
    among = (
        select(table.c.key, table.c.size)
        .where(
            *in_place,
            ~table.c.deleted,
            table.c.key >= bindparam("first"),
            table.c.key < bindparam("last"),
            table.c.key > bindparam("past"),
        )
        .order_by(table.c.key)
        .limit(bindparam("most"))
        .subquery()
    )
    before = func.sum(among.c.size).over(order_by=among.c.key) - among.c.size
    counted = select(
        among.c.key, before.label("before"), func.count().over().label("found")
    ).subquery()
    return (
        select(*shown(table), counted.c.found)
        .join(counted, counted.c.key == table.c.key)
        .where(*in_place, counted.c.before < bindparam("bytes"))
        .order_by(table.c.key)
    )

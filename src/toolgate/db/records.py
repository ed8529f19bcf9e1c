"""Rows of a pack's tables that are records: what is stored is told to the change log, too.

A table of records belongs to a `MetaData` whose `info` names the pack. What a pack only derives
from its records, such as versions that it keeps or counts, it stores as it likes.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, delete, insert, select, tuple_, update

from toolgate.db.changes import RECORDS, Change
from toolgate.db.transactions import Transaction

MAX_KEYS = 200
"""Keys in one statement: databases have a limit."""
PACK = "pack"
"""In `MetaData.info`: whose tables these are."""
Record = Mapping[str, Any]
Where = Sequence[ColumnElement[bool]]


def insert_record(tx: Transaction, connection: Connection, table: Table, row: Record) -> None:
    """Store a new record."""
    connection.execute(insert(table), row)
    note_record(tx, connection, table, None, row)


def insert_records(
    tx: Transaction, connection: Connection, table: Table, rows: Sequence[Record]
) -> None:
    """Store new records, if there are any."""
    if rows:
        connection.execute(insert(table), rows)
        _note(tx, connection, table, ((None, row) for row in rows))


def update_records(
    tx: Transaction, connection: Connection, table: Table, where: Where, values: Record
) -> int:
    """Change records, which are locked before; return how many."""
    wanted = select(table).where(*where).order_by(*table.primary_key).with_for_update()
    old = [dict(row) for row in connection.execute(wanted).mappings()]
    if not old:
        return 0
    keys = [tuple(row[one.name] for one in table.primary_key) for row in old]
    for first in range(0, len(keys), MAX_KEYS):
        # These, and no row that has come to be such a one meanwhile.
        these = tuple_(*table.primary_key).in_(keys[first : first + MAX_KEYS])
        connection.execute(update(table).where(these).values(values))
    _note(tx, connection, table, ((row, {**row, **values}) for row in old))
    return len(old)


def update_record(
    tx: Transaction,
    connection: Connection,
    table: Table,
    old: Record,
    values: Record,
    *,
    where: Where = (),
) -> bool:
    """Change a record that was read before; False where it is not there, or not so any more."""
    same = [column == old[column.name] for column in table.primary_key]
    if not connection.execute(update(table).where(*same, *where).values(values)).rowcount:
        return False
    note_record(tx, connection, table, old, {**old, **values})
    return True


def delete_records(tx: Transaction, connection: Connection, table: Table, where: Where) -> int:
    """Delete records; return how many."""
    gone = connection.execute(delete(table).where(*where).returning(*table.c)).mappings().all()
    _note(tx, connection, table, ((dict(row), None) for row in gone))
    return len(gone)


def note_record(
    tx: Transaction,
    connection: Connection,
    table: Table,
    before: Record | None,
    after: Record | None,
) -> None:
    """Tell of a record that was stored otherwise: what it was and what it is, None for nothing."""
    _note(tx, connection, table, [(before, after)])


def _note(
    tx: Transaction,
    connection: Connection,
    table: Table,
    images: Iterable[tuple[Record | None, Record | None]],
) -> None:
    pack = table.metadata.info[PACK]
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    tx.changed(
        connection,
        [
            Change(
                RECORDS,
                pack,
                _path(table, pack, after or before or {}),
                _image(table, before),
                _image(table, after),
                now,
            )
            for before, after in images
        ],
    )


def _path(table: Table, pack: str, row: Record) -> str:
    key = (str(row[column.name]) for column in table.primary_key)
    return "/".join((table.name.removeprefix(f"{pack}_"), *key))


def _image(table: Table, row: Record | None) -> dict[str, Any] | None:
    return None if row is None else {str(one.name): row.get(one.name) for one in table.c}

"""Settings and preferences in the gate's database.

A change is one statement that compares the version. The row is locked before, for the history: it
names the old value too.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import orjson
from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Table,
    bindparam,
    insert,
    literal,
    select,
    update,
)

from toolgate.db.engine import Database
from toolgate.db.prepared import PreparedStatement
from toolgate.db.questions import Questions
from toolgate.db.records import note_record
from toolgate.db.transactions import Transaction
from toolgate.gate.audit_records import timestamp
from toolgate.packs.orchestrator.records import (
    Change,
    Page,
    Place,
    Record,
    ScopeQuota,
)
from toolgate.packs.orchestrator.sql.record_history import (
    cleared_size,
    note_change,
    note_cleared,
)
from toolgate.packs.orchestrator.sql.record_pages import page_of, shown
from toolgate.packs.orchestrator.sql.scope_quotas import check_room, reserved_keys
from toolgate.packs.orchestrator.sql.tables import history
from toolgate.packs.orchestrator.sql.version_conflicts import key_conflict, version_conflict
from toolgate.packs.orchestrator.vocabulary import is_reserved

PAGE_BYTES = 1024 * 1024
"""A page ends before its values are larger than this together, but has one record at least."""
LAST = "\U0010ffff"
"""Sorts behind everything that may follow a prefix."""


class _Spot(NamedTuple):
    """Where a change is made, and in which transaction."""

    tx: Transaction
    connection: Connection
    place: Place
    key: str


class SqlRecords:
    """The records of one table."""

    def __init__(
        self,
        database: Database,
        table: Table,
        changed: Callable[[Connection, str], None] | None = None,
        *,
        quota: ScopeQuota,
        reserved: tuple[str, ...],
        reserved_quota: ScopeQuota,
    ) -> None:
        self._database = database
        self._table = table
        self._changed = changed
        """Told the key after each change, in its transaction."""
        self._quota = quota
        self._reserved = reserved
        """Namespaces of keys that only admins change."""
        self._reserved_quota = reserved_quota
        self._one = PreparedStatement(
            select(*shown(table)).where(*self._is_one(), ~table.c.deleted)
        )
        self._page = PreparedStatement(page_of(table, self._in_place()))

    async def get(self, place: Place, key: str) -> Record | None:
        """The record of this key."""
        named = self._named(place, key)
        row = await self._database.look_up(self._one, named, of_data=True)
        return _record(row) if row else None

    async def page(self, place: Place, prefix: str, after: str | None, limit: int) -> Page:
        """Records whose keys begin with a prefix, by key; fewer than `limit` if they are large."""
        values = {
            **self._named(place, ""),
            "first": prefix if after is None else max(prefix, after),
            "last": prefix + LAST,
            "past": after or "",
            "most": limit + 1,
            "bytes": PAGE_BYTES,
        }

        def questions() -> Questions[Page]:
            rows = yield self._page, values
            records = [_record(row) for *row, _ in rows[:limit]]
            found = rows[0][-1] if rows else 0
            return Page(records, more=found > len(records))

        return await self._database.ask(questions)

    async def create(self, tx: Transaction, place: Place, key: str, change: Change) -> Record:
        """Store a new record; raises `Conflict` where there is one."""

        def work(connection: Connection) -> Record:
            spot = _Spot(tx, connection, place, key)
            old = self._locked(connection, place, key)
            if old is None:
                if new := self._insert(spot, change):
                    return new
                # Somebody else was quicker. Its row is not waited for: others who hold it may wait
                # for the scope, which is ours.
                old = connection.execute(self._one.statement, self._named(place, key)).first()
                raise version_conflict(None) if old is None else key_conflict(key, old.version)
            if not old.deleted:
                raise key_conflict(key, old.version)
            return self._store(spot, old, change)

        return await tx.run(work)

    async def update(
        self, tx: Transaction, place: Place, key: str, change: Change, expected: int | None
    ) -> Record | None:
        """Change a record, if it has the expected version; None where there is none."""

        def work(connection: Connection) -> Record | None:
            old = self._expected(connection, place, key, expected)
            return self._store(_Spot(tx, connection, place, key), old, change) if old else None

        return await tx.run(work)

    async def delete(
        self,
        tx: Transaction,
        place: Place,
        key: str,
        *,
        expected: int | None,
        by: str,
        reason: str | None,
    ) -> bool:
        """Delete a record, if it has the expected version; False where there is none."""

        def work(connection: Connection) -> bool:
            old = self._expected(connection, place, key, expected)
            if old is None:
                return False
            gone = {
                "value": "null",
                "size": 0,
                "deleted": True,
                "version": old.version + 1,
                "updated_at": timestamp(),
                "updated_by": by,
            }
            spot = _Spot(tx, connection, place, key)
            self._replace(spot, old, gone)
            self._note(spot, old, gone, reason)
            return True

        return await tx.run(work)

    async def clear(self, tx: Transaction, place: Place, *, by: str, reason: str) -> None:
        """Delete every record of a place; the history stays."""
        present = (*self._in_place(), ~self._table.c.deleted)
        gone = {
            "value": "null",
            "size": 0,
            "deleted": True,
            "version": self._table.c.version + 1,
            "updated_at": timestamp(),
            "updated_by": by,
        }
        noted = {
            "scope_type": literal(place.scope_type),
            "scope_id": literal(place.scope_id),
            "key": self._table.c.key,
            "version": self._table.c.version + 1,
            "old": self._table.c.value,
            "old_type": self._table.c.value_type,
            "reserved": reserved_keys(self._table.c.key, self._reserved),
            "size": cleared_size(self._table.c.value, reason),
            "changed_by": literal(by),
            "reason": literal(reason),
            "changed_at": literal(gone["updated_at"]),
        }

        def work(connection: Connection) -> None:
            named = self._named(place, "")
            cleared = select(self._table).where(*present).with_for_update()
            old = connection.execute(cleared, named).all()
            those = self._table.c.key.in_([row.key for row in old])
            among = select(*noted.values()).where(*present, those)
            connection.execute(insert(history).from_select(list(noted), among), named)
            at = {f"at_{name}": value for name, value in named.items()}
            changed = update(self._table).where(*self._in_place("at_"), those)
            connection.execute(changed.values(gone), at)
            for row in old:
                self._log(_Spot(tx, connection, place, row.key), row, {"deleted": True})
            note_cleared(connection, place)

        await tx.run(work)

    def _expected(
        self, connection: Connection, place: Place, key: str, expected: int | None
    ) -> Row[Any] | None:
        """The row as it is, unless there is none; raises `Conflict` for another version."""
        old = self._locked(connection, place, key)
        if old is None or old.deleted:
            return None
        if expected is not None and old.version != expected:
            raise version_conflict(old.version)
        return old

    def _locked(self, connection: Connection, place: Place, key: str) -> Row[Any] | None:
        wanted = select(self._table).where(*self._is_one()).with_for_update()
        return connection.execute(wanted, self._named(place, key)).first()

    def _insert(self, spot: _Spot, change: Change) -> Record | None:
        """Store the first version; None where there is a row."""
        connection = spot.connection
        row: dict[str, Any] = {**_values(change), "version": 1, "deleted": False}
        self._check_room(spot, change, row["size"], None)
        names = {**self._named(spot.place, spot.key), **row}
        if connection.dialect.name == "postgresql":
            from sqlalchemy.dialects.postgresql import insert as upsert  # noqa: PLC0415

            new = upsert(self._table).values(names).on_conflict_do_nothing()
            if connection.execute(new.returning(self._table.c.key)).first() is None:
                return None
        else:
            connection.execute(insert(self._table), names)  # on SQLite, who writes is alone
        self._note(spot, None, row, change.reason)
        return _stored(spot.key, change, row)

    def _store(self, spot: _Spot, old: Row[Any], change: Change) -> Record:
        if not old.deleted and old.owner is not None:
            # It stays in the share of whoever made it: changes take nobody's room.
            change = replace(change, owner=old.owner)
        row: dict[str, Any] = {**_values(change), "version": old.version + 1, "deleted": False}
        old_size = None if old.deleted else old.size
        self._check_room(spot, change, row["size"], old_size)
        self._replace(spot, old, row)
        self._note(spot, old, row, change.reason)
        return _stored(spot.key, change, row)

    def _check_room(self, spot: _Spot, change: Change, size: int, old_size: int | None) -> None:
        """Raise where a place would hold too much; what gets no larger always fits."""
        place = spot.place
        reserved = is_reserved(spot.key, self._reserved)
        if old_size is not None and size <= old_size:
            return
        if not (change.limited or reserved):
            return
        alike = reserved_keys(self._table.c.key, self._reserved)
        others = self._table.c.key != bindparam("key")
        check_room(
            spot.connection,
            self._table,
            self._reserved_quota if reserved else self._quota,
            place=place,
            among=[
                *self._in_place(),
                ~self._table.c.deleted,
                others,
                alike if reserved else ~alike,
            ],
            values=self._named(place, spot.key),
            change=change,
            size=size,
            is_new=old_size is None,
            shared=not reserved and place.scope_type != "user",
        )

    def _replace(self, spot: _Spot, old: Row[Any], row: Mapping[str, Any]) -> None:
        """Compare and set, in one statement."""
        same = self._table.c.version == bindparam("old_version")
        changed = update(self._table).where(*self._is_one("at_"), same).values(dict(row))
        at = self._named(spot.place, spot.key)
        named = {f"at_{name}": value for name, value in at.items()}
        if not spot.connection.execute(changed, {**named, "old_version": old.version}).rowcount:
            raise version_conflict(None)

    def _note(
        self, spot: _Spot, old: Row[Any] | None, row: Mapping[str, Any], reason: str | None
    ) -> None:
        """Enter a change into the history, and tell of it."""
        _, connection, place, key = spot
        before = None if old is None or old.deleted else old
        after: Mapping[str, Any] = {} if row["deleted"] else row
        note_change(
            connection,
            {
                "scope_type": place.scope_type,
                "scope_id": place.scope_id,
                "reserved": is_reserved(key, self._reserved),
                "key": key,
                "version": row["version"],
                "old": before and before.value,
                "new": after.get("value"),
                "old_type": before and before.value_type,
                "new_type": after.get("value_type"),
                "changed_by": row["updated_by"],
                "reason": reason,
                "changed_at": row["updated_at"],
            },
        )
        self._log(spot, old, row)
        if self._changed:
            self._changed(connection, key)

    def _log(self, spot: _Spot, old: Row[Any] | None, row: Mapping[str, Any]) -> None:
        """Tell the change log of a row; one that is marked as deleted is no record."""
        before = None if old is None else dict(zip(self._table.c.keys(), old, strict=True))
        after = {**(before or self._named(spot.place, spot.key)), **row}
        images = (None if one is None or one["deleted"] else one for one in (before, after))
        note_record(spot.tx, spot.connection, self._table, *images)

    def _in_place(self, mark: str = "") -> list[ColumnElement[bool]]:
        names = [one for one in ("scope_type", "scope_id") if one in self._table.c]
        return [self._table.c[name] == bindparam(mark + name) for name in names]

    def _is_one(self, mark: str = "") -> list[ColumnElement[bool]]:
        return [*self._in_place(mark), self._table.c.key == bindparam(f"{mark}key")]

    def _named(self, place: Place, key: str) -> dict[str, Any]:
        if "scope_type" not in self._table.c:
            return {"key": key}
        return {"scope_type": place.scope_type, "scope_id": place.scope_id, "key": key}


def _values(change: Change) -> dict[str, Any]:
    value = orjson.dumps(change.value).decode()
    return {
        "value": value,
        "value_type": change.value_type,
        "size": len(value.encode()),
        "updated_at": timestamp(),
        "updated_by": change.by,
        "owner": change.owner,
    }


def _stored(key: str, change: Change, row: Mapping[str, Any]) -> Record:
    return Record(
        key=key,
        value=change.value,
        value_type=change.value_type,
        version=row["version"],
        updated_at=row["updated_at"],
        updated_by=row["updated_by"],
    )


def _record(row: Sequence[Any]) -> Record:
    key, value, value_type, version, updated_at, updated_by = row
    return Record(
        key=key,
        value=orjson.loads(value),
        value_type=value_type,
        version=version,
        updated_at=updated_at,
        updated_by=updated_by,
    )

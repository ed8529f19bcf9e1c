"""The history of settings and preferences, and how much of it is kept.

Keys that only admins change have a history of their own in each place. The last small changes of a
key are kept while the key is there: no other key pushes them out. The rest is counted with every
change, and the oldest of it goes first.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, update

from toolgate.packs.orchestrator.records import (
    KEPT_CHARACTERS,
    KEPT_VERSIONS,
    PINNED_CHARACTERS,
    PINNED_VERSIONS,
    Place,
)
from toolgate.packs.orchestrator.sql.tables import history, history_sizes

CHANGE_CHARACTERS = 200
"""What a change takes beside its values and its reason."""
AT_ONCE = 100
"""Changes that one statement looks at, of those that are to go."""
LEDGER = ("scope_type", "scope_id", "reserved")
"""What is counted together."""
Ledger = Mapping[str, Any]


def note_change(connection: Connection, change: Mapping[str, Any]) -> None:
    """Enter a change, and take out what is too old, or too much together with it."""
    ledger = {name: change[name] for name in LEDGER}
    version, gone = change["version"], change["new"] is None
    size = CHANGE_CHARACTERS + sum(len(change[name] or "") for name in ("old", "new", "reason"))
    pinned = not gone and size <= PINNED_CHARACTERS
    held = _add(connection, ledger, 0 if pinned else size)  # and nobody else counts meanwhile
    connection.execute(insert(history), {**change, "size": size, "pinned": pinned})
    of_key = [*_equal(history, ledger), history.c.key == change["key"]]
    unpinned = [*of_key, history.c.version <= (version if gone else version - PINNED_VERSIONS)]
    now_held = held + _unpin(connection, unpinned)
    if version > KEPT_VERSIONS:
        old = (*of_key, history.c.version <= version - KEPT_VERSIONS)
        now_held -= _removed(connection, *old)
    now_held = _trim(connection, ledger, now_held)
    if now_held != held:
        _set(connection, ledger, now_held)


def note_cleared(connection: Connection, place: Place) -> None:
    """Count the history of a place anew: every key of it was deleted at once."""
    for reserved in (False, True):
        ledger = {
            "scope_type": place.scope_type,
            "scope_id": place.scope_id,
            "reserved": reserved,
        }
        _add(connection, ledger, 0)
        inside = _equal(history, ledger)
        connection.execute(update(history).where(*inside, history.c.pinned).values(pinned=False))
        held = connection.scalar(select(func.coalesce(func.sum(history.c.size), 0)).where(*inside))
        _set(connection, ledger, _trim(connection, ledger, int(held or 0)))


def cleared_size(old: ColumnElement[str], reason: str) -> ColumnElement[int]:
    """The size of a change that deletes a value, where SQL notes it."""
    return func.length(old) + CHANGE_CHARACTERS + len(reason)


def _add(connection: Connection, ledger: Ledger, size: int) -> int:
    """What is held with so much more; who else changes it waits until the transaction ends."""
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects.postgresql import insert as upsert  # noqa: PLC0415
    else:
        from sqlalchemy.dialects.sqlite import insert as upsert  # noqa: PLC0415
    new = upsert(history_sizes).values({**ledger, "characters": size})
    more = {"characters": history_sizes.c.characters + size}
    counted = new.on_conflict_do_update(index_elements=list(LEDGER), set_=more)
    return connection.execute(counted.returning(history_sizes.c.characters)).scalar_one()


def _set(connection: Connection, ledger: Ledger, held: int) -> None:
    counted = update(history_sizes).where(*_equal(history_sizes, ledger))
    connection.execute(counted.values(characters=held))


def _unpin(connection: Connection, which: list[ColumnElement[bool]]) -> int:
    """Let changes go like others from now on; what they hold."""
    changed = update(history).where(*which, history.c.pinned).values(pinned=False)
    return sum(connection.scalars(changed.returning(history.c.size)))


def _removed(connection: Connection, *which: ColumnElement[bool]) -> int:
    """Take changes out of the history; what they held."""
    return sum(connection.scalars(delete(history).where(*which).returning(history.c.size)))


def _trim(connection: Connection, ledger: Ledger, held: int) -> int:
    """Take the oldest changes out while there are too many; what is held then.

    Each change is taken out once, so in the long run a change takes out about one.
    """
    oldest = select(history.c.seq, history.c.size).where(
        *_equal(history, ledger), ~history.c.pinned
    )
    oldest = oldest.order_by(history.c.seq).limit(AT_ONCE)
    while held > KEPT_CHARACTERS:
        leaving: list[int] = []
        for row in connection.execute(oldest):
            if held <= KEPT_CHARACTERS:
                break
            leaving.append(row.seq)
            held -= row.size
        if not leaving:
            return 0
        connection.execute(delete(history).where(history.c.seq.in_(leaving)))
    return held


def _equal(table: Any, values: Mapping[str, Any]) -> list[ColumnElement[bool]]:
    return [table.c[name] == value for name, value in values.items()]

"""Seals over the audit: a chain of hashes that shows every later change.

A seal lists the digest of each of its rows, so a changed, removed or moved row is named
(`verification.py`). Rows that come in batches are stored under a seal. For all others one sealer at
a time, holding a lock in the database, takes the rows that have no seal yet and chains them; these
are not protected for a second or so. The newest seal is noted in a table of its own. Who changes
that too is found out only by a hash that was noted elsewhere (`audit verify` prints it).
"""

import hashlib
import logging
import struct
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any

import anyio
import orjson
from sqlalchemy import (
    Connection,
    Integer,
    bindparam,
    column,
    insert,
    select,
    table,
    text,
    update,
)
from sqlalchemy.exc import IntegrityError

from toolgate.db.engine import Database
from toolgate.db.outages import is_outage
from toolgate.db.prepared import PreparedStatement, PreparedWrite, Row
from toolgate.db.tables import audit, audit_head, audit_seals
from toolgate.gate.audit_records import (
    STARTED,
    Record,
    in_batches,
    let_others_go_first,
    store,
    store_numbered,
    timestamp,
)
from toolgate.throttled_log import ThrottledLog

logger = logging.getLogger(__name__)

SEAL_SECONDS = 1.0
UNFINISHED_SECONDS = 3600
MAX_ROWS = 1000
LOCK = 0x7001_6A7E
ENTRY = struct.Struct(">q32s")
BEGINNING = bytes(32)
ADDED = {"client_id": None, "grant_id": None, "times": 1}
"""What older rows were sealed without, and have in its place."""
FIRST = tuple(name for name in Record._fields if name not in ADDED)
# Compiled once: SQLAlchemy's work on these five, for every batch, would keep the interpreter for a
# millisecond.
LAST_OF_SQLITE = PreparedStatement(
    select(column("seq", Integer))
    .select_from(table("sqlite_sequence"))
    .where(column("name") == audit.name)
)
NOTED = PreparedStatement(select(audit_head.c.number, audit_head.c.hash).limit(1))
LAST = PreparedStatement(
    select(audit_seals.c.number, audit_seals.c.hash).order_by(audit_seals.c.number.desc()).limit(1)
)
ADD = PreparedWrite(insert(audit_seals))
NOTE = PreparedWrite(
    update(audit_head).values(number=bindparam("new_number"), hash=bindparam("new_hash"))
)
LONG_AGO = "long_ago"
# Rows without a seal whose call has ended, or will not end any more.
_ready = (
    audit.c.seal.is_(None),
    audit.c.error_type.is_distinct_from(STARTED) | (audit.c.created_at < bindparam(LONG_AGO)),
)
READY = PreparedStatement(select(audit.c.seq).where(*_ready).limit(1))
UNSEALED = PreparedStatement(
    select(audit.c.seq, *(audit.c[name] for name in Record._fields))
    .where(*_ready)
    .order_by(audit.c.seq)
    .limit(bindparam("most"))
)
MARK = PreparedWrite(
    update(audit).where(audit.c.seq == bindparam("row")).values(seal=bindparam("of"))
)
MARK_ALL = text("UPDATE audit SET seal = :of WHERE seq = ANY(:rows)")
NEXT_OF_POSTGRESQL = text(
    "SELECT nextval(pg_get_serial_sequence('audit', 'seq')) FROM generate_series(1, :many)"
)


class Sealer:
    """Chains new audit rows."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._log = ThrottledLog(logger, level=logging.ERROR)

    async def run(self) -> None:
        """Seal what is new, about every second, until cancelled."""
        while True:
            await anyio.sleep(SEAL_SECONDS)
            await self.try_to_seal()

    async def try_to_seal(self) -> None:
        """Seal what is new; what keeps it from that is logged, and is no reason to stop."""
        try:
            await self.seal()
            self._log.end("audit rows are sealed again")
        except Exception as problem:
            if not is_outage(problem):
                self._log.record("audit rows could not be sealed; trying again", exc_info=problem)

    async def seal(self) -> int:
        """Seal all rows that have none; return how many."""
        total = 0
        while sealed := await self._seal_batch():
            total += sealed
        return total

    async def _seal_batch(self) -> int:
        async with self._database.time_limit(writes=True):
            if await self._database.read(_nothing_new):
                return 0
            return await self._database.write(_seal)


def _nothing_new(connection: Connection) -> bool:
    return READY.first(connection, _long_ago()) is None


def _seal(connection: Connection) -> int:
    if not _try_lock(connection):
        return 0
    rows = UNSEALED.rows(connection, _long_ago() | {"most": MAX_ROWS})
    if rows:
        _store(connection, rows)
    return len(rows)


def _long_ago() -> dict[str, Any]:
    return {LONG_AGO: timestamp(seconds=-UNFINISHED_SECONDS)}


def _try_lock(connection: Connection) -> bool:
    if connection.dialect.name == "sqlite":
        return True  # a write transaction is the lock
    return bool(connection.scalar(text("SELECT pg_try_advisory_xact_lock(:lock)"), {"lock": LOCK}))


def _store(connection: Connection, rows: Sequence[Row]) -> None:
    """Seal rows, which are their numbers and their content."""
    digests = [(row[0], _hash(list(row[1:]))) for some in in_batches(rows) for row in some]
    number = _chain(connection, digests)
    if connection.dialect.name == "sqlite":
        MARK.run(connection, [{"row": row, "of": number} for row, _ in digests])
    else:
        connection.execute(MARK_ALL, {"rows": [row for row, _ in digests], "of": number})


def store_sealed(connection: Connection, records: Sequence[Record]) -> None:
    """Store rows under a seal at once; without one where another sealer is at work, or was."""
    if _try_lock(connection):
        with suppress(IntegrityError), _savepoint(connection):
            return _store_under_seals(connection, records)
    return store(connection, records)


@contextmanager
def _savepoint(connection: Connection) -> Generator[None]:
    """What is done within is undone where it raises; in SQLite by the driver itself."""
    if connection.dialect.name != "sqlite":
        with connection.begin_nested():
            yield
        return
    driver: Any = connection.connection.dbapi_connection
    driver.execute("SAVEPOINT sealed")
    try:
        yield
    except BaseException:
        if driver.in_transaction:  # else the database has undone all of it, as on a full disk
            driver.execute("ROLLBACK TO sealed")
            driver.execute("RELEASE sealed")
        raise
    driver.execute("RELEASE sealed")


def _store_under_seals(connection: Connection, records: Sequence[Record]) -> None:
    coming = iter(records)
    while batch := list(islice(coming, MAX_ROWS)):
        numbers = _next_numbers(connection, len(batch))
        digests = [_hash(list(one)) for some in in_batches(batch) for one in some]
        seal = _chain(connection, list(zip(numbers, digests, strict=True)))
        let_others_go_first()
        store_numbered(connection, batch, numbers, seal)


def _next_numbers(connection: Connection, many: int) -> list[int]:
    """Numbers that no row has or will get otherwise."""
    if connection.dialect.name == "sqlite":  # nobody else writes meanwhile
        newest = LAST_OF_SQLITE.first(connection, {})
        last: int = newest.seq if newest else 0
        return list(range(last + 1, last + 1 + many))
    return list(connection.scalars(NEXT_OF_POSTGRESQL, {"many": many}))


def _chain(connection: Connection, entries: list[tuple[int, bytes]]) -> int:
    """Add a seal with these rows' numbers and digests; its number."""
    number, previous = _newest(connection)
    seal: dict[str, Any] = {
        "number": number + 1,
        "sealed_at": timestamp(),
        "rows": len(entries),
        "entries": b"".join([ENTRY.pack(*one) for some in in_batches(entries) for one in some]),
        "previous": previous,
    }
    seal["hash"] = seal_hash(seal)
    ADD.run(connection, [seal])
    NOTE.run(connection, [{"new_number": seal["number"], "new_hash": seal["hash"]}])
    return seal["number"]


def _newest(connection: Connection) -> tuple[int, bytes]:
    """Number and hash of the newest seal: as noted, so that new ones do not hide a removed one.

    Where more seals are there than noted, as a server of an older version leaves them, the last.
    """
    rows = [one.first(connection, {}) for one in (NOTED, LAST)]
    candidates = [(one.number, bytes(one.hash)) for one in rows if one]
    return max(candidates, key=lambda one: one[0], default=(0, BEGINNING))


def digest(row: Mapping[Any, Any]) -> bytes:
    """The hash of a row's content, wherever it stands."""
    return _hash([row[name] for name in Record._fields])


def digests(row: Mapping[Any, Any]) -> set[bytes]:
    """The hashes by which a row may have been sealed, by this version or an older one.

    The first digests held names and values, the next ones values only. A row that has more than
    was known then cannot have been sealed by either.
    """
    if any(row[name] != value for name, value in ADDED.items()):
        return {digest(row)}
    by_name = {name: row[name] for name in sorted(FIRST)}
    return {digest(row), _hash([row[name] for name in FIRST]), _hash(by_name)}


def _hash(content: list[Any] | dict[str, Any]) -> bytes:
    return hashlib.sha256(orjson.dumps(content, default=_as_text)).digest()


def _as_text(value: Any) -> str:
    """Bytes where a column has text: written by nobody here, and told as a changed row."""
    return f"{type(value).__name__} {bytes(value).hex()}"


def seal_hash(seal: Mapping[Any, Any]) -> bytes:
    """The hash that the next seal carries on."""
    about = [seal["number"], seal["sealed_at"], seal["rows"]]
    head = orjson.dumps(about, default=_as_text)
    return hashlib.sha256(seal["previous"] + head + seal["entries"]).digest()

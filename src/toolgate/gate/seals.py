"""Seals over the audit: a chain of hashes that shows every later change.

A seal lists the digest of each of its rows, so a changed, removed or moved row is named. Rows that
come in batches are stored under a seal. For all others one sealer at a time, holding a lock in the
database, takes the rows that have no seal yet and chains them; these are not protected for a
second or so. Neither is the newest seal itself, unless its hash was noted elsewhere (`audit verify`
prints it).
"""

import hashlib
import logging
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import anyio
import orjson
from sqlalchemy import ColumnElement, Connection, RowMapping, insert, select, text, update

from toolgate.db.engine import Database
from toolgate.db.outages import is_outage
from toolgate.db.tables import audit, audit_seals
from toolgate.gate.records import STARTED, Record, gently, store, store_numbered, timestamp

logger = logging.getLogger(__name__)

SEAL_SECONDS = 1.0
UNFINISHED_SECONDS = 3600
MOST_ROWS = 1000
LOCK = 0x7001_6A7E
ENTRY = struct.Struct(">q32s")
BEGINNING = bytes(32)
OLDER = tuple(sorted(Record._fields))
"""The order of names in digests that were made before names were left out of them."""
LAST_OF_SQLITE = text("SELECT seq FROM sqlite_sequence WHERE name = 'audit'")
NEXT_OF_POSTGRESQL = text(
    "SELECT nextval(pg_get_serial_sequence('audit', 'seq')) FROM generate_series(1, :many)"
)


class Sealer:
    """Chains new audit rows."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def run(self) -> None:
        """Seal what is new, about every second, until cancelled."""
        while True:
            await anyio.sleep(SEAL_SECONDS)
            try:
                await self.seal()
            except Exception as problem:
                if not is_outage(problem):
                    logger.exception("audit rows could not be sealed; trying again")

    async def seal(self) -> int:
        """Seal all rows that have none; return how many."""
        total = 0
        while sealed := await self._seal_batch():
            total += sealed
        return total

    async def _seal_batch(self) -> int:
        async with self._database.answering(writes=True):
            if await self._database.read(_nothing_new):
                return 0
            return await self._database.write(_seal)


def _nothing_new(connection: Connection) -> bool:
    first = select(audit.c.seq).where(*_ready()).limit(1)
    return connection.execute(first).first() is None


def _seal(connection: Connection) -> int:
    if not _locked(connection):
        return 0
    unsealed = select(audit).where(*_ready()).order_by(audit.c.seq).limit(MOST_ROWS)
    rows = connection.execute(unsealed).mappings().all()
    if rows:
        _store(connection, [dict(row) for row in rows])
    return len(rows)


def _locked(connection: Connection) -> bool:
    if connection.dialect.name == "sqlite":
        return True  # a write transaction is the lock
    return bool(connection.scalar(text("SELECT pg_try_advisory_xact_lock(:lock)"), {"lock": LOCK}))


def _store(connection: Connection, rows: list[dict[str, Any]]) -> None:
    number = _chain(connection, [(row["seq"], digest(row)) for row in rows])
    sealed = [row["seq"] for row in rows]
    connection.execute(update(audit).where(audit.c.seq.in_(sealed)).values(seal=number))


def store_sealed(connection: Connection, records: Sequence[Record]) -> None:
    """Store rows under a seal at once; without one where another sealer is at work."""
    if not _locked(connection):
        return store(connection, records)
    coming = iter(records)
    while batch := list(islice(coming, MOST_ROWS)):
        numbers = _next_numbers(connection, len(batch))
        digests = [_hash(list(one)) for some in gently(batch) for one in some]
        seal = _chain(connection, list(zip(numbers, digests, strict=True)))
        store_numbered(connection, batch, numbers, seal)
    return None


def _next_numbers(connection: Connection, many: int) -> list[int]:
    """Numbers that no row has or will get otherwise."""
    if connection.dialect.name == "sqlite":  # nobody else writes meanwhile
        last: int = connection.execute(LAST_OF_SQLITE).scalar() or 0
        return list(range(last + 1, last + 1 + many))
    return list(connection.scalars(NEXT_OF_POSTGRESQL, {"many": many}))


def _chain(connection: Connection, entries: list[tuple[int, bytes]]) -> int:
    """Add a seal with these rows' numbers and digests; its number."""
    newest = select(audit_seals).order_by(audit_seals.c.number.desc()).limit(1)
    last = connection.execute(newest).mappings().first()
    seal: dict[str, Any] = {
        "number": last["number"] + 1 if last else 1,
        "sealed_at": timestamp(),
        "rows": len(entries),
        "entries": b"".join(ENTRY.pack(*one) for one in entries),
        "previous": last["hash"] if last else BEGINNING,
    }
    connection.execute(insert(audit_seals), [seal | {"hash": seal_hash(seal)}])
    return seal["number"]


def _ready() -> tuple[ColumnElement[bool], ...]:
    """Rows without a seal whose call has ended, or will not end any more."""
    long_ago = timestamp(seconds=-UNFINISHED_SECONDS)
    ended = audit.c.error_type.is_distinct_from(STARTED) | (audit.c.created_at < long_ago)
    return (audit.c.seal.is_(None), ended)


def digest(row: Mapping[Any, Any]) -> bytes:
    """The hash of a row's content, wherever it stands."""
    return _hash([row[name] for name in Record._fields])


def _older_digest(row: Mapping[Any, Any]) -> bytes:
    return _hash({name: row[name] for name in OLDER})


def _hash(content: list[Any] | dict[str, Any]) -> bytes:
    return hashlib.sha256(orjson.dumps(content)).digest()


def seal_hash(seal: Mapping[Any, Any]) -> bytes:
    """The hash that the next seal carries on."""
    head = orjson.dumps([seal["number"], seal["sealed_at"], seal["rows"]])
    return hashlib.sha256(seal["previous"] + head + seal["entries"]).digest()


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it was sealed."""

    what: str
    seq: int
    """The audit row, or the seal where `what` speaks of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What `audit verify` found."""

    rows: int
    seals: int
    unsealed: int
    head: str
    findings: list[Finding]


async def verify(database: Database) -> Verdict:
    """Check every seal and every sealed row; name each that does not fit."""
    return await database.read(_verify)


def _verify(connection: Connection) -> Verdict:
    findings: list[Finding] = []
    rows = seals = 0
    previous, expected = BEGINNING, 1
    for seal in _seals(connection):
        findings += [Finding("seal removed", n) for n in range(expected, seal["number"])]
        if seal["previous"] != previous or seal["hash"] != seal_hash(seal):
            findings.append(Finding("seal changed", seal["number"]))
        findings += _check_rows(connection, seal)
        previous, expected = seal["hash"], seal["number"] + 1
        rows, seals = rows + seal["rows"], seals + 1
    loose = select(audit.c.seq, audit.c.seal).where(
        audit.c.seal.is_(None) | (audit.c.seal >= expected)
    )
    outside = connection.execute(loose).all()
    lost = sorted({row.seal for row in outside if row.seal is not None})
    return Verdict(
        rows=rows,
        seals=seals,
        unsealed=sum(row.seal is None for row in outside),
        head=previous.hex(),
        findings=findings + [Finding("seal removed", number) for number in lost],
    )


def _seals(connection: Connection) -> Iterator[RowMapping]:
    after = 0
    following = select(audit_seals).order_by(audit_seals.c.number).limit(1)
    while (
        seal := connection.execute(following.where(audit_seals.c.number > after)).mappings().first()
    ):
        yield seal
        after = seal["number"]


def _check_rows(connection: Connection, seal: RowMapping) -> list[Finding]:
    whole = len(seal["entries"]) // ENTRY.size * ENTRY.size
    sealed: dict[int, bytes] = dict(ENTRY.iter_unpack(seal["entries"][:whole]))
    mine = select(audit).where(audit.c.seq.in_(sealed) | (audit.c.seal == seal["number"]))
    rows = {row["seq"]: row for row in connection.execute(mine).mappings()}
    known = set(sealed.values())
    findings: list[Finding] = []
    for seq, right in sealed.items():
        row = rows.get(seq)
        if row is None:
            findings.append(Finding("row removed", seq))
        elif right not in (now := {digest(row), _older_digest(row)}):
            findings.append(Finding("row reordered" if now & known else "row changed", seq))
        elif row["seal"] != seal["number"]:
            findings.append(Finding("row taken out of its seal", seq))
    findings += [Finding("row added", seq) for seq in rows if seq not in sealed]
    return sorted(findings, key=lambda one: one.seq)

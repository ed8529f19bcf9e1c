"""Which rows are sealed when, and by which digests; those of older versions are still good."""

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson
import pytest
from sqlalchemy import create_engine, select, text
from tests.databases import STARTS_A_SERVER
from tests.gate.test_seals import a_record, add_rows, database, flush_rows, found, tamper

from toolgate.db.engine import Database
from toolgate.db.tables import audit
from toolgate.db.upgrades import upgrade
from toolgate.gate import seals
from toolgate.gate.audit import AuditLog
from toolgate.gate.audit_records import STARTED, Record, timestamp
from toolgate.gate.seals import Sealer
from toolgate.gate.verification import Finding, verify

pytestmark = pytest.mark.anyio
__all__ = ["database"]

# Older digests --------------------------------------------------------------------------------


async def test_rows_that_were_sealed_with_their_names_are_intact_and_watched(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Digests were once made of names and values."""
    await add_rows(database, 1, 2)
    with monkeypatch.context() as once:
        once.setattr(seals, "digest", named_digest)
        assert await Sealer(database).seal() == 2
    await flush_rows(database, 3)
    assert await found(database) == []
    await tamper(database, "UPDATE audit SET tool_name = 'x' WHERE seq = 2")
    assert await found(database) == [("row changed", 2)]


def named_digest(row: Mapping[str, Any]) -> bytes:
    names = sorted(name for name in Record._fields if name not in seals.ADDED)
    return hashlib.sha256(orjson.dumps({name: row[name] for name in names})).digest()


async def test_rows_that_were_sealed_without_their_client_are_intact_and_watched(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Digests were once made without the client and without how many calls a row stands for."""
    await add_rows(database, 1, 2, 3)
    with monkeypatch.context() as once:
        once.setattr(seals, "digest", digest_without_client)
        assert await Sealer(database).seal() == 3
    assert await found(database) == []
    await tamper(
        database,
        "UPDATE audit SET client_id = 'x' WHERE seq = 1",
        "UPDATE audit SET times = 2 WHERE seq = 3",
    )
    assert await found(database) == [("row changed", 1), ("row changed", 3)]


def digest_without_client(row: Mapping[str, Any]) -> bytes:
    values = [row[name] for name in Record._fields if name not in seals.ADDED]
    return hashlib.sha256(orjson.dumps(values)).digest()


# Writes that have not ended -------------------------------------------------------------------


async def test_a_row_is_sealed_when_its_write_has_ended(database: Database) -> None:
    log = AuditLog(database)
    begun = a_record(1, status="error", error_type=STARTED)
    await log.store_now(begun)
    assert await Sealer(database).seal() == 0
    await log.complete(begun, a_record(1))
    assert await Sealer(database).seal() == 1
    assert await found(database) == []


async def test_a_row_whose_write_will_not_end_any_more_is_sealed_as_it_is(
    database: Database,
) -> None:
    long_ago = timestamp(seconds=-2 * 3600)
    left = a_record(1, status="error", error_type=STARTED, created_at=long_ago)
    await AuditLog(database).store_now(left)
    assert await Sealer(database).seal() == 1
    assert (await verify(database)).findings == list[Finding]()


# Stored under a seal --------------------------------------------------------------------------


async def test_a_batch_is_stored_under_a_seal(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seals, "MAX_ROWS", 10)
    await add_rows(database, 1)
    await flush_rows(database, *range(2, 27))
    verdict = await verify(database)
    assert (verdict.rows, verdict.seals, verdict.unsealed, verdict.findings) == (25, 3, 1, [])
    assert await Sealer(database).seal() == 1
    await flush_rows(database, 30)
    await add_rows(database, 31)
    every = select(audit.c.seq, audit.c.request_id).order_by(audit.c.seq)
    rows = await database.read(lambda c: [tuple(row) for row in c.execute(every)])
    assert [seq for seq, _ in rows] == list(range(1, 29))
    assert [id for _, id in rows] == [f"r{n}" for n in (*range(1, 27), 30, 31)]
    assert await found(database) == []


async def test_a_change_to_a_row_of_a_batch_is_found(database: Database) -> None:
    await flush_rows(database, 1, 2, 3)
    await tamper(database, "UPDATE audit SET rule = 'other' WHERE seq = 2")
    assert await found(database) == [("row changed", 2)]


@STARTS_A_SERVER
async def test_a_batch_does_not_wait_for_another_sealer(postgres_database: str) -> None:
    """It is stored without a seal, which it gets later."""
    database = Database(postgres_database)
    await upgrade(database)
    engine = create_engine(database.url)
    with engine.begin() as other:  # the lock ends with it, before the end is told
        other.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": seals.LOCK})
        await flush_rows(database, 1, 2)
        assert (await verify(database)).unsealed == 2
    engine.dispose()
    assert await Sealer(database).seal() == 2
    assert await found(database) == []
    await database.close()

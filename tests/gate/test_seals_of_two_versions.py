"""A server of an older version seals beside a newer one, and does not note the newest seal."""

import logging
from typing import Any

import pytest
from sqlalchemy import Connection, select
from sqlalchemy.exc import IntegrityError
from tests.gate.test_seals import add_rows, database, flush_rows, found

from toolgate.db.engine import Database
from toolgate.db.tables import audit_head, audit_seals
from toolgate.gate import seals
from toolgate.gate.seals import Sealer
from toolgate.gate.verification import verify

pytestmark = pytest.mark.anyio
__all__ = ["database"]


async def seal_like_an_older_version(database: Database, *numbers: int) -> None:
    """Seal rows and leave the note of the newest seal as it was."""
    noted = await database.read(lambda c: c.execute(select(audit_head)).mappings().one())
    await add_rows(database, *numbers)
    assert await Sealer(database).seal() == len(numbers)
    await database.write(lambda c: c.execute(audit_head.update().values(**noted)))


async def test_the_chain_goes_on_from_the_newest_seal_when_the_note_is_behind(
    database: Database,
) -> None:
    await flush_rows(database, 1)
    await seal_like_an_older_version(database, 2)
    await seal_like_an_older_version(database, 3)
    await flush_rows(database, 4)
    await add_rows(database, 5)
    assert await Sealer(database).seal() == 1
    verdict = await verify(database)
    assert (verdict.rows, verdict.seals, verdict.unsealed, verdict.findings) == (5, 5, 0, [])


async def test_rows_are_stored_when_their_seal_cannot_be(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await flush_rows(database, 1)
    with monkeypatch.context() as taken:
        taken.setattr(seals, "_newest", lambda _connection: (0, seals.BEGINNING))
        await flush_rows(database, 2, 3)
    count = select(audit_seals.c.number)
    assert len(await database.read(lambda c: c.execute(count).all())) == 1
    assert (await verify(database)).unsealed == 2
    assert await Sealer(database).seal() == 2
    assert await found(database) == []


async def test_rows_that_cannot_be_sealed_are_told_once_and_when_they_can_again(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sealer = Sealer(database)
    await add_rows(database, 1)

    def conflict(_connection: Connection, _rows: Any) -> None:
        raise IntegrityError("INSERT", None, Exception("taken"))

    with monkeypatch.context() as taken:
        taken.setattr(seals, "_store", conflict)
        for _ in range(3):
            await sealer.try_to_seal()
    await sealer.try_to_seal()
    told = [(one.levelno, one.getMessage().partition(" (")[0]) for one in caplog.records]
    assert told == [
        (logging.ERROR, "audit rows could not be sealed; trying again"),
        (logging.ERROR, "audit rows are sealed again"),
    ]
    assert await found(database) == []

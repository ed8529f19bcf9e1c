"""The audit of an earlier version is still intact after the upgrade, and goes on from there."""

import hashlib
from typing import Any

import orjson
import pytest
from alembic import command
from sqlalchemy import Connection, text
from tests.gate.test_seals import a_record, add_rows, found, tamper

from toolgate.db import upgrades
from toolgate.db.engine import Database
from toolgate.db.schemas import GATE
from toolgate.db.upgrades import upgrade
from toolgate.gate.seals import ADDED, BEGINNING, ENTRY, Sealer, seal_hash
from toolgate.gate.verification import verify

pytestmark = pytest.mark.anyio

BEFORE = "0007"


def at_earlier_schema(connection: Connection) -> None:
    command.upgrade(upgrades._config(connection, GATE), BEFORE)


def sealed_row(connection: Connection) -> None:
    """A row and its seal as the earlier version left them."""
    row = {name: one for name, one in a_record(1)._asdict().items() if name not in ADDED}
    digest = hashlib.sha256(orjson.dumps(list(row.values()))).digest()
    seal: dict[str, Any] = {
        "number": 1,
        "sealed_at": row["created_at"],
        "rows": 1,
        "entries": ENTRY.pack(1, digest),
        "previous": BEGINNING,
    }
    insert(connection, "audit_seals", seal | {"hash": seal_hash(seal)})
    insert(connection, "audit", row | {"seal": 1})


def insert(connection: Connection, table: str, row: dict[str, Any]) -> None:
    names, values = ", ".join(row), ", ".join(f":{name}" for name in row)
    connection.execute(text(f"INSERT INTO {table} ({names}) VALUES ({values})"), row)


@pytest.mark.parametrize("used", [True, False])
async def test_an_earlier_audit_stays_intact_and_watched(database_url: str, used: bool) -> None:
    database = Database(database_url)
    await database.write(at_earlier_schema)
    if used:
        await database.write(sealed_row)
    await upgrade(database)
    assert await found(database) == []
    noted = bytes.fromhex((await verify(database)).head)
    await add_rows(database, 2)
    assert await Sealer(database).seal() == 1
    verdict = await verify(database, noted)
    assert (verdict.findings, verdict.noted_seal, verdict.seals) == ([], int(used), 1 + used)
    if used:
        await tamper(database, "UPDATE audit SET grant_id = 'other' WHERE seq = 1")
        assert await found(database) == [("row changed", 1)]
    await database.close()

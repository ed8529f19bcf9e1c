"""A look-up by key finds what SQLAlchemy finds, in the same words and with the same errors."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import bindparam, insert, select, text
from sqlalchemy.exc import DBAPIError

from toolgate.db.engine import Database
from toolgate.db.prepared import PreparedStatement
from toolgate.db.tables import documents, keys
from toolgate.db.upgrades import upgrade

pytestmark = pytest.mark.anyio

KEY = PreparedStatement(select(keys).where(keys.c.id == bindparam("id")))
DOCUMENT = PreparedStatement(
    select(documents.c.fields, documents.c.id.label("name")).where(
        documents.c.id == bindparam("id"), documents.c.collection == bindparam("collection")
    )
)
FIELDS: dict[str, Any] = {"b": [1, None, {"é": 2.5}], "a": "x", "big": 2**53}
ROW = {"id": "k1", "hash": bytes(range(32)), "role": "user", "created_at": "2026-01-01T00:00:00Z"}


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    opened = Database(database_url)
    await upgrade(opened)
    await opened.write(lambda c: c.execute(insert(keys), [ROW]))
    stored = {"namespace": "tests", "collection": "users", "id": "u1", "fields": FIELDS}
    await opened.write(lambda c: c.execute(insert(documents), [stored]))
    yield opened
    await opened.close()


async def test_values_are_as_sqlalchemy_reads_them(database: Database) -> None:
    found = await database.look_up(KEY, {"id": "k1"})
    plain = await database.read(lambda c: c.execute(KEY.statement, {"id": "k1"}).one())
    assert tuple(found) == tuple(plain)
    assert found.hash == ROW["hash"]
    assert (found.role, found.user_id) == ("user", None)


async def test_json_is_read(database: Database) -> None:
    found = await database.look_up(DOCUMENT, {"collection": "users", "id": "u1"})
    assert (found.name, found.fields) == ("u1", FIELDS)
    assert list(found.fields) == list(FIELDS)


async def test_what_is_not_there_is_none(database: Database) -> None:
    assert await database.look_up(KEY, {"id": "k2"}) is None
    assert await database.look_up(DOCUMENT, {"collection": "u1", "id": "users"}) is None


async def test_what_was_just_committed_is_seen(database: Database) -> None:
    assert await database.look_up(KEY, {"id": "k2"}) is None
    await database.write(lambda c: c.execute(insert(keys), [ROW | {"id": "k2"}]))
    assert (await database.look_up(KEY, {"id": "k2"})).id == "k2"


async def test_an_error_is_told_without_the_values(database: Database) -> None:
    await database.write(lambda c: c.execute(text("ALTER TABLE keys RENAME TO away")))
    with pytest.raises(DBAPIError) as raised:
        await database.look_up(KEY, {"id": "a-secret"})
    if database.dialect == "sqlite":
        assert "a-secret" not in str(raised.value)
    await database.write(lambda c: c.execute(text("ALTER TABLE away RENAME TO keys")))
    assert (await database.look_up(KEY, {"id": "k1"})).id == "k1"

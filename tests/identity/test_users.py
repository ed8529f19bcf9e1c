"""A person's record: made once, however many sign-ins come at once."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import anyio
import pytest

from toolgate.adapters.sql.documents import SqlDocuments
from toolgate.db.engine import Database
from toolgate.db.upgrades import upgrade
from toolgate.identity.providers import Profile, SignInFailed
from toolgate.identity.users import Users, first_record
from toolgate.ports.documents import Query, StoreUnavailable
from toolgate.ports.rules import broken_fields_rule
from toolgate.ports.users import NAMESPACE, new_record

pytestmark = pytest.mark.anyio

JANE = Profile("jane", "jane@example.com", "Jane Doe")


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    opened = Database(database_url)
    await upgrade(opened)
    yield opened
    await opened.close()


async def test_first_sign_ins_at_once_make_one_record(database: Database) -> None:
    documents = SqlDocuments(database, NAMESPACE)
    users = Users(documents, database)
    async with anyio.create_task_group() as sign_ins:
        for _ in range(10):
            sign_ins.start_soon(users.ensure_record, JANE)
    found = await documents.query(Query("users"))
    assert [one.id for one in found] == ["jane"]
    assert await users.is_admin("jane") is False
    assert await users.is_admin("nobody") is False
    assert await users.is_admin("a/b") is False


def test_a_record_begins_with_plain_defaults() -> None:
    now = datetime(2026, 11, 15, 12, 30, 15, 250_000, UTC)
    record = new_record("jane", "jane@example.com", "Jane Doe", now)
    moment = {"timestamp": "2026-11-15T12:30:15.250Z", "timestampUNIX": 1794745815}
    assert record["metadata"] == {"created": moment, "updated": moment}
    assert record["subscription"]["product"] == {"id": "basic", "name": "Basic"}
    assert record["subscription"]["status"] == "active"
    assert record["subscription"]["expires"]["timestampUNIX"] == 0
    assert record["personal"]["name"] == {"first": "Jane", "last": "Doe"}
    assert set(first_record(JANE)["api"]) == {"clientId"}, "no key is kept in plain text"
    assert first_record(JANE)["auth"] == record["auth"]
    assert broken_fields_rule(record) is None


async def test_an_id_that_cannot_be_used_signs_nobody_in(database: Database) -> None:
    users = Users(SqlDocuments(database, NAMESPACE), database)
    for uid in ("", "a/b", ".."):
        with pytest.raises(SignInFailed):
            await users.ensure_record(Profile(uid))


async def test_a_store_that_does_not_answer_makes_no_admin(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent(*_: object) -> None:
        raise StoreUnavailable("no")

    documents = SqlDocuments(database, NAMESPACE)
    monkeypatch.setattr(documents, "get", silent)
    assert not await Users(documents, database).is_admin("root")

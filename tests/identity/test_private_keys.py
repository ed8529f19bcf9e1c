"""A user's private key: found by one statement, shown to nobody, ended by who writes the field."""

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import text
from tests.statements import noted_statements

from toolgate.adapters.shared_documents import SharedDocuments
from toolgate.adapters.sql.documents import SqlDocuments
from toolgate.adapters.user_documents import UserDocuments
from toolgate.db.engine import Database
from toolgate.db.upgrades import upgrade
from toolgate.gate.errors import Forbidden, InvalidArguments
from toolgate.gate.principal import Kind
from toolgate.identity import credentials as module
from toolgate.identity.credentials import Credentials
from toolgate.identity.keys import Keys
from toolgate.identity.users import HasPrivateKey, NoSuchUser, Users
from toolgate.ports.documents import (
    Create,
    Delete,
    DocumentTransaction,
    Filter,
    Merge,
    Operator,
    Order,
    Query,
    Set,
    StoreUnavailable,
    Update,
    Write,
)
from toolgate.ports.private_keys import new_private_key, stored_form
from toolgate.ports.transforms import ArrayUnion, DeleteField
from toolgate.ports.users import NAMESPACE

pytestmark = pytest.mark.anyio

KEY = "pk_0123456789abcdef0123456789abcdef"
BEM = "8Uwn7yE2mVqkUrPvNwh1Xz3kqJtYcRb5DfGhAs6Lo9Qe"
"""As applications made them before."""


@dataclass
class Door:
    database: Database
    raw: SqlDocuments
    users: UserDocuments
    people: Users
    credentials: Credentials

    async def write(self, *writes: Write, raw: bool = False) -> None:
        async with self.database.transaction() as tx:
            await (self.raw if raw else self.users).write(tx, *writes)

    async def holder(self, credential: str) -> str | None:
        self.credentials.forget()
        found = await self.credentials.holder(credential)
        return found.user_id if found else None


@pytest.fixture
async def door(database_url: str) -> AsyncIterator[Door]:
    database = Database(database_url)
    await upgrade(database)
    raw = SqlDocuments(database, NAMESPACE)
    people = Users(raw, database)
    known = Credentials(database, Keys(database, "an-admin-key"), people)
    yield Door(database, raw, UserDocuments(raw), people, known)
    await database.close()


def test_a_key_that_is_made_has_its_form() -> None:
    made = {new_private_key() for _ in range(100)}
    assert len(made) == 100
    assert all(len(one) == 35 and one.startswith("pk_") for one in made)
    assert all(set(one[3:]) <= set("0123456789abcdef") for one in made)


@pytest.mark.parametrize("key", [KEY, BEM])
@pytest.mark.parametrize("raw", [True, False])
async def test_it_is_a_credential_of_its_user(door: Door, key: str, raw: bool) -> None:
    """Whether toolgate hashed it, or the application wrote it there as it is."""
    await door.write(Create("users", "other", {"api": {"privateKey": new_private_key()}}))
    await door.write(Create("users", "anna", {"api": {"privateKey": key}}), raw=raw)
    found = await door.credentials.holder(key)
    assert found is not None
    assert (found.kind, found.user_id, found.id) == (Kind.USER, "anna", "user:anna")
    assert {one.value for one in found.roles} == {"user"}
    assert found.client_id == "private-key"
    for wrong in (key[:-1], key + "0", key.swapcase(), stored_form(key), f"sha256:{key}", ""):
        assert await door.holder(wrong) is None


@pytest.mark.parametrize("admin", [True, "true", 1, None])
async def test_only_a_plain_true_promotes_its_user(door: Door, admin: Any) -> None:
    await door.write(
        Create("users", "root", {"roles": {"admin": admin}, "api": {"privateKey": KEY}})
    )
    found = await door.credentials.holder(KEY)
    assert found is not None
    assert {one.value for one in found.roles} == ({"user", "admin"} if admin is True else {"user"})


async def test_it_is_found_by_one_statement_that_reads_one_record(door: Door) -> None:
    for number in range(300):
        await door.write(Create("users", f"u{number}", {"api": {"privateKey": new_private_key()}}))
    await door.write(Create("users", "anna", {"api": {"privateKey": KEY}}))
    await door.holder("x" * 40)  # opens a connection
    with noted_statements() as statements:
        assert await door.holder(KEY) == "anna"
    assert len(statements) == 1, statements
    assert "document_index" in statements[0]
    with noted_statements() as statements:
        for wrong in ("short", "with a space" * 4, "tg_0000000000000000_" + "0" * 64, "ü" * 40):
            assert await door.holder(wrong) is None
    assert len(statements) == 1, "of our own keys alone there is something to look for"
    assert "FROM keys" in statements[0]


async def test_two_users_with_one_key_are_nobody(door: Door) -> None:
    await door.write(Create("users", "anna", {"api": {"privateKey": KEY}}))
    await door.write(Create("users", "bert", {"api": {"privateKey": KEY}}))
    assert await door.holder(KEY) is None


async def test_a_key_in_another_packs_users_is_none(door: Door) -> None:
    other = SqlDocuments(door.database, "appdata")
    async with door.database.transaction() as tx:
        await other.write(tx, Create("users", "anna", {"api": {"privateKey": KEY}}))
        await door.raw.write(tx, Create("admins", "anna", {"api": {"privateKey": KEY}}))
        await door.raw.write(tx, Create("users", "bert", {"privateKey": KEY, "api": [KEY]}))
        await door.raw.write(tx, Create("users", "carl", {"api": {"privateKey": [KEY]}}))
    assert await door.holder(KEY) is None


@pytest.mark.parametrize(
    "end",
    [
        Merge("users", "anna", {"api": {"privateKey": None}}),
        Merge("users", "anna", {"api": {"privateKey": BEM}}),
        Update("users", "anna", {"api.privateKey": DeleteField()}),
        Update("users", "anna", {"api": {"clientId": "c"}}),
        Set("users", "anna", {"name": "Anna"}),
        Delete("users", "anna"),
    ],
)
async def test_writing_the_field_ends_it_within_a_second(
    door: Door, end: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    await door.write(Create("users", "anna", {"api": {"privateKey": KEY}}))
    assert await door.credentials.holder(KEY) is not None
    await door.write(end)
    assert await door.credentials.holder(KEY) is not None, "remembered for a moment"
    later = time.monotonic() + module.REMEMBERED_SECONDS
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert await door.credentials.holder(KEY) is None


@pytest.mark.parametrize(
    "write",
    [
        Create("users", "anna", {"api": {"privateKey": KEY, "clientId": "c"}}),
        Set("users", "anna", {"api": {"privateKey": KEY, "clientId": "c"}}),
        Merge("users", "anna", {"api": {"privateKey": KEY, "clientId": "c"}}),
    ],
)
async def test_it_is_nowhere_in_the_database_and_in_no_answer(door: Door, write: Write) -> None:
    await door.write(write)
    async with door.database.transaction() as tx:

        async def work(documents: DocumentTransaction) -> list[Any]:
            documents.write(Update("users", "anna", {"api.privateKey": KEY}))
            found = await documents.query(Query("users"))
            many = await documents.get_many([("users", "anna"), ("users", "x")])
            return [*many, await documents.get("users", "anna"), *(one.fields for one in found)]

        seen = await door.users.transact(tx, work)
    seen += [await door.users.get("users", "anna")]
    seen += await door.users.get_many([("users", "anna"), ("users", "x")])
    seen += [one.fields for one in await door.users.query(Query("users"))]
    assert [one for one in seen if one] == [{"api": {"clientId": "c"}}] * 6
    kept = await door.raw.get("users", "anna")
    assert kept == {"api": {"clientId": "c", "privateKey": stored_form(KEY)}}
    for table in ("documents", "changes"):
        select = text(f"SELECT * FROM {table}")
        rows = await door.database.read(lambda c, one=select: c.execute(one).all())
        assert rows
        assert KEY not in repr(rows)


@pytest.mark.parametrize("field", ["api", "api.privateKey", "api.privateKey.x"])
async def test_nothing_can_be_searched_or_ordered_by_it(door: Door, field: str) -> None:
    await door.write(Create("users", "anna", {"api": {"privateKey": KEY}}), raw=True)
    for query in (
        Query("users", [Filter(field, Operator.EQUAL, KEY)]),
        Query("users", [Filter(field, Operator.GREATER, "pk_0")]),
        Query("users", [Filter("a", Operator.EQUAL, 1), Filter(field, Operator.IN, [KEY])]),
        Query("users", order=[Order(field)]),
    ):
        with pytest.raises(Forbidden, match="is a secret"):
            await door.users.query(query)
    found = await door.users.query(Query("users", [Filter("api.clientId", Operator.EQUAL, "c")]))
    assert found == []
    await door.users.query(Query("orders", [Filter(field, Operator.EQUAL, KEY)]))


@pytest.mark.parametrize("value", ["pk_short", "a b" * 20, 5, True, [KEY], {"a": KEY}, "x" * 129])
async def test_what_is_no_key_is_refused(door: Door, value: Any) -> None:
    for write in (
        Merge("users", "anna", {"api": {"privateKey": value}}),
        Update("users", "anna", {"api.privateKey": value}),
        Update("users", "anna", {"api.privateKey.x": KEY}),
        Update("users", "anna", {"api.privateKey": ArrayUnion([KEY])}),
    ):
        with pytest.raises(InvalidArguments, match=r"api\.privateKey must be 32 to 128"):
            await door.write(write)
    assert await door.users.get("users", "anna") is None


async def test_another_pack_in_the_same_place_neither_sees_nor_gives_one(door: Door) -> None:
    shared = SharedDocuments(door.users)
    await door.write(Create("users", "anna", {"api": {"privateKey": KEY}}), raw=True)
    assert await shared.get("users", "anna") == {"api": {}}
    with pytest.raises(Forbidden):
        await shared.query(Query("users", [Filter("api.privateKey", Operator.EQUAL, KEY)]))
    for write in (
        Create("users", "eve", {"api": {"privateKey": BEM}}),
        Update("users", "anna", {"api.privateKey": BEM}),
        Update("users", "anna", {"api": {"privateKey": BEM}}),
    ):
        with pytest.raises(Forbidden, match="credential of that user"):
            async with door.database.transaction() as tx:
                await shared.write(tx, write)
    assert await door.holder(KEY) == "anna"


async def test_a_store_that_does_not_answer_lets_nobody_in(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent(*_: object) -> None:
        raise StoreUnavailable("no")

    monkeypatch.setattr(door.raw, "query", silent)
    with pytest.raises(StoreUnavailable):
        await door.holder(KEY)


async def test_an_operator_makes_replaces_and_ends_one(door: Door) -> None:
    noted: list[int] = []
    await door.write(Create("users", "anna", {"api": "odd", "name": "Anna"}))
    with pytest.raises(NoSuchUser):
        await door.people.give_private_key("nobody", noted.append, replacing=True)
    with pytest.raises(NoSuchUser):
        await door.people.end_private_key("anna", noted.append)
    first = await door.people.give_private_key("anna", noted.append, replacing=False)
    assert await door.holder(first) == "anna"
    with pytest.raises(HasPrivateKey):
        await door.people.give_private_key("anna", noted.append, replacing=False)
    second = await door.people.give_private_key("anna", noted.append, replacing=True)
    assert [await door.holder(first), await door.holder(second)] == [None, "anna"]
    await door.people.end_private_key("anna", noted.append)
    assert await door.holder(second) is None
    assert len(noted) == 3
    assert (await door.raw.get("users", "anna") or {})["name"] == "Anna"

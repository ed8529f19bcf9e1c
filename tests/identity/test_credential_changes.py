"""Credentials are remembered while nothing happens to them; what happens is known within a second.

The clock is the tests' own, and a look is taken when they say so.
"""

import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.exc import OperationalError
from tests.statements import noted_statements

from toolgate.adapters.sql.documents import SqlDocuments
from toolgate.db.credential_changes import note_all_changed
from toolgate.db.engine import Database
from toolgate.db.oauth_tables import grants, tokens
from toolgate.db.tables import credential_changes as table
from toolgate.db.tables import keys as key_table
from toolgate.db.upgrades import upgrade
from toolgate.gate.audit_records import timestamp
from toolgate.gate.principal import Role
from toolgate.identity import credential_changes, credentials
from toolgate.identity.credentials import LONGEST_SECONDS, Credentials
from toolgate.identity.keys import Keys, NewKey
from toolgate.identity.oauth import opaque
from toolgate.identity.users import Users
from toolgate.ports.documents import Delete, Set
from toolgate.ports.users import NAMESPACE, USERS

pytestmark = pytest.mark.anyio

HERE = "http://127.0.0.1/mcp"
RESOURCES = frozenset({HERE})


@dataclass
class Clock:
    """Time passes when a test says so, on both clocks."""

    now: float = 5_000.0
    wall: float = field(default_factory=time.time)

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.wall

    def time_ns(self) -> int:
        return int(self.wall * 1e9)

    def pass_by(self, seconds: float) -> None:
        self.now += seconds
        self.wall += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    told = SimpleNamespace(monotonic=made.monotonic, time=made.time, time_ns=made.time_ns)
    for module in (credentials, credential_changes):
        monkeypatch.setattr(module, "time", told)
    monkeypatch.setattr("toolgate.gate.audit_records.time", told)
    return made


@dataclass
class Process:
    """One process with its own connections and its own memory."""

    database: Database
    documents: SqlDocuments
    keys: Keys
    credentials: Credentials

    async def look(self) -> None:
        await self.credentials.changes.look()

    async def roles(self, credential: str) -> set[str] | None:
        found = await self.credentials.identify(credential, RESOURCES)
        return None if found is None else {role.value for role in found.principal.roles}

    async def record(self, uid: str, **fields: Any) -> None:
        async with self.database.transaction() as tx:
            await self.documents.write(tx, Set(USERS, uid, fields))

    async def do(self, statement: Any) -> None:
        await self.database.write(lambda connection: connection.execute(statement))


def process(url: str) -> Process:
    database = Database(url)
    documents = SqlDocuments(database, NAMESPACE)
    keys = Keys(database, "an-admin-key")
    return Process(
        database, documents, keys, Credentials(database, keys, Users(documents, database))
    )


@pytest.fixture
async def here(database_url: str, clock: Clock) -> AsyncIterator[Process]:
    made = process(database_url)
    await upgrade(made.database)
    yield made
    await made.database.close()


@pytest.fixture
async def there(here: Process, database_url: str) -> AsyncIterator[Process]:
    """Another process, which tells this one nothing."""
    made = process(database_url)
    yield made
    await made.database.close()


async def a_key(here: Process, uid: str = "jane", days: float | None = None) -> NewKey:
    return await here.keys.create(role=Role.USER, user_id=uid, days=days)


async def a_token(here: Process, uid: str = "jane", key_id: str | None = None) -> str:
    made = opaque.new(opaque.ACCESS)
    later = timestamp(seconds=600)
    granted = {
        "id": f"g{made.id}"[:32],
        "client_id": "c",
        "user_id": None if key_id else uid,
        "key_id": key_id,
        "scope": "tools",
        "resource": HERE,
        "redirect_uri": "",
        "challenge": "",
        "code": b"",
        "code_expires_at": later,
        "created_at": later,
        "expires_at": later,
    }
    token = {"id": made.id, "hash": made.hash, "kind": "access", "grant_id": granted["id"]}

    def keep(connection: Connection) -> None:
        connection.execute(insert(grants), [granted])
        connection.execute(insert(tokens), [token | {"created_at": later, "expires_at": later}])

    await here.database.write(keep)
    return made.text


async def asks(here: Process, credential: str) -> int:
    """How many statements it takes to know a credential."""
    with noted_statements() as statements:
        assert await here.roles(credential) is not None
    return len(statements)


async def test_a_credential_is_looked_up_once_while_looks_find_nothing(
    here: Process, clock: Clock
) -> None:
    key, token = (await a_key(here)).key, await a_token(here)
    await here.look()
    assert await asks(here, key) == 1
    assert await asks(here, token) == 2
    for _ in range(20):
        clock.pass_by(0.9)
        await here.look()
        assert [await asks(here, key), await asks(here, token)] == [0, 0]


async def test_without_a_look_a_credential_is_remembered_for_a_second(
    here: Process, clock: Clock
) -> None:
    key = (await a_key(here)).key
    await here.look()
    await asks(here, key)
    clock.pass_by(0.99)
    assert await asks(here, key) == 0
    clock.pass_by(0.01)
    assert await asks(here, key) == 1


async def test_a_look_counts_from_its_beginning(
    here: Process, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = (await a_key(here)).key
    await here.look()
    await asks(here, key)
    clock.pass_by(1)
    look_up = here.database.look_up

    async def slow(*asked: Any) -> Any:
        found = await look_up(*asked)
        clock.pass_by(0.7)
        return found

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(here.database, "look_up", slow)
        await here.look()
    assert await asks(here, key) == 0
    clock.pass_by(0.3)
    assert await asks(here, key) == 1


async def test_what_nobody_tells_of_is_asked_again_after_a_minute(
    here: Process, clock: Clock
) -> None:
    key = (await a_key(here)).key
    await here.look()
    await asks(here, key)
    clock.pass_by(LONGEST_SECONDS - 0.1)
    await here.look()
    assert await asks(here, key) == 0
    clock.pass_by(0.1)
    await here.look()
    assert await asks(here, key) == 1


Ends = Callable[[Process, NewKey], Any]


async def revoked(there: Process, key: NewKey) -> None:
    await there.keys.revoke(key.id)


async def deleted(there: Process, key: NewKey) -> None:
    await there.do(delete(key_table).where(key_table.c.id == key.id))


async def cut_short(there: Process, key: NewKey) -> None:
    await there.do(update(key_table).where(key_table.c.id == key.id).values(expires_at=timestamp()))


@pytest.mark.parametrize("end", [revoked, deleted, cut_short])
async def test_a_key_and_its_tokens_that_another_process_ends_are_refused_within_a_second(
    here: Process, there: Process, clock: Clock, end: Ends
) -> None:
    key, other = await a_key(here), await a_key(here)
    token = await a_token(here, key_id=key.id)
    await here.look()
    for one in (key.key, token, other.key):
        assert await here.roles(one) == {"user"}
    clock.pass_by(0.9)
    await here.look()
    await end(there, key)
    clock.pass_by(0.5)
    await here.look()
    clock.pass_by(0.5)  # a second after the look before the end
    assert [await here.roles(key.key), await here.roles(token)] == [None, None]
    # PostgreSQL tells of a change twice while an older transaction runs, such as its own upkeep.
    assert await asks(here, other.key) <= (here.database.dialect == "postgresql")


@pytest.mark.parametrize("which", [tokens, grants])
@pytest.mark.parametrize("gone", [False, True])
async def test_a_token_or_grant_that_ends_elsewhere_is_refused_within_a_second(
    here: Process, there: Process, clock: Clock, which: Any, gone: bool
) -> None:
    token = await a_token(here)
    await here.look()
    assert await here.roles(token) == {"user"}
    await there.do(delete(which) if gone else update(which).values(ended_at=timestamp()))
    clock.pass_by(0.5)
    await here.look()
    clock.pass_by(0.5)
    assert await here.roles(token) is None


async def test_the_role_in_a_users_record_counts_within_a_second(
    here: Process, there: Process, clock: Clock
) -> None:
    key, token = (await a_key(here)).key, await a_token(here)
    steps: list[tuple[Any, set[str]]] = [
        (there.record("jane", roles={"admin": True}), {"user", "admin"}),
        (there.record("jane", roles={}), {"user"}),
        (there.record("jane", roles={"admin": True}), {"user", "admin"}),
        (remove(there, "jane"), {"user"}),
    ]
    await here.look()
    assert [await here.roles(key), await here.roles(token)] == [{"user"}] * 2
    for change, roles in steps:
        await change
        clock.pass_by(1)
        await here.look()
        assert [await here.roles(key), await here.roles(token)] == [roles] * 2


async def remove(there: Process, uid: str) -> None:
    async with there.database.transaction() as tx:
        await there.documents.write(tx, Delete(USERS, uid))


@pytest.mark.parametrize("of", ["key", "grant", "token"])
async def test_a_credential_that_is_replaced_on_sqlite_is_noted(here: Process, of: str) -> None:
    if here.database.dialect != "sqlite":
        pytest.skip("PostgreSQL has no INSERT OR REPLACE")
    replaced = {"key": key_table, "grant": grants, "token": tokens}[of]
    await a_token(here, key_id=(await a_key(here)).id)
    row = await here.database.read(
        lambda connection: connection.execute(select(replaced)).mappings().one()
    )
    assert f"{of}:{row['id']}" not in await noted(here), "a new one is not noted"
    await here.do(insert(replaced).prefix_with("OR REPLACE").values(dict(row)))
    assert f"{of}:{row['id']}" in await noted(here)


async def test_documents_of_others_are_not_noted(here: Process) -> None:
    await here.record("jane")
    async with here.database.transaction() as tx:
        await here.documents.write(tx, Set("teams", "jane", {}))
        await SqlDocuments(here.database, "appdata").write(tx, Set(USERS, "joe", {}))
    assert await noted(here) == ["user:jane"]


async def noted(here: Process) -> list[str]:
    rows = select(table.c.name).order_by(table.c.seq)
    return await here.database.read(lambda connection: list(connection.scalars(rows)))


async def test_a_key_ends_at_the_moment_it_expires(here: Process, clock: Clock) -> None:
    key = await a_key(here, days=2.5 / 86400)
    await here.look()
    assert await here.roles(key.key) == {"user"}
    for _ in range(2):
        clock.pass_by(1)
        await here.look()
        assert await asks(here, key.key) == 0
    found = await here.credentials.identify(key.key, RESOURCES)
    assert found is not None
    assert found.until == pytest.approx(clock.now + 0.5, abs=1e-3)  # heads know it no longer
    clock.pass_by(0.51)
    assert await here.roles(key.key) is None


async def test_where_the_table_cannot_be_read_nothing_is_trusted(
    here: Process, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = (await a_key(here)).key
    await here.look()
    await asks(here, key)
    clock.pass_by(1)

    async def away(*_: Any, **__: Any) -> Any:
        raise OperationalError("SELECT 1", {}, Exception("away"))

    with monkeypatch.context() as outage:
        outage.setattr(here.database, "look_up", away)
        await here.look()
        with pytest.raises(OperationalError):
            await here.roles(key)
    await here.look()
    assert await asks(here, key) == 1  # it may have ended meanwhile, and the rows be gone
    clock.pass_by(0.9)
    await here.look()
    clock.pass_by(0.9)
    assert await asks(here, key) == 0


async def test_a_look_while_a_key_is_looked_up_leaves_it_a_second(
    here: Process, there: Process, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await a_key(here)
    await here.look()
    look_up = here.database.look_up

    with monkeypatch.context() as meanwhile:

        async def overtaken(*asked: Any) -> Any:
            found = await look_up(*asked)
            meanwhile.undo()
            await there.keys.revoke(key.id)
            await here.look()
            return found

        meanwhile.setattr(here.database, "look_up", overtaken)
        assert await here.roles(key.key) == {"user"}
    clock.pass_by(0.5)
    await here.look()
    clock.pass_by(0.5)
    assert await here.roles(key.key) is None


async def test_a_row_that_commits_late_is_seen(here: Process, there: Process, clock: Clock) -> None:
    """In PostgreSQL, where a later transaction is done before an earlier one."""
    if here.database.dialect == "sqlite":
        pytest.skip("SQLite has one writer at a time")
    early, late = await a_key(here), await a_key(here)
    await here.look()
    assert [await here.roles(one.key) for one in (early, late)] == [{"user"}] * 2
    ended = update(key_table).values(revoked_at=timestamp())
    async with there.database.transaction() as tx:
        await tx.run(lambda c: c.execute(ended.where(key_table.c.id == late.id)))
        await here.do(ended.where(key_table.c.id == early.id))
        clock.pass_by(1)
        await here.look()
        assert [await here.roles(one.key) for one in (early, late)] == [None, {"user"}]
    clock.pass_by(1)
    await here.look()
    assert await here.roles(late.key) is None


async def test_seen_rows_are_deleted_and_who_missed_them_forgets(
    here: Process, there: Process, clock: Clock
) -> None:
    key = await a_key(here)
    await here.look()
    await there.look()
    assert await here.roles(key.key) == {"user"}
    await there.keys.revoke(key.id)
    for uid in ("a", "b"):
        await there.record(uid)
    for _ in range(2):
        await there.look()
        await there.credentials.changes.delete_seen()
    assert await noted(here) == ["user:b"]
    clock.pass_by(1)
    await here.look()
    assert await here.roles(key.key) is None


async def test_more_changes_than_a_look_takes_forget_everything(
    here: Process, there: Process, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await a_key(here)
    await here.look()
    await asks(here, key.key)
    monkeypatch.setattr(credential_changes, "MAX_CHANGED", 3)
    for number in range(4):
        await there.record(f"u{number}")
    clock.pass_by(1)
    await here.look()
    assert await asks(here, key.key) == 1


async def test_a_restored_backup_forgets_everything(
    here: Process, there: Process, clock: Clock
) -> None:
    key = await a_key(here)
    await here.look()
    await asks(here, key.key)
    await there.database.write(note_all_changed)
    clock.pass_by(1)
    await here.look()
    assert await asks(here, key.key) == 1


async def test_memory_is_bounded_and_who_asks_often_stays(
    here: Process, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "MAX_REMEMBERED", 3)
    often = (await a_key(here)).key
    await here.look()
    await asks(here, often)
    for _ in range(6):
        await asks(here, (await a_key(here)).key)
        clock.pass_by(1)
        await here.look()
        assert await asks(here, often) == 0
    assert len(here.credentials._remembered) == 3  # pyright: ignore[reportPrivateUsage]

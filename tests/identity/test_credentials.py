"""One door for keys and tokens: who holds them, how quickly, and for how long."""

import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

import pytest
from sqlalchemy import insert, update
from tests.statements import noted_statements

from toolgate.adapters.sql.documents import SqlDocuments
from toolgate.db.engine import Database
from toolgate.db.oauth_tables import grants, tokens
from toolgate.db.upgrades import upgrade
from toolgate.gate.audit_records import timestamp
from toolgate.gate.principal import ANONYMOUS, AgentType, Kind, Role
from toolgate.identity import credentials as module
from toolgate.identity.credentials import Credentials, InsufficientScope
from toolgate.identity.keys import Keys
from toolgate.identity.oauth import opaque
from toolgate.identity.users import Users
from toolgate.ports.documents import Create
from toolgate.ports.users import NAMESPACE

pytestmark = pytest.mark.anyio

HERE = "http://127.0.0.1/mcp"
RESOURCES = frozenset({HERE})
ADMIN_KEY = "an-admin-key"
SEEN_BEFORE_FUNCTIONS = 4


@dataclass
class Door:
    database: Database
    documents: SqlDocuments
    keys: Keys
    credentials: Credentials

    async def token(self, **grant: Any) -> str:
        """An access token, straight into the database."""
        made = opaque.new(opaque.ACCESS)
        later = timestamp(seconds=600)
        granted = {
            "id": made.id,
            "client_id": "c",
            "user_id": "jane",
            "scope": "tools",
            "resource": HERE,
            "redirect_uri": "",
            "challenge": "",
            "code": b"",
            "code_expires_at": later,
            "created_at": later,
            "expires_at": later,
            **grant,
        }
        token = {
            "id": made.id,
            "hash": made.hash,
            "kind": "access",
            "grant_id": made.id,
            "created_at": later,
            "expires_at": later,
        }

        def keep(connection: Any) -> None:
            connection.execute(insert(grants), [granted])
            connection.execute(insert(tokens), [token])

        await self.database.write(keep)
        return made.text

    async def record(self, uid: str, **fields: Any) -> None:
        async with self.database.transaction() as tx:
            await self.documents.write(tx, Create("users", uid, fields))

    async def change(self, statement: Any) -> None:
        await self.database.write(lambda connection: connection.execute(statement))
        self.credentials.forget()

    async def roles(self, credential: str) -> set[str] | None:
        found = await self.credentials.identify(credential, RESOURCES)
        return None if found is None else {role.value for role in found.principal.roles}


@pytest.fixture
async def door(database_url: str) -> AsyncIterator[Door]:
    database = Database(database_url)
    await upgrade(database)
    documents = SqlDocuments(database, NAMESPACE)
    keys = Keys(database, ADMIN_KEY)
    yield Door(database, documents, keys, Credentials(database, keys, Users(documents, database)))
    await database.close()


async def test_keys_and_tokens_come_through_the_same_door(door: Door) -> None:
    key = (await door.keys.create(role=Role.USER, user_id="jane")).key
    assert await door.roles(ADMIN_KEY) == {"admin"}
    assert await door.roles(key) == {"user"}
    assert await door.roles(await door.token()) == {"user"}
    for wrong in ("", "x", key[:-1], f"tga_{'0' * 32}_{'0' * 64}", "tga_ü_ü", "tgr_x_y"):
        assert await door.roles(wrong) is None


async def test_a_user_whose_record_says_so_is_an_admin_with_key_and_token(door: Door) -> None:
    await door.record("root", roles={"admin": True})
    key = (await door.keys.create(role=Role.USER, user_id="root")).key
    assert await door.roles(key) == {"admin", "user"}
    assert await door.roles(await door.token(user_id="root")) == {"admin", "user"}


@pytest.mark.parametrize("roles", [None, [], ["admin"], {"admin": "true"}, {"admin": 1}, "admin"])
async def test_nothing_but_true_makes_an_admin(door: Door, roles: Any) -> None:
    await door.record("almost", roles=roles)
    assert await door.roles(await door.token(user_id="almost")) == {"user"}


async def test_a_key_that_ends_while_it_is_looked_up_is_not_remembered(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await door.keys.create(role=Role.USER, user_id="jane")
    look_up = door.database.look_up

    async def ends_meanwhile(*asked: Any) -> Any:
        found = await look_up(*asked)
        await door.keys.revoke(made.id)
        return found

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(door.database, "look_up", ends_meanwhile)
        found = await door.credentials.identify(made.key, RESOURCES)
    assert found is not None
    assert found.until == 0.0
    assert await door.credentials.identify(made.key, RESOURCES) is None


@pytest.mark.parametrize("record", [None, {"roles": {"admin": True}}, {"name": "Jane"}])
async def test_a_key_and_the_record_of_its_user_are_found_by_one_statement(
    door: Door, record: dict[str, Any] | None
) -> None:
    made = await door.keys.create(role=Role.USER, user_id="jane")
    if record is not None:
        await door.record("jane", **record)
    await door.roles(ADMIN_KEY)  # opens a connection
    with noted_statements() as statements:
        roles = await door.roles(made.key)
    assert roles == ({"user", "admin"} if record and "roles" in record else {"user"})
    assert len([one for one in statements if "FROM keys" in one]) == 1
    assert not [one for one in statements if "FROM documents" in one]


async def test_only_the_record_of_its_own_user_makes_a_key_an_admins(door: Door) -> None:
    await door.record("root", roles={"admin": True})
    other = SqlDocuments(door.database, "appdata")
    async with door.database.transaction() as tx:
        await other.write(tx, Create("users", "jane", {"roles": {"admin": True}}))
    for user_id in ("jane", "", None, "root/x"):
        key = (await door.keys.create(role=Role.USER, user_id=user_id)).key
        assert await door.roles(key) == {"user"}, user_id


async def test_an_agent_is_not_promoted_by_its_user(door: Door) -> None:
    await door.record("root", roles={"admin": True})
    key = (await door.keys.create(agent_type=AgentType.WORKER, user_id="root")).key
    found = await door.credentials.identify(key, RESOURCES)
    assert found is not None
    who = found.principal
    assert (who.kind, set(who.roles)) == (Kind.AGENT, set())


async def test_a_token_for_another_server_is_nobodys(door: Door) -> None:
    token = await door.token(resource="https://other.example/mcp")
    assert await door.roles(token) is None
    assert await door.roles(token) is None, "also when it was seen before"


async def test_on_the_machine_itself_a_token_is_good_for_any_of_our_addresses(door: Door) -> None:
    held = await door.credentials.holder(await door.token(resource="https://else.example/mcp"))
    assert held is not None
    assert held.user_id == "jane"
    assert await door.credentials.holder(await door.token(scope="")) is None
    assert await door.credentials.holder("tga_0000_0000") is None


async def test_a_token_without_the_scope_is_told_apart(door: Door) -> None:
    token = await door.token(scope="")
    with pytest.raises(InsufficientScope):
        await door.credentials.identify(token, RESOURCES)


@pytest.mark.parametrize("end", ["token expired", "token ended", "grant ended"])
async def test_a_token_ends(door: Door, end: str) -> None:
    token = await door.token()
    assert await door.roles(token) == {"user"}
    past = timestamp(seconds=-1)
    match end:
        case "token expired":
            await door.change(update(tokens).values(expires_at=past))
        case "token ended":
            await door.change(update(tokens).values(ended_at=past))
        case _:
            await door.change(update(grants).values(ended_at=past))
    assert await door.roles(token) is None


async def test_a_token_of_the_admin_key_ends_with_that_key(door: Door) -> None:
    mark = door.keys.admin_mark
    token = await door.token(user_id=None, key_id="admin-key", key_mark=mark)
    assert await door.roles(token) == {"admin"}
    other = Keys(door.database, "another-admin-key")
    users = door.credentials.users
    assert await Credentials(door.database, other, users).identify(token, RESOURCES) is None
    none = Keys(door.database, None)
    assert await Credentials(door.database, none, users).identify(token, RESOURCES) is None


async def test_an_end_takes_effect_within_a_second(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = await door.token()
    assert await door.roles(token) == {"user"}
    ended = update(tokens).values(ended_at=timestamp())
    await door.database.write(lambda connection: connection.execute(ended))
    later = time.monotonic() + module.REMEMBERED_SECONDS
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert await door.roles(token) is None


async def test_what_is_remembered_is_bounded(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_REMEMBERED", 3)
    for _ in range(10):
        await door.roles(await door.token())
    assert len(door.credentials._remembered) <= 3  # pyright: ignore[reportPrivateUsage]


async def test_a_credential_seen_before_costs_a_function_or_two_and_no_statement(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REMEMBERED_SECONDS", 3600.0)
    token = await door.token()
    await door.roles(token)
    entered: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            entered.append(frame.f_code.co_qualname)

    with noted_statements() as statements:
        sys.setprofile(note)
        try:
            known = await door.credentials.identify(token, RESOURCES)
        finally:
            sys.setprofile(None)
    assert known is not None
    assert statements == []
    assert len(entered) <= SEEN_BEFORE_FUNCTIONS, entered


async def test_what_a_key_is_bound_to_comes_with_it_and_with_its_tokens(door: Door) -> None:
    bound = {"project_id": "p", "task_id": "t", "job_id": "j"}
    made = await door.keys.create(agent_type=AgentType.WORKER, user_id="u", bound=bound)
    token = await door.token(user_id=None, key_id=made.id)
    for credential in (made.key, made.key, token, token):  # looked up, then remembered
        found = await door.credentials.identify(credential, RESOURCES)
        assert found is not None
        assert found.principal.bound == bound
        assert found.principal.scope == {"project": "p", "task": "t", "job": "j", "user": "u"}
    assert await door.keys.holder(made.id) == await door.keys.look_up(made.key)
    await door.keys.revoke(made.id)
    assert await door.keys.holder(made.id) is None
    plain = await door.keys.create(agent_type=AgentType.WORKER, bound={"task_id": "t"})
    assert (await door.keys.look_up(plain.key) or ANONYMOUS).bound == {"task_id": "t"}

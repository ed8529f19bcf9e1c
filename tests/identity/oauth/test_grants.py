"""Codes and tokens in the database, on both kinds, also when many ask at once."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest
from sqlalchemy import Connection, Table, func, select, update
from tests.identity.oauth.flow import challenge_of

from toolgate.db.engine import Database
from toolgate.db.oauth_tables import clients, grants, sign_ins, tokens
from toolgate.db.upgrades import upgrade
from toolgate.gate.audit_records import timestamp
from toolgate.gate.principal import Principal
from toolgate.identity.keys import Keys
from toolgate.identity.oauth.clients import BadClient, Clients
from toolgate.identity.oauth.expiry import MAX_AT_ONCE
from toolgate.identity.oauth.grants import ENDED_SECONDS, GRACE_SECONDS, Grants, Tokens
from toolgate.identity.oauth.refusals import CodeRequest, RefreshRequest, Refusal
from toolgate.identity.oauth.sign_ins import AuthorizationRequest, SignIn, SignIns, Subject

pytestmark = pytest.mark.anyio

VERIFIER = "v" * 64
CLIENT = "mcp_" + "1" * 32
REDIRECT = "http://127.0.0.1/cb"
ASKED = AuthorizationRequest(
    client_id=CLIENT,
    client_name="Example",
    client_uri=None,
    redirect_uri=REDIRECT,
    state="nul \0 and ü",
    challenge=challenge_of(VERIFIER),
    resource="http://127.0.0.1/mcp",
    scope="tools",
)


@dataclass
class Store:
    database: Database
    sign_ins: SignIns
    grants: Grants
    noted: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def note(self, connection: Connection, rule: str, who: Principal) -> None:
        assert connection.in_transaction()
        self.noted.append((rule, who.id))

    async def signed_in(self) -> SignIn:
        begun = await self.sign_ins.begin(ASKED)
        await self.sign_ins.set_subject(begun, Subject(shown="Jane", user_id="jane"), self.note)
        found = await self.sign_ins.find(begun.id, begun.secret)
        assert found is not None
        return found

    async def code(self) -> str:
        code = await self.grants.allow(await self.signed_in(), self.note)
        assert isinstance(code, str)
        return code

    async def pair(self) -> Tokens:
        made = await self.grants.exchange(use(await self.code()), self.note)
        assert isinstance(made, Tokens)
        return made

    async def refresh(self, token: str) -> Tokens | Refusal:
        asked = RefreshRequest(token=token, client_id=CLIENT, resource=None, scope=None)
        return await self.grants.refresh(asked, self.note)

    async def count(self, table: Table) -> int:
        many = select(func.count()).select_from(table)
        return await self.database.read(lambda c: c.execute(many).scalar_one())

    async def change(self, statement: Any) -> None:
        await self.database.write(lambda c: c.execute(statement))


def use(code: str) -> CodeRequest:
    return CodeRequest(
        code=code, client_id=CLIENT, verifier=VERIFIER, redirect_uri=REDIRECT, resource=None
    )


@pytest.fixture
async def store(database_url: str) -> AsyncIterator[Store]:
    database = Database(database_url)
    await upgrade(database)
    yield Store(
        database,
        SignIns(database),
        Grants(database, Keys(database), access_seconds=900, refresh_seconds=86400),
    )
    await database.close()


async def at_once(work: Any, times: int) -> list[Any]:
    """The results of several tasks that begin together."""
    results: list[Any] = []

    async def one() -> None:
        results.append(await work())

    async with anyio.create_task_group() as tasks:
        for _ in range(times):
            tasks.start_soon(one)
    return results


async def test_a_sign_in_keeps_what_was_asked(store: Store) -> None:
    found = await store.signed_in()
    assert found.asked == ASKED
    assert found.subject == Subject(shown="Jane", user_id="jane")
    assert await store.sign_ins.find(found.id, "0" * 64) is None
    assert await store.sign_ins.find("0" * 32, found.secret) is None
    assert await store.sign_ins.find("", "") is None


async def test_of_twenty_exchanges_of_one_code_one_succeeds(store: Store) -> None:
    code = await store.code()
    results = await at_once(lambda: store.grants.exchange(use(code), store.note), 20)
    assert sum(isinstance(one, Tokens) for one in results) == 1
    refused = [one for one in results if isinstance(one, Refusal)]
    assert {one.rule for one in refused} == {"oauth-code-reused"}
    assert await store.count(tokens) == 2
    assert await store.count(grants) == 1
    assert store.noted.count(("oauth-token-issued", "user:jane")) == 1


async def test_of_twenty_consents_to_one_sign_in_one_makes_a_grant(store: Store) -> None:
    sign_in = await store.signed_in()
    results = await at_once(lambda: store.grants.allow(sign_in, store.note), 20)
    assert sum(isinstance(one, str) for one in results) == 1
    assert await store.count(grants) == 1
    assert store.noted == [("oauth-signed-in", "user:jane"), ("oauth-granted", "user:jane")]


async def test_a_lost_answer_may_be_asked_for_again_for_a_moment(store: Store) -> None:
    first = await store.pair()
    lost = await store.refresh(first.refresh)
    again = await store.refresh(first.refresh)
    assert isinstance(lost, Tokens)
    assert isinstance(again, Tokens)
    alive = select(tokens).where(tokens.c.ended_at.is_(None), tokens.c.parent_id.is_not(None))
    rows = await store.database.read(lambda c: c.execute(alive).all())
    assert {row.id for row in rows} == {
        again.access.split("_")[1],
        again.refresh.split("_")[1],
    }, "the pair that was lost has ended: the family does not fork"
    assert isinstance(await store.refresh(again.refresh), Tokens)


async def test_a_lost_answer_that_turns_up_ends_the_family(store: Store) -> None:
    """Then two hold tokens, and one of them is not the client."""
    first = await store.pair()
    lost = await store.refresh(first.refresh)
    again = await store.refresh(first.refresh)
    assert isinstance(lost, Tokens)
    assert isinstance(again, Tokens)
    refused = await store.refresh(lost.refresh)
    assert isinstance(refused, Refusal)
    assert refused.rule == "oauth-refresh-reused"
    assert isinstance(await store.refresh(again.refresh), Refusal)


async def test_after_the_moment_a_used_refresh_token_ends_the_family(store: Store) -> None:
    first = await store.pair()
    second = await store.refresh(first.refresh)
    assert isinstance(second, Tokens)
    past = timestamp(seconds=-GRACE_SECONDS - 1)
    await store.change(update(tokens).where(tokens.c.used_at.is_not(None)).values(used_at=past))
    refused = await store.refresh(first.refresh)
    assert isinstance(refused, Refusal)
    assert refused.rule == "oauth-refresh-reused"
    ended = await store.refresh(second.refresh)
    assert isinstance(ended, Refusal)
    assert ended.rule == "oauth-grant-ended"


async def test_refreshes_at_once_leave_one_pair(store: Store) -> None:
    first = await store.pair()
    results = await at_once(lambda: store.refresh(first.refresh), 10)
    assert all(isinstance(one, Tokens) for one in results)
    alive = select(func.count()).select_from(tokens)
    alive = alive.where(tokens.c.ended_at.is_(None), tokens.c.parent_id.is_not(None))
    assert await store.database.read(lambda c: c.execute(alive).scalar_one()) == 2


async def test_only_hashes_are_kept(store: Store) -> None:
    sign_in = await store.signed_in()
    code = await store.grants.allow(sign_in, store.note)
    assert isinstance(code, str)
    made = await store.grants.exchange(use(code), store.note)
    assert isinstance(made, Tokens)
    waiting = await store.signed_in()

    def everything(connection: Any) -> str:
        tables = (clients, sign_ins, grants, tokens)
        return repr([connection.execute(select(table)).all() for table in tables])

    kept = await store.database.read(everything)
    secrets = [one.split("_")[2] for one in (code, made.access, made.refresh)]
    for secret in (*secrets, sign_in.secret, waiting.secret, waiting.form_token):
        assert secret not in kept


@pytest.mark.parametrize("table", [sign_ins, grants, tokens, clients], ids=lambda one: one.name)
async def test_expired_rows_go_when_new_ones_come(store: Store, table: Table) -> None:
    registry = Clients(store.database)

    async def add() -> None:
        await store.pair()
        await store.signed_in()
        await registry.register("Example", (REDIRECT,), None, store.note)

    for _ in range(3):
        await add()
    before = await store.count(table)
    past = timestamp(seconds=-1 - ENDED_SECONDS)  # tokens are known for a while after their end
    await store.change(update(table).values(expires_at=past))
    await add()
    assert 0 < await store.count(table) <= 3 < before + 3
    old = select(func.count()).select_from(table).where(table.c.expires_at < timestamp())
    assert await store.database.read(lambda c: c.execute(old).scalar_one()) == 0
    assert MAX_AT_ONCE >= 2 * 2, "more go than come"


async def test_a_client_is_found_until_its_end(store: Store) -> None:
    registry = Clients(store.database)
    made = await registry.register("Example", (REDIRECT,), "https://a.example/", store.note)
    assert await registry.find(made.id) == made
    await store.change(update(clients).values(expires_at=timestamp(seconds=-1)))
    for unknown in (made.id, "", "x" * 100, "\0", "https://a.example/client.json"):
        with pytest.raises(BadClient):
            await registry.find(unknown)


async def test_a_client_in_use_is_kept(store: Store) -> None:
    registry = Clients(store.database)
    made = await registry.register("Example", (REDIRECT,), None, store.note)
    await store.change(update(clients).values(id=CLIENT, expires_at=timestamp(seconds=60)))
    await store.pair()
    one = select(clients.c.expires_at)
    until = await store.database.read(lambda c: c.execute(one).scalar_one())
    assert until > timestamp(seconds=86400)
    assert made.id != CLIENT

"""What succeeds is audited too: one row each, who it was for, and no secret in it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.exc import OperationalError
from tests.identity.oauth.flow import PREFIX, REDIRECT, Flow, registered
from tests.transports.conftest import ADMIN_KEY, Web, opened_web

from toolgate.db.oauth_tables import clients
from toolgate.gate.audit import AuditLog
from toolgate.gate.seals import Sealer
from toolgate.gate.verification import verify

pytestmark = pytest.mark.anyio

WAY = [
    ("register", "oauth-registered"),
    ("sign-in", "oauth-signed-in"),
    ("consent", "oauth-granted"),
    ("token", "oauth-token-issued"),
    ("token", "oauth-refreshed"),
    ("revoke", "oauth-revoked"),
]


@pytest.fixture
async def web(tmp_path: Path) -> AsyncIterator[Web]:
    """An application with an empty audit."""
    async with opened_web(tmp_path) as opened:
        yield opened


async def whole_way(flow: Flow, key: str) -> dict[str, Any]:
    """From the question to the revocation; the last tokens."""
    tokens = await flow.tokens(key)
    renewed = (await flow.refresh(tokens["refresh_token"])).json()
    assert (await revoke(flow, renewed["refresh_token"])) == 200
    return renewed


async def revoke(flow: Flow, token: str) -> int:
    return (await flow.http.post(f"{PREFIX}/revoke", data={"token": token})).status_code


async def rows(web: Web) -> list[dict[str, Any]]:
    return [row for row in await web.kit.audit_rows() if row["rule"].startswith("oauth-")]


@pytest.mark.parametrize("holder", ["admin", "user"])
async def test_every_step_leaves_one_row(web: Web, holder: str) -> None:
    key = web.keys[holder]
    who = ("admin-key", None) if holder == "admin" else (f"key:{key.split('_')[1]}", "abc123")
    async with web.client(None) as http:
        await whole_way(await registered(http), key)
    found = await rows(web)
    assert [(row["tool_name"], row["rule"]) for row in found] == [
        (f"{PREFIX}/{path}", rule) for path, rule in WAY
    ]
    assert {(row["decision"], row["status"], row["transport"]) for row in found} == {
        ("allow", "success", "http")
    }
    assert (found[0]["subject_type"], found[0]["subject_id"]) == ("anonymous", "anonymous")
    assert {(row["subject_id"], row["user_id"]) for row in found[1:]} == {who}
    assert {row["role_names"] for row in found[1:]} == {holder}
    assert len({row["client_id"] for row in found} - {None}) == 1
    grants = [row["grant_id"] for row in found]
    assert grants[:2] == [None, None]
    assert len(set(grants[2:]) - {None}) == 1


async def test_calls_of_one_persons_clients_are_told_apart(web: Web) -> None:
    acted: list[tuple[str, str]] = []
    for name in NAMES:
        async with web.client(None) as http:
            flow = await registered(http, name=name)
            tokens = await flow.tokens(web.keys["user"])
            bearer = {"Authorization": f"Bearer {tokens['access_token']}"}
            called = await http.post("/v1/tools/health_check", json={}, headers=bearer)
            assert called.status_code == 200
        (row,) = [row for row in await web.kit.audit_rows() if row["transport"] == "http"][-1:]
        assert row["user_id"] == "abc123"
        acted.append((row["client_id"], row["grant_id"]))
    assert len(set(acted)) == 3
    assert all(client and grant for client, grant in acted)
    names = select(clients.c.id, clients.c.name).order_by(clients.c.created_at)
    kept = await web.kit.app.gate.database.read(lambda c: list(map(tuple, c.execute(names))))
    listed = [(client, name) for (client, _), name in zip(acted, NAMES, strict=True)]
    assert kept == listed


NAMES = ("Editor", "Terminal", "Notebook")


async def test_the_chain_stays_intact(web: Web) -> None:
    async with web.client(None) as http:
        await whole_way(await registered(http), ADMIN_KEY)
    assert len(await rows(web)) == len(WAY)
    database = web.kit.app.gate.database
    await Sealer(database).seal()
    verdict = await verify(database)
    assert verdict.findings == []
    assert (verdict.unsealed, verdict.rows) == (0, len(WAY))


async def test_no_secret_and_no_name_from_outside_is_in_a_row(web: Web) -> None:
    async with web.client(None) as http:
        flow = await registered(http, name="Evil Name " * 20)
        code = await flow.code(ADMIN_KEY, state="my-state")
        tokens = (await flow.exchange(code)).json()
        await revoke(flow, tokens["access_token"])
    kept = str(await rows(web))
    texts = (code, tokens["access_token"], tokens["refresh_token"])
    for secret in (*(one.split("_")[2] for one in texts), ADMIN_KEY, "my-state", "Evil"):
        assert secret not in kept


async def test_a_revocation_that_ends_nothing_leaves_no_row(web: Web) -> None:
    async with web.client(None) as http:
        flow = await registered(http)
        tokens = await flow.tokens(ADMIN_KEY)
        for token in ("unknown", *[tokens["access_token"]] * 2, *[tokens["refresh_token"]] * 2):
            assert await revoke(flow, token) == 200
    ended = [row for row in await rows(web) if row["rule"] == "oauth-revoked"]
    assert len(ended) == 2


async def test_strangers_cannot_fill_the_audit_with_registrations(tmp_path: Path) -> None:
    settings = {"limits__sign_ins_per_minute": 3}
    async with opened_web(tmp_path, **settings) as web, web.client(None) as http:
        for _ in range(10):
            await http.post(f"{PREFIX}/register", json={"redirect_uris": [REDIRECT]})
        left = [row["rule"] for row in await rows(web)]
        assert len(left) == 4, "three, and the first that was too many"
        assert left[-1] == "oauth-limit"


async def test_what_cannot_be_audited_is_not_done(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise OperationalError("INSERT", {}, Exception("disk full"))

    monkeypatch.setattr(AuditLog, "store_on", broken)
    async with web.client(None) as http:
        answer = await http.post(f"{PREFIX}/register", json={"redirect_uris": [REDIRECT]})
    assert answer.status_code == 503
    kept = await web.kit.app.gate.database.read(lambda c: c.execute(clients.select()).all())
    assert kept == []

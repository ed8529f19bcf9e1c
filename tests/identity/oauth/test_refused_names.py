"""Who used a secret that is right, but not good: the audit names client, grant and key."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update
from tests.identity.oauth.flow import PREFIX, Flow, registered
from tests.transports.conftest import Web, opened_web

from toolgate.db.oauth_tables import tokens as token_table
from toolgate.db.tables import keys as key_table
from toolgate.gate.audit_records import timestamp
from toolgate.gate.principal import AgentType, Role

pytestmark = pytest.mark.anyio


@pytest.fixture
async def web(tmp_path: Path) -> AsyncIterator[Web]:
    async with opened_web(tmp_path) as opened:
        yield opened


async def last_row(web: Web) -> dict[str, Any]:
    """The newest row, which is of a refused request."""
    row = (await web.kit.audit_rows())[-1]
    assert (row["decision"], row["subject_type"]) == ("deny", "anonymous")
    assert row["subject_id"] == "peer:127.0.0.1", "where it came from stays"
    return row


async def grant_of(web: Web, flow: Flow) -> str:
    rows = [row for row in await web.kit.audit_rows() if row["client_id"] == flow.client_id]
    (grant,) = {row["grant_id"] for row in rows} - {None}
    return grant


async def test_a_code_that_comes_twice_names_the_grant_it_ended(web: Web) -> None:
    async with web.client(None) as http:
        flow = await registered(http)
        code = await flow.code(web.keys["user"])
        await flow.exchange(code)
        for _ in range(2):  # under the lock, and once the grant has ended before it
            assert (await flow.exchange(code)).status_code == 400
            row = await last_row(web)
            assert row["rule"] == "oauth-code-reused"
            assert (row["client_id"], row["grant_id"]) == (
                flow.client_id,
                await grant_of(web, flow),
            )


async def test_a_refused_refresh_names_client_and_grant(web: Web) -> None:
    async with web.client(None) as http:
        flow, other = await registered(http), await registered(http)
        tokens = await flow.tokens(web.keys["user"])
        grant = await grant_of(web, flow)
        token = tokens["refresh_token"]
        refusals = [
            (Flow(http, other.client_id), {}, "oauth-token-of-another-client"),
            (flow, {"scope": "everything"}, "oauth-wider-scope"),
            (flow, {"resource": "https://else.example/"}, "oauth-other-resource"),
        ]
        for sender, changed, rule in refusals:
            assert (await sender.refresh(token, **changed)).status_code == 400
            row = await last_row(web)
            assert (row["rule"], row["client_id"], row["grant_id"]) == (
                rule,
                flow.client_id,
                grant,
            )
        await http.post(f"{PREFIX}/revoke", data={"token": token})
        assert (await flow.refresh(token)).status_code == 400
        row = await last_row(web)
        assert (row["rule"], row["grant_id"]) == ("oauth-grant-ended", grant)


async def test_a_guess_names_nobody(web: Web) -> None:
    async with web.client(None) as http:
        flow = await registered(http)
        tokens = await flow.tokens(web.keys["user"])
        for name, text in tokens.items():
            if not str(text).startswith("tg"):
                continue
            wrong = f"{text[:-4]}0000"
            if name == "refresh_token":
                assert (await flow.refresh(wrong)).status_code == 400
            else:
                assert (await flow.tools(wrong)).status_code == 401
            row = await last_row(web)
            assert (row["client_id"], row["grant_id"]) == (None, None)
        wrong = f"{web.keys['user'][:-4]}0000"
        assert (await flow.tools(wrong)).status_code == 401
        assert (await last_row(web))["client_id"] is None


async def ended_key(web: Web, how: str) -> tuple[str, str]:
    made = await web.kit.app.keys.create(role=Role.USER, name="an old laptop")
    if how == "revoked":
        await web.kit.app.keys.revoke(made.id)
    else:
        past = update(key_table).where(key_table.c.id == made.id).values(expires_at=timestamp())
        await web.kit.app.gate.database.write(lambda c: c.execute(past))
    return made.id, made.key


@pytest.mark.parametrize("how", ["revoked", "expired"])
async def test_the_use_of_an_ended_key_names_it(web: Web, how: str) -> None:
    key_id, key = await ended_key(web, how)
    async with web.client(None) as http:
        flow = await registered(http)
        assert (await flow.tools(key)).status_code == 401
        row = await last_row(web)
        assert (row["rule"], row["client_id"]) == ("credentials-required", f"key:{key_id}")
        assert (await flow.sign_in(key)).status_code == 403
        row = await last_row(web)
        assert (row["rule"], row["client_id"]) == ("oauth-wrong-key", f"key:{key_id}")
    assert key.split("_")[2] not in json.dumps(await web.kit.audit_rows())


async def test_the_use_of_an_ended_token_names_client_and_grant(web: Web) -> None:
    async with web.client(None) as http:
        flow = await registered(http)
        token = (await flow.tokens(web.keys["user"]))["access_token"]
        past = update(token_table).values(expires_at=timestamp())
        await web.kit.app.gate.database.write(lambda c: c.execute(past))
        assert (await flow.tools(token)).status_code == 401
        row = await last_row(web)
        assert (row["client_id"], row["grant_id"]) == (flow.client_id, await grant_of(web, flow))


async def test_an_agents_key_at_sign_in_is_named_too(web: Web) -> None:
    made = await web.kit.app.keys.create(agent_type=AgentType.PM)
    async with web.client(None) as http:
        assert (await (await registered(http)).sign_in(made.key)).status_code == 403
    assert (await last_row(web))["client_id"] == f"key:{made.id}"

"""What an admin key allowed ends when another one is configured, and does not come back."""

import secrets
from pathlib import Path
from typing import Any

import pytest
from tests.identity.oauth.flow import Flow, query_of, registered
from tests.transports.conftest import ADMIN_KEY, Web, opened_web

from toolgate.identity.oauth.grant_list import grants_in_force

pytestmark = pytest.mark.anyio


async def listed(web: Web) -> list[dict[str, Any]]:
    return await grants_in_force(web.kit.app.gate.database)


@pytest.mark.parametrize("other", [secrets.token_hex(16), None], ids=["another", "none"])
async def test_a_start_with_another_key_ends_the_grants_of_the_former(
    tmp_path: Path, other: str | None
) -> None:
    async with opened_web(tmp_path) as web, web.client(None) as http:
        flow = await registered(http)
        signed_in = await flow.tokens(ADMIN_KEY)
        as_client = Flow(http, ADMIN_KEY)
        code = query_of(await as_client.authorize())["code"]
        at_once = (await as_client.exchange(code)).json()
        users = await flow.tokens(web.keys["user"])
        assert len(await listed(web)) == 3
    async with (
        opened_web(tmp_path, demo_data=False, admin_key=other) as web,
        web.client(None) as http,
    ):
        again = Flow(http, flow.client_id)
        for tokens in (signed_in, at_once):
            assert (await again.tools(tokens["access_token"])).status_code == 401
        assert (await again.refresh(signed_in["refresh_token"])).json()["error"] == "invalid_grant"
        assert (await again.tools(users["access_token"])).status_code == 200
        (left,) = await listed(web)
        assert left["user_id"] == "abc123"
        rows = [row for row in await web.kit.audit_rows() if row["tool_name"] == "grants.end"]
        assert {row["client_id"] for row in rows} == {flow.client_id, "admin-key"}
    async with opened_web(tmp_path, demo_data=False) as web, web.client(None) as http:
        again = Flow(http, flow.client_id)
        for tokens in (signed_in, at_once):
            assert (await again.tools(tokens["access_token"])).status_code == 401
        assert len(await listed(web)) == 1


async def test_a_start_with_the_same_key_ends_nothing(tmp_path: Path) -> None:
    async with opened_web(tmp_path) as web, web.client(None) as http:
        flow = await registered(http)
        token = (await flow.tokens(ADMIN_KEY))["access_token"]
    async with opened_web(tmp_path, demo_data=False) as web, web.client(None) as http:
        assert (await Flow(http, flow.client_id).tools(token)).status_code == 200

"""Grants on the command line: seen and ended by an administrator."""

from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest
from anyio import to_thread
from tests.identity.oauth.flow import Flow, query_of, registered
from tests.servers import Server

from toolgate.cli.main import run
from toolgate.cli.output import client_label

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("data")]


def test_nothing_is_allowed_at_first(cli: Any) -> None:
    cli("keys", "create", "--role", "admin")
    assert cli("grants", "list").out == "No client is allowed to act for anybody.\n"
    ended = cli("grants", "end", "anna")
    assert ended.code == 2
    assert "`toolgate grants list` shows them" in ended.err


async def test_a_grant_is_seen_and_ended(server: Server, capsys: Any) -> None:
    async with httpx2.AsyncClient(base_url=server.url, trust_env=False) as http:
        flow = await registered(http, name="A client to end")
        token = (await flow.tokens(server.keys["user"]))["access_token"]
        assert (await flow.tools(token)).status_code == 200
        data = ("--data", str(server.data))
        assert await to_thread.run_sync(run, ["grants", "list", *data]) == 0
        (line,) = [one for one in capsys.readouterr().out.splitlines() if "A client to end" in one]
        assert "user abc123" in line
        assert "read, write" in line
        assert f"{datetime.now(UTC):%Y-%m-%d}" in line
        called = await http.post(
            "/v1/tools/health_check", json={}, headers={"Authorization": f"Bearer {token}"}
        )
        assert called.status_code == 200
        ending = ["grants", "end", line.split()[0], *data]
        assert await to_thread.run_sync(run, ending) == 0
        assert capsys.readouterr().out == "1 grant is ended.\n"
        while (await flow.tools(token)).status_code == 200:
            continue  # remembered for a second at most
        assert await to_thread.run_sync(run, ending) == 2
        by_name = ["audit", "--principal", "A client to end", *data]
        assert await to_thread.run_sync(run, by_name) == 0
        assert "A client to end" in capsys.readouterr().out
        seen = ["audit", "--principal", line.split()[0], *data]
        assert await to_thread.run_sync(run, seen) == 0
        acted = capsys.readouterr().out
        assert "oauth-granted" not in acted  # what is done has no rule to show
        assert acted.count("A client to end") >= 2


async def test_an_admin_key_as_client_is_shown_with_where_its_answer_went(
    server: Server, capsys: Any
) -> None:
    async with httpx2.AsyncClient(base_url=server.url, trust_env=False) as http:
        flow = Flow(http, server.admin_key, "http://127.0.0.1:7788/cb")
        code = query_of(await flow.authorize())["code"]
        assert (await flow.exchange(code)).status_code == 200
    listing = ["grants", "list", "--data", str(server.data)]
    assert await to_thread.run_sync(run, listing) == 0
    assert "  admin-key at 127.0.0.1:7788  " in capsys.readouterr().out


def test_a_client_that_names_itself_is_quoted_with_its_id() -> None:
    assert client_label("ops laptop", "mcp_1a2b") == "\u201cops laptop\u201d mcp_1a2b"
    assert client_label(None, "mcp_1a2b") == "mcp_1a2b"

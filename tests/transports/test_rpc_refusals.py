"""Whoever is not let in at /rpc is told so in JSON-RPC, with the code of the reason."""

from typing import Any

import httpx2
import pytest
from sqlalchemy import update
from tests.transports.conftest import Web

from toolgate.db.tables import keys as key_table
from toolgate.gate.audit_records import timestamp
from toolgate.gate.principal import Role

pytestmark = pytest.mark.anyio

PING = {"jsonrpc": "2.0", "id": 1, "method": "list_collections"}


def refusal(answer: httpx2.Response, status: int) -> dict[str, Any]:
    assert answer.status_code == status
    body = answer.json()
    assert (body["jsonrpc"], body["id"]) == ("2.0", None)
    assert {"reason", "suggestion"} <= body["error"]["data"].keys()
    return body["error"]


@pytest.mark.parametrize("method", ["POST", "GET", "PUT"])
async def test_a_stranger_is_unauthorized(web: Web, method: str) -> None:
    async with web.client(None) as client:
        answer = await client.request(method, "/rpc", json=PING)
    error = refusal(answer, 401)
    assert error["code"] == -32100
    assert answer.headers["www-authenticate"].startswith("Bearer ")


async def test_a_revoked_key_is_unauthorized(web: Web) -> None:
    made = await web.kit.app.keys.create(role=Role.ADMIN)
    await web.kit.app.keys.revoke(made.id)
    async with web.client(None, Authorization=f"Bearer {made.key}") as client:
        assert refusal(await client.post("/rpc", json=PING), 401)["code"] == -32100


async def test_an_expired_key_is_told_to_be_expired(web: Web) -> None:
    made = await web.kit.app.keys.create(role=Role.ADMIN, days=1)
    ended = update(key_table).where(key_table.c.id == made.id).values(expires_at=timestamp())
    await web.kit.app.gate.database.write(lambda connection: connection.execute(ended))
    async with web.client(None, Authorization=f"Bearer {made.key}") as client:
        answer = await client.post("/rpc", json=PING, headers={"X-Request-Id": "expired-key"})
        elsewhere = await client.get("/v1/tools")
    error = refusal(answer, 401)
    assert error["code"] == -32102
    assert error["message"] == "Unauthorized: the key or token has expired. Get a new one."
    assert elsewhere.json() == {"error": error["message"]}
    assert answer.headers["www-authenticate"].startswith('Bearer realm="toolgate", error="inval')
    [row] = await web.audit_rows("expired-key")
    assert row["error_type"] == "token_expired"


async def test_an_unknown_method_names_itself_in_the_words_of_json_rpc(web: Web) -> None:
    async with web.client() as client:
        answer = await client.post("/rpc", json={**PING, "method": "no_such_tool"})
    error = answer.json()["error"]
    assert (error["code"], error["message"]) == (-32601, "Unknown tool: no_such_tool")
    assert error["data"]["suggestion"] == "`GET /v1/tools` lists the tools there are."


@pytest.mark.parametrize("method", ["no_such_tool", "get_document"])
async def test_a_stranger_to_a_tool_does_not_learn_of_params(web: Web, method: str) -> None:
    message = {**PING, "method": method, "params": ["a"]}
    async with web.client("worker") as client:
        error = (await client.post("/rpc", json=message)).json()["error"]
    assert (error["code"], error["message"]) == (-32601, f"Unknown tool: {method}")

"""Who is not known gets one answer for every path; who is, gets the words of the path's pack.

At `/rpc`, which every server has, this answer is JSON-RPC (test_rpc_refusals.py).
"""

from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.transports.conftest import Web, opened_web

pytestmark = pytest.mark.anyio

PATHS = ["/v1/tools", "/v1/tools/get_entity", "/v1/tools/no_such_tool", "/api/projects", "/api",
         "/api/nothing/here", "/backend-manager/user", "/backend-manager/nothing", "/rpc/", "/mcp",
         "/backend-manager/mcp", "/openapi.json", "/metrics", "/nothing/here", "/console",
         "/v1", "/api/entities/x/graph", "/%61pi/projects", "/mcp/"]  # fmt: skip
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY"]
STRANGERS: dict[str, dict[str, str]] = {
    "nobody": {},
    "a wrong key": {"Authorization": f"Bearer tg_{'0' * 16}_{'0' * 64}"},
}
OF_THE_REQUEST = {"x-request-id", "www-authenticate", "content-length"}
CONTENT = ["list_projects", "search_entities", "get_entity", "get_entity_graph"]


@pytest.mark.parametrize("who", STRANGERS)
async def test_no_path_and_no_method_betrays_itself_to_a_stranger(web: Web, who: str) -> None:
    answers: list[tuple[int, Any, dict[str, str]]] = []
    challenges: set[str] = set()
    async with web.client(None, **STRANGERS[who]) as client:
        for path in PATHS:
            for method in METHODS:
                answer = await client.request(method, path, content=b"{}")
                body = b"" if method == "HEAD" else answer.content
                headers = {k: v for k, v in answer.headers.items() if k not in OF_THE_REQUEST}
                answers.append((answer.status_code, answer.content if body else None, headers))
                challenges.add(answer.headers["www-authenticate"].partition("resource_metadata")[0])
    assert {status for status, _, _ in answers} == {401}
    assert len({body for _, body, _ in answers if body}) == 1
    assert all(headers == answers[0][2] for _, _, headers in answers)
    assert len(challenges) == 1


def message_in_envelope(answer: httpx2.Response, status: int, code: str) -> str:
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert list(body) == ["error"]
    assert list(body["error"]) == ["code", "message"]
    assert body["error"]["code"] == code
    return body["error"]["message"]


@pytest.mark.parametrize("tool", CONTENT)
async def test_a_content_tool_has_its_envelope_below_v1(web: Web, tool: str) -> None:
    async with web.client() as client:
        wrong = await client.get(f"/v1/tools/{tool}")
        no_json = await client.post(f"/v1/tools/{tool}", content=b"{")
        unknown = await client.post(f"/v1/tools/{tool}", json={"nope": 1})
    assert message_in_envelope(wrong, 405, "BAD_REQUEST") == "GET is not possible here. Use POST."
    assert wrong.headers["allow"] == "POST"
    message_in_envelope(no_json, 400, "BAD_REQUEST")
    message_in_envelope(unknown, 400, "BAD_REQUEST")


@pytest.mark.parametrize("path", ["/v1/tools/list_projects", "/api/projects"])
async def test_limits_are_told_in_the_envelope(tmp_path: Path, path: str) -> None:
    settings: dict[str, Any] = {"limits__body_bytes": 1024, "limits__calls_per_minute": 2}
    method = "POST" if path.startswith("/v1") else "GET"
    async with opened_web(tmp_path, **settings) as web, web.client() as client:
        if method == "POST":
            large = await client.post(path, content=b" " * 2000)
            message_in_envelope(large, 413, "BAD_REQUEST")
        for _ in range(2):
            await client.request(method, path)
        many = await client.request(method, path)
    message_in_envelope(many, 429, "RATE_LIMITED")
    assert int(many.headers["retry-after"]) > 0


@pytest.mark.parametrize("path", ["/api", "/api/", "/api/nothing", "/api/projects/x/y"])
async def test_a_path_of_a_pack_that_is_not_there_is_told_in_its_words(web: Web, path: str) -> None:
    async with web.client() as client:
        message_in_envelope(await client.get(path), 404, "NOT_FOUND")
        message_in_envelope(await client.post("/api/projects"), 405, "BAD_REQUEST")


async def test_a_wrong_method_is_told_in_the_words_of_other_packs_too(web: Web) -> None:
    told = "GET is not possible here. Use POST."
    async with web.client() as client:
        writing = await client.get("/v1/tools/create_document")
        assert (writing.status_code, writing.json()) == (405, {"error": told, "success": False})
        reading = await client.get("/v1/tools/list_collections")
        assert (reading.status_code, reading.json()) == (405, {"error": told})


async def test_a_wrong_method_tells_nothing_of_a_hidden_tool(web: Web) -> None:
    async with web.client("worker") as client:
        hidden = await client.get("/v1/tools/create_document")
        unknown = await client.get("/v1/tools/no_such_tool")
    assert hidden.status_code == unknown.status_code == 405
    assert hidden.content == unknown.content

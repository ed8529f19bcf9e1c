"""A failed call is told in the text alone: it does not fit the output schema, which clients check.

On the short way, on known heads, through the SDK and on standard input and output.
"""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.transports.conftest import Web, opened_web
from tests.transports.lines import Line, known, written
from tests.transports.mcp_requests import ERAS, MODERN, message_of, tool_call
from tests.transports.peers import call, piped

from toolgate.transports.mcp import front, stdio

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("remembered")]

FAILURES: dict[str, tuple[str, dict[str, Any]]] = {
    "nothing found": ("get_document", {"collection": "users", "document_id": "nobody"}),
    "bad arguments": ("query_collection", {"collection": "users", "limit": 0}),
    "a write that clashes": (
        "create_document",
        {"collection": "apps", "document_id": "hub", "data": {}},
    ),
    "another dialect": ("get_entity", {"projectId": "demo", "entityId": "nobody"}),
    "a dialect of sentences": ("generate_uuid", {"version": "9"}),
}


@pytest.fixture(scope="module")
async def web(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    async with opened_web(tmp_path_factory.mktemp("failures")) as opened:
        yield opened


async def check(web: Web, told: Any, what: str) -> None:
    """The text is what plain HTTP answers, or its sentence, and nothing stands beside it."""
    name, arguments = FAILURES[what]
    async with web.client() as client:
        plain = await client.post(f"/v1/tools/{name}", json=arguments)
    result = told["result"]
    assert result["isError"] is True
    assert result.get("structuredContent") is None
    (content,) = result["content"]
    sentence = what == "a dialect of sentences"
    assert content["text"] == (plain.json()["error"] if sentence else plain.text)


@pytest.mark.parametrize("what", FAILURES)
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("way", ["short", "sdk"])
async def test_over_http(
    web: Web, monkeypatch: pytest.MonkeyPatch, way: str, era: str, what: str
) -> None:
    name, arguments = FAILURES[what]
    if way == "sdk":
        monkeypatch.setattr(front, "_plain", lambda *_: None)
    async with web.client() as client:
        await check(web, message_of(await tool_call(era, name, arguments).send(client)), what)


@pytest.mark.parametrize("what", FAILURES)
@pytest.mark.parametrize("era", ERAS)
async def test_on_a_known_head(web: Web, era: str, what: str) -> None:
    name, arguments = FAILURES[what]
    asked, line = written(web, tool_call(era, name, arguments)), Line(web)
    await known(line, asked)
    await check(web, json.loads((await line.ask(asked)).body), what)
    assert line.requests == 0


@pytest.mark.parametrize("what", FAILURES)
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("way", ["short", "sdk"])
async def test_on_standard_output(
    web: Web, monkeypatch: pytest.MonkeyPatch, way: str, era: str, what: str
) -> None:
    name, arguments = FAILURES[what]
    if way == "sdk":
        monkeypatch.setattr(stdio, "plain_request", lambda *_: None)
    async with piped(web.kit.app.gate) as peer:
        await peer.open(era)
        await check(web, await peer.ask(call(name, arguments, era=era)), what)


async def test_a_good_answer_has_both(web: Web) -> None:
    wanted = tool_call(MODERN, "get_document", {"collection": "users", "document_id": "abc123"})
    async with web.client() as client:
        result = message_of(await wanted.send(client))["result"]
    assert result["isError"] is False
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]

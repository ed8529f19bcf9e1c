"""What a client of MCP is told when its request is wrong: the field, the rule, the next step."""

from typing import Any

import pytest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from tests.transports.conftest import Web
from tests.transports.mcp_requests import ERAS, LEGACY, MODERN, Request, message_of, request

from toolgate.transports.mcp.plain import HANDSHAKE

pytestmark = pytest.mark.anyio

INVALID_REQUEST, INVALID_PARAMS, UNSUPPORTED_VERSION = -32600, -32602, -32022


async def error_of(web: Web, asked: Request, status: int | None = None) -> dict[str, Any]:
    async with web.client() as client:
        answer = await asked.send(client)
    assert status in (None, answer.status_code), answer.text
    return message_of(answer)["error"]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("method", "params", "told"),
    [
        ("tools/call", {}, "name is required"),
        ("tools/call", {"name": "x", "arguments": []}, "arguments must be an object"),
        ("prompts/get", {}, "name is required"),
        ("resources/read", {}, "uri is required"),
        ("completion/complete", {}, "argument is required"),
    ],
)
async def test_params_that_are_wrong_are_named(
    web: Web, era: str, method: str, params: dict[str, Any], told: str
) -> None:
    asked = request(era, method).with_params(**params)
    error = await error_of(web, asked.having(mcp_name=params.get("name")))
    assert error["code"] == INVALID_PARAMS
    assert error["message"] == f"Invalid params of {method}: params.{told}."


@pytest.mark.parametrize("given", ["text/plain", None])
@pytest.mark.parametrize("era", ERAS)
async def test_a_body_that_is_not_said_to_be_json_is_refused_with_what_to_say(
    web: Web, era: str, given: str | None
) -> None:
    error = await error_of(web, request(era, "tools/list").having(content_type=given), 415)
    assert error["code"] == INVALID_REQUEST
    assert error["message"].startswith("Content-Type must be application/json.")


async def test_json_may_be_said_in_more_words(web: Web) -> None:
    given = "application/json; charset=utf-8"
    async with web.client() as client:
        answer = await request(LEGACY, "tools/list").having(content_type=given).send(client)
    assert "result" in message_of(answer)


@pytest.mark.parametrize("version", ["1999-01-01", "\x7fodd", "x" * 1000])
async def test_a_protocol_that_nobody_knows_is_answered_with_those_we_know(
    web: Web, version: str
) -> None:
    asked = request(LEGACY, "tools/list").having(mcp_protocol_version=version)
    error = await error_of(web, asked, 400)
    assert error["code"] == UNSUPPORTED_VERSION
    assert error["message"].startswith("Unsupported protocol version: ")
    for known in (MODERN, *HANDSHAKE_PROTOCOL_VERSIONS):
        assert known in error["message"]
    assert error["message"].isprintable()
    assert len(error["message"]) < 400


def test_the_protocols_that_we_name_are_those_that_the_sdk_speaks() -> None:
    assert (MODERN,) == MODERN_PROTOCOL_VERSIONS
    assert set(HANDSHAKE) == set(HANDSHAKE_PROTOCOL_VERSIONS)


@pytest.mark.parametrize(
    ("era", "allow"), [(MODERN, "POST"), (LEGACY, "POST, GET, DELETE"), (None, "POST, GET, DELETE")]
)
async def test_another_method_is_refused_with_those_that_are_possible(
    web: Web, era: str | None, allow: str
) -> None:
    headers = {"mcp-protocol-version": era} if era else {}
    async with web.client() as client:
        answer = await client.put("/mcp", json={}, headers=headers)
    assert (answer.status_code, answer.headers["allow"]) == (405, allow)
    assert answer.json()["error"]["message"] == f"PUT is not possible here. Use {allow}."


@pytest.mark.parametrize("era", ERAS)
async def test_an_unknown_resource_is_named_in_few_printable_characters(web: Web, era: str) -> None:
    asked = request(era, "resources/read").with_params(uri="x://\x1b[31m" + "y" * 1000)
    if era == MODERN:
        asked = asked.having(mcp_name=None)
    error = await error_of(web, asked)
    if era == LEGACY:
        assert error["message"].startswith("Resource not found: x://?[31myyy")
    assert error["message"].isprintable()
    assert len(error["message"]) < 200


async def test_an_unknown_prompt_is_named_in_few_printable_characters(web: Web) -> None:
    asked = request(LEGACY, "prompts/get").with_params(name="\x1b[31m" + "y" * 1000)
    error = await error_of(web, asked)
    assert error["message"].startswith("Unknown prompt: ?[31myyy")
    assert len(error["message"]) < 200

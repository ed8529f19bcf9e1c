"""A request that asks for another protocol is served as plain HTTP, and is the last one.

Its body is never taken for the next request, whichever parser reads it.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.gate.tools import a_tool, offer
from tests.transports.conftest import Web, opened_web
from tests.transports.lines import Line, known, written
from tests.transports.mcp_requests import MODERN, tool_call
from tests.transports.test_connection_bytes import TURNS, in_chunks, spoken

from toolgate.gate.principal import Role
from toolgate.transports.connection.h11 import LimitedH11
from toolgate.transports.connection.httptools import LimitedHttpTools
from toolgate.transports.connection.known_heads import Connection

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("remembered")]

CLASSES = [Connection, LimitedHttpTools, LimitedH11]
CALL = tool_call(MODERN, "echo", {"nobody": 1})
"""Refused for its argument, which the answer names; nothing waits."""
UPGRADES: dict[str, dict[str, str]] = {
    "websocket": {"connection": "Upgrade", "upgrade": "websocket"},
    "h2c": {"connection": "Upgrade, HTTP2-Settings", "upgrade": "h2c", "http2-settings": "AAMA"},
    "unknown": {"connection": "keep-alive, upgrade", "upgrade": "x"},
}
HEALTH = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
INNER = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nx-ignore: "
"""A body that reads like the begin of a request."""


@pytest.fixture(scope="module")
async def web(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    echo = offer(a_tool("echo", role=Role.PUBLIC))
    async with opened_web(tmp_path_factory.mktemp("upgrade"), echo) as opened:
        yield opened


def cut_after_head(wire: bytes) -> list[bytes]:
    head, end, body = wire.partition(b"\r\n\r\n")
    return [head + end, body]


@pytest.mark.parametrize("upgrade", UPGRADES)
@pytest.mark.parametrize("form", [bytes, in_chunks], ids=["length", "chunks"])
@pytest.mark.parametrize(
    "pieces",
    [lambda wire: [wire], cut_after_head, lambda wire: [bytes([one]) for one in wire]],
    ids=["whole", "head-then-body", "bytes"],
)
async def test_both_parsers_read_its_body_and_answer_byte_for_byte_alike(
    web: Web, upgrade: str, form: Any, pieces: Any
) -> None:
    asked = pieces(form(written(web, CALL, **UPGRADES[upgrade])))
    said, closed = await spoken(web, LimitedH11, asked)
    assert said.startswith(b"HTTP/1.1 200 ")
    assert b"nobody" in said, "the call had its arguments"
    assert b"\r\nconnection: close\r\n" in said
    assert closed
    for connections in (Connection, LimitedHttpTools):
        assert await spoken(web, connections, asked) == (said, closed)


@pytest.mark.parametrize("upgrade", UPGRADES)
@pytest.mark.parametrize("connections", CLASSES)
async def test_a_body_that_comes_later_is_not_the_next_request(
    web: Web, connections: type[Any], upgrade: str
) -> None:
    asked = written(web, CALL, **UPGRADES[upgrade], content_length=str(len(INNER)))
    head = asked.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
    line = Line(web, connections=connections)
    line.feed(head)
    for _ in range(TURNS):
        await asyncio.sleep(0)
    assert not line.pipe.written, "nothing is answered before the body is there"
    line.feed(INNER, HEALTH)
    told = await line.reply()
    assert (told.status, told.headers["connection"]) == (400, "close")
    assert "JSON" in json.loads(told.body)["error"]["message"]
    await line.until(lambda: line.pipe.closed)
    assert not line.pipe.written
    assert line.requests == 1
    await line.hang_up()


@pytest.mark.parametrize("connections", CLASSES)
async def test_nothing_behind_it_is_read(web: Web, connections: type[Any]) -> None:
    asked = HEALTH.replace(b"\r\n\r\n", b"\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n")
    said, closed = await spoken(web, connections, [asked + HEALTH + HEALTH])
    assert said.count(b"HTTP/1.1 ") == 1
    assert closed


@pytest.mark.parametrize("connections", CLASSES)
async def test_without_upgrade_in_connection_nothing_is_asked_for(
    web: Web, connections: type[Any]
) -> None:
    said, closed = await spoken(web, connections, [written(web, CALL, upgrade="x") + HEALTH])
    assert said.count(b"HTTP/1.1 200 ") == 2
    assert not closed


async def test_on_a_connection_that_knows_heads_it_is_no_different(web: Web) -> None:
    line = Line(web)
    await known(line, written(web, CALL))
    told = await line.ask(*cut_after_head(written(web, CALL, **UPGRADES["websocket"])))
    assert (told.status, told.headers["connection"]) == (200, "close")
    assert b"nobody" in told.body
    assert line.requests == 1
    assert line.pipe.closed


@pytest.mark.parametrize("target", ["127.0.0.1:80", "/healthz"])
@pytest.mark.parametrize("connections", CLASSES)
async def test_a_tunnel_is_refused_and_nothing_behind_it_is_read(
    web: Web, connections: type[Any], target: str
) -> None:
    head = f"CONNECT {target} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(HEALTH)}\r\n\r\n"
    line = Line(web, connections=connections)
    line.feed(head.encode())
    told = await line.reply()
    assert (told.status, told.headers["connection"]) == (501, "close")
    assert "CONNECT" in json.loads(told.body)["error"]
    line.feed(HEALTH)
    await line.until(lambda: not line.server.tasks)
    assert not line.pipe.written
    await line.hang_up()

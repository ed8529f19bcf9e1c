"""A request with a file may take longer to arrive than others, by as much as it is larger."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.transports.conftest import Web
from tests.transports.lines import BODY_SECONDS, Line
from tests.transports.test_pending_bodies import USUAL, opened

from toolgate.transports.connection.h11 import LimitedH11
from toolgate.transports.connection.httptools import LimitedHttpTools
from toolgate.transports.connection.known_heads import Connection

pytestmark = pytest.mark.anyio

HEAD = "POST /v1/tools/{} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {}\r\n"
LENGTH = "content-length: {}\r\n\r\n"


@pytest.fixture
async def web(tmp_path: Path) -> AsyncIterator[Web]:
    async with opened(tmp_path, limits__body_seconds=BODY_SECONDS) as made:
        yield made


@pytest.fixture(params=[Connection, LimitedHttpTools, LimitedH11])
async def line(web: Web, request: pytest.FixtureRequest) -> AsyncIterator[Line]:
    line = Line(web, connections=request.param)
    yield line
    await line.hang_up()


async def begun(line: Line, web: Web, tool: str, length: int) -> None:
    head: Any = HEAD.format(tool, web.keys["admin"]) + LENGTH.format(length)
    line.feed(head.encode(), b"{")
    await line.until(lambda: line.requests)
    for _ in range(50):
        await asyncio.sleep(0)


async def test_a_file_has_as_long_as_its_length_takes(web: Web, line: Line) -> None:
    await begun(line, web, "file.take", 4 * USUAL)
    for times in (1, 2, 3, 3.9):
        line.later(BODY_SECONDS * times + 10)
        assert not line.pipe.written
    line.later(BODY_SECONDS * 4 + 10)
    assert (await line.reply()).status == 408


async def test_others_have_no_longer_than_before(web: Web, line: Line) -> None:
    await begun(line, web, "plain", USUAL)
    line.later(BODY_SECONDS - 500)
    assert not line.pipe.written
    line.later(BODY_SECONDS + 10)
    assert (await line.reply()).status == 408

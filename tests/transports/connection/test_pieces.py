"""How much is parsed at once: a body as it comes, everything else in small pieces."""

from collections.abc import AsyncIterator

import pytest
from tests.gate.tools import a_tool, offer
from tests.transports.conftest import Web, opened_web
from tests.transports.lines import Line, written
from tests.transports.mcp_requests import MODERN, tool_call

from toolgate.gate.principal import Role
from toolgate.transports.connection.httptools import LimitedHttpTools
from toolgate.transports.connection.limited import PIECE_BYTES

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("remembered")]

CAME = 65536
"""What a socket gives at once."""


@pytest.fixture(scope="module")
async def web(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    echo = offer(a_tool("echo", role=Role.PUBLIC))
    async with opened_web(tmp_path_factory.mktemp("pieces"), echo) as opened:
        yield opened


@pytest.fixture
async def line(web: Web) -> AsyncIterator[Line]:
    opened = Line(web, connections=LimitedHttpTools)
    yield opened
    await opened.hang_up()


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of what the parser was given."""
    sizes: list[int] = []
    parse = LimitedHttpTools._parse  # pyright: ignore[reportPrivateUsage]

    def noted(self: LimitedHttpTools, data: bytes) -> bool:
        sizes.append(len(data))
        return parse(self, data)

    monkeypatch.setattr(LimitedHttpTools, "_parse", noted)
    return sizes


def call(web: Web, text: str = "") -> bytes:
    return written(web, tool_call(MODERN, "echo", {"text": text}))


async def test_a_body_of_known_length_is_parsed_as_it_comes(
    web: Web, line: Line, parsed: list[int]
) -> None:
    wire = call(web, "a" * (8 * CAME))
    line.feed(*(wire[at : at + CAME] for at in range(0, len(wire), CAME)))
    assert (await line.reply()).status == 200
    assert sum(parsed) == len(wire)
    assert len(parsed) <= 8 + 2 + 1  # two in place of the first, and what is left at the end


async def test_what_stands_behind_a_body_is_parsed_in_small_pieces(
    web: Web, line: Line, parsed: list[int]
) -> None:
    first = call(web, "a" * CAME)
    line.feed(first[:CAME])
    parsed.clear()
    line.feed(first[CAME:] + call(web) * 12)
    assert [(await line.reply()).status for _ in range(13)] == [200] * 13
    assert max(parsed) == PIECE_BYTES < len(call(web)) * 12


async def test_a_body_in_chunks_is_parsed_in_small_pieces(
    web: Web, line: Line, parsed: list[int]
) -> None:
    head, _, body = call(web, "a" * CAME).partition(b"\r\n\r\n")
    lines = [one for one in head.split(b"\r\n") if not one.lower().startswith(b"content-length")]
    chunked = b"\r\n".join([*lines, b"transfer-encoding: chunked"])
    line.feed(b"%b\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (chunked, len(body), body))
    assert (await line.reply()).status == 200
    assert max(parsed) == PIECE_BYTES

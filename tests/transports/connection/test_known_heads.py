"""A request that is known is answered like any other, and none is known that should not be."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError
from tests.gate.tools import Said, a_tool, offer
from tests.transports.conftest import Web, opened_web
from tests.transports.lines import Line, fresh_line, known, written
from tests.transports.mcp_requests import ERAS, LEGACY, MODERN, Request, request, tool_call

from toolgate.db.engine import Database
from toolgate.gate.principal import Role

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("remembered")]

READ = {"collection": "users", "document_id": "jane"}


class Door:
    """Holds a tool back until the test lets it go."""

    def __init__(self) -> None:
        self.close()

    def close(self) -> None:
        self.entered, self.open = asyncio.Event(), asyncio.Event()

    async def run(self, *_: Any) -> Said:
        self.entered.set()
        await self.open.wait()
        return Said(through=True)


DOOR = Door()


@pytest.fixture(scope="module")
async def web(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    tools = a_tool("echo", role=Role.PUBLIC), a_tool("held", DOOR.run, role=Role.PUBLIC)
    async with opened_web(tmp_path_factory.mktemp("connections"), offer(*tools)) as opened:
        yield opened


@pytest.fixture
async def line(web: Web) -> Line:
    """A connection to an application that knows no request yet."""
    return fresh_line(web)


async def known_held(line: Line, asked: bytes) -> None:
    DOOR.open.set()
    await known(line, asked)
    DOOR.close()


def every_request(era: str) -> list[Request]:
    return [
        request(era, "tools/list"),
        tool_call(era, "echo", {}),
        tool_call(era, "get_document", READ),
        tool_call(era, "get_document", {"collection": "users"}),
        tool_call(era, "no_such_tool", {}),
    ]


@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("era", ERAS)
async def test_a_known_request_is_answered_alike_without_asgi(
    web: Web, line: Line, era: str, number: int
) -> None:
    asked = written(web, every_request(era)[number])
    told = [await line.ask(asked) for _ in range(4)]
    assert line.requests == 2, "a head is kept when it comes the second time"
    assert all(one.told == told[0].told for one in told)
    assert len({one.headers["x-request-id"] for one in told}) == 4


async def test_a_known_call_is_audited_under_its_own_request(web: Web, line: Line) -> None:
    asked = written(web, tool_call(MODERN, "echo", {}), "user")
    await known(line, asked)
    told = await line.ask(asked)
    await web.kit.app.gate.audit.flush()
    (row,) = await web.audit_rows(told.headers["x-request-id"])
    assert (row["tool_name"], row["user_id"], row["status"]) == ("echo", "abc123", "success")
    assert line.requests == 0


async def test_the_length_of_the_body_may_differ(web: Web, line: Line) -> None:
    await known(line, written(web, tool_call(LEGACY, "get_document", READ)))
    other = tool_call(LEGACY, "get_document", {**READ, "document_id": "j" * 200}).saying(id=12345)
    told = await line.ask(written(web, other))
    assert line.requests == 0
    assert json.loads(told.body)["id"] == 12345
    assert "j" * 200 in told.body.decode()


async def test_names_of_headers_may_be_written_large(web: Web, line: Line) -> None:
    small = written(web, tool_call(MODERN, "echo", {}))
    large = small.replace(b"\r\ncontent-length", b"\r\nContent-Length")
    await known(line, large)
    assert (await line.ask(large)).status == 200
    assert line.requests == 0
    assert (await line.ask(small)).status == 200
    assert line.requests == 1


async def test_a_request_may_come_in_two_pieces_cut_anywhere(web: Web, line: Line) -> None:
    asked = written(web, tool_call(MODERN, "echo", {}))
    first = await line.ask(asked)
    for cut in range(1, len(asked)):
        told = await line.ask(asked[:cut], asked[cut:])
        assert told.told == first.told, cut
        assert not line.pipe.written


async def test_a_head_with_its_body_behind_needs_no_asgi(web: Web, line: Line) -> None:
    asked = written(web, tool_call(MODERN, "echo", {}))
    await known(line, asked)
    end = asked.index(b"\r\n\r\n") + 4
    for cut in (end, end + 1, len(asked) - 1):
        assert (await line.ask(asked[:cut], asked[cut:])).status == 200
    assert line.requests == 0


async def test_requests_may_come_together(web: Web, line: Line) -> None:
    asked = [written(web, tool_call(MODERN, "echo", {}).saying(id=number)) for number in range(4)]
    await known(line, asked[0])
    line.feed(asked[1] + asked[2] + asked[3][:50], asked[3][50:])
    told = [json.loads((await line.reply()).body)["id"] for _ in range(3)]
    assert told == [1, 2, 3]


async def test_what_comes_during_a_call_is_answered_after_it(web: Web, line: Line) -> None:
    held, echo = (written(web, tool_call(LEGACY, name, {})) for name in ("held", "echo"))
    await known_held(line, held)
    line.feed(held)
    await DOOR.entered.wait()
    line.feed(echo[:30])
    assert not line.pipe.reading
    line.feed(echo[30:])
    assert not line.pipe.written
    DOOR.open.set()
    assert b"through" in (await line.reply()).body
    assert b"through" not in (await line.reply()).body
    assert line.pipe.reading
    assert line.requests == 0


async def test_what_is_not_plain_goes_the_ordinary_way(web: Web, line: Line) -> None:
    await known(line, written(web, request(LEGACY, "tools/list")))
    line.feed(written(web, request(LEGACY, "ping")))
    await line.until(lambda: b'"result":{}' in line.pipe.written)
    assert line.requests == 1


async def test_what_cannot_be_read_is_audited_once(web: Web, line: Line) -> None:
    await known(line, written(web, request(LEGACY, "tools/list")))
    asked = request(LEGACY, "tools/list")
    told = await line.ask(written(web, Request(b"{nonsense", asked.headers)))
    assert told.status == 400
    await web.kit.app.gate.audit.flush()
    (row,) = await web.audit_rows(told.headers["x-request-id"])
    assert row["rule"] == "unreadable"


async def test_one_from_elsewhere_is_not_known(web: Web, line: Line) -> None:
    asked = written(web, tool_call(MODERN, "echo", {}))
    await known(line, asked)
    other = Line(web, peer="192.0.2.7")
    assert (await other.ask(asked)).status == 200
    assert other.requests == 1


async def test_another_caller_with_the_same_head_is_looked_up(web: Web, line: Line) -> None:
    await known(line, written(web, tool_call(MODERN, "echo", {})))
    asked = written(web, tool_call(MODERN, "echo", {}), "user")
    told = [await line.ask(asked) for _ in range(2)]
    assert line.requests == 0
    await web.kit.app.gate.audit.flush()
    for one in told:
        assert one.status == 200
        (row,) = await web.audit_rows(one.headers["x-request-id"])
        assert row["user_id"] == "abc123"


async def test_a_caller_is_not_looked_up_on_a_database_that_is_away(
    web: Web, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    await known(line, written(web, tool_call(MODERN, "echo", {})))

    async def away(*_: Any) -> Any:
        raise OperationalError("SELECT", {}, Exception("away"))

    monkeypatch.setattr(Database, "look_up", away)
    told = await line.ask(written(web, tool_call(MODERN, "echo", {}), "pm"))
    assert told.status == 503


async def test_a_key_that_is_ended_is_refused_at_once(web: Web, line: Line) -> None:
    made = await web.kit.app.keys.create(role=Role.USER)
    web.keys["guest"] = made.key
    asked = written(web, tool_call(MODERN, "echo", {}), "guest")
    await known(line, asked)
    assert (await line.ask(asked)).status == 200
    assert line.requests == 0
    await web.kit.app.keys.revoke(made.id)
    assert (await line.ask(asked)).status == 401


async def test_a_client_that_reads_nothing_is_not_written_to_without_end(
    web: Web, line: Line
) -> None:
    asked = written(web, request(MODERN, "tools/list"))
    await known(line, asked)
    line.server.pause_writing()
    line.feed(asked)
    for _ in range(50):
        await asyncio.sleep(0)
    assert not line.pipe.written
    line.server.resume_writing()
    assert (await line.reply()).status == 200
    assert line.requests == 1


async def test_a_server_that_stops_answers_what_it_began(web: Web, line: Line) -> None:
    held = written(web, tool_call(MODERN, "held", {}))
    await known_held(line, held)
    line.feed(held)
    await DOOR.entered.wait()
    assert len(line.server.tasks) == 1
    line.server.shutdown()
    assert not line.pipe.closed
    DOOR.open.set()
    await line.until(lambda: line.pipe.closed)
    assert b"connection: close\r\n" in line.pipe.written
    assert b"through" in line.pipe.written
    assert not line.server.tasks


async def test_a_stranger_that_is_refused_while_the_server_stops_is_answered(
    web: Web, line: Line
) -> None:
    asked = tool_call(MODERN, "echo", {})
    await known(line, written(web, asked))
    line.feed(written(web, asked, authorization="Bearer wrong"))
    line.server.shutdown()
    assert not line.pipe.closed
    await line.until(lambda: line.pipe.closed)
    assert b" 401 " in line.pipe.written
    assert b"connection: close\r\n" in line.pipe.written


async def test_a_server_that_stops_waits_for_a_body_that_has_begun(web: Web, line: Line) -> None:
    asked = written(web, tool_call(MODERN, "echo", {}))
    await known(line, asked)
    line.feed(asked[:-5])
    line.server.shutdown()
    assert not line.pipe.closed
    line.feed(asked[-5:])
    await line.until(lambda: line.pipe.closed)
    assert b" 200 " in line.pipe.written
    assert b"connection: close\r\n" in line.pipe.written
    assert line.requests == 0


async def test_a_body_that_does_not_end_is_told_that_the_server_stops(web: Web, line: Line) -> None:
    asked = written(web, tool_call(MODERN, "echo", {}))
    await known(line, asked)
    line.feed(asked[:-5])
    line.server.shutdown()
    line.table.stop_reading()
    told = await line.reply()
    assert (told.status, told.headers["connection"]) == (503, "close")
    assert json.loads(told.body) == {"error": "The server is stopping. Try again."}
    line.later(1)
    assert line.pipe.closed


async def test_an_idle_connection_ends_with_the_server(web: Web, line: Line) -> None:
    asked = written(web, tool_call(MODERN, "echo", {}))
    await known(line, asked)
    await line.ask(asked)
    line.server.shutdown()
    await line.until(lambda: line.pipe.closed)
    assert not line.pipe.written


async def test_a_client_that_leaves_during_a_call_leaves_its_audit(web: Web, line: Line) -> None:
    held = written(web, tool_call(MODERN, "held", {}), "user")
    await known_held(line, held)
    before = len(await web.kit.audit_rows())
    line.feed(held)
    await DOOR.entered.wait()
    line.feed(held)
    line.pipe.closed = True
    line.server.connection_lost(None)
    DOOR.open.set()
    await line.until(lambda: not line.server.tasks)
    await web.kit.app.gate.audit.flush()
    assert len(await web.kit.audit_rows()) == before + 1
    assert not line.pipe.written

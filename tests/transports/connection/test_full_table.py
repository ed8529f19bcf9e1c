"""One key does not lock others out, whatever its holder leaves incomplete."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from tests.gate.tools import a_tool, offer
from tests.transports.conftest import Web, opened_web
from tests.transports.connection.test_known_heads import Door
from tests.transports.lines import LONG_LIMITS, Line, known, written
from tests.transports.mcp_requests import MODERN, tool_call

from toolgate.gate.principal import Role
from toolgate.transports.connection.h11 import LimitedH11
from toolgate.transports.connection.httptools import LimitedHttpTools
from toolgate.transports.connection.known_heads import Connection
from toolgate.transports.connection.limited import KEEP_ALIVE_SECONDS
from toolgate.transports.connection.table import ConnectionTable

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("remembered")]

CLASSES = [Connection, LimitedHttpTools, LimitedH11]
CAPACITY = 16
HEALTH = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
IDLE = 5
DOOR = Door()

Connect = Callable[..., Line]


@pytest.fixture(scope="module")
async def web(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    tools = a_tool("echo", role=Role.PUBLIC), a_tool("held", DOOR.run, role=Role.PUBLIC)
    async with opened_web(tmp_path_factory.mktemp("full"), offer(*tools)) as opened:
        yield opened


@pytest.fixture
def table() -> ConnectionTable:
    limits = LONG_LIMITS.model_copy(update={"connections": CAPACITY})
    return ConnectionTable(limits, clock=lambda: 100.0)


@pytest.fixture(params=CLASSES)
async def connect(
    web: Web, table: ConnectionTable, request: pytest.FixtureRequest
) -> AsyncIterator[Connect]:
    lines: list[Line] = []

    def connect(peer: str = "192.0.2.1") -> Line:
        given: Any = {"connections": request.param, "idle_seconds": IDLE}
        lines.append(Line(web, peer=peer, table=table, **given))
        return lines[-1]

    yield connect
    for line in lines:
        await line.hang_up()


def get(key: str | None, *more: str) -> bytes:
    credential = [f"authorization: Bearer {key}"] if key else []
    lines = ["GET /v1/tools HTTP/1.1", "host: 127.0.0.1", *credential, *more]
    return "\r\n".join([*lines, "", ""]).encode()


def open_ones(lines: list[Line]) -> list[int]:
    return [number for number, line in enumerate(lines) if not line.pipe.closed]


async def opened_by(web: Web, connect: Connect, number: int, holder: str = "user") -> list[Line]:
    """Connections on which a key was accepted."""
    lines: list[Line] = []
    for _ in range(number):
        lines.append(connect())
        assert (await lines[-1].ask(get(web.keys[holder]))).status == 200
    return lines


async def others_get_in(web: Web, connect: Connect) -> None:
    """Somebody else's call and a health check are answered."""
    assert (await connect("192.0.2.9").ask(get(web.keys["admin"]))).status == 200
    assert (await connect("192.0.2.8").ask(HEALTH)).status == 200


@pytest.mark.parametrize("part", ["head", "body"])
async def test_who_leaves_requests_incomplete_makes_room_for_others(
    web: Web, connect: Connect, part: str
) -> None:
    lines = await opened_by(web, connect, CAPACITY)
    wire = written(web, tool_call(MODERN, "echo", {}), "user")
    for line in lines:
        line.feed(wire[:20] if part == "head" else wire[:-1])
    await others_get_in(web, connect)
    assert open_ones(lines) == list(range(2, CAPACITY)), "the oldest went"


async def test_the_rest_of_a_body_that_nobody_reads_keeps_no_place(
    web: Web, connect: Connect
) -> None:
    lines: list[Line] = []
    for _ in range(CAPACITY):
        lines.append(connect())
        asked = get(web.keys["user"], "content-length: 1")
        assert (await lines[-1].ask(asked)).status == 200
    await others_get_in(web, connect)
    assert open_ones(lines) == list(range(2, CAPACITY))
    lines[-1].later(IDLE)
    assert not open_ones(lines), "it is not waited for as long as for a request"


async def test_who_sends_the_rest_of_its_body_after_its_answer_keeps_its_connection(
    web: Web, connect: Connect
) -> None:
    line = connect()
    assert (await line.ask(get(web.keys["user"], "content-length: 1"))).status == 200
    line.feed(b"x")
    line.later(KEEP_ALIVE_SECONDS - 3)
    assert not line.pipe.closed
    assert (await line.ask(get(web.keys["user"]))).status == 200


@pytest.mark.parametrize("credential", ["revoked", "none", "wrong"])
async def test_a_credential_that_is_refused_makes_a_stranger_of_its_holder(
    web: Web, connect: Connect, credential: str
) -> None:
    made = await web.kit.app.keys.create(role=Role.PUBLIC)
    lines = [connect() for _ in range(2)]
    wire = written(web, tool_call(MODERN, "echo", {}), authorization=f"Bearer {made.key}")
    for line in lines:
        await known(line, wire)
        assert (await line.ask(wire)).status == 200
        assert line.server.has_credentials
    await web.kit.app.keys.revoke(made.id)
    key = {"revoked": made.key, "none": None, "wrong": "wrong"}[credential]
    assert (await lines[0].ask(get(key))).status == 401
    assert not lines[0].server.has_credentials
    lines[0].feed(wire[:20])
    for number in range(CAPACITY):
        connect(f"192.0.2.{number}")
    assert open_ones(lines) == [1]


async def test_a_stranger_that_was_a_client_may_become_one_again(
    web: Web, connect: Connect, table: ConnectionTable
) -> None:
    (line,) = await opened_by(web, connect, 1)
    assert (await line.ask(get("wrong"))).status == 401
    assert (await line.ask(get(web.keys["user"]))).status == 200
    for number in range(2 * CAPACITY):
        connect(f"192.0.2.{number}")
    assert not line.pipe.closed
    assert len(table) == CAPACITY


async def test_a_health_check_on_a_connection_of_a_client_leaves_it_one(
    web: Web, connect: Connect
) -> None:
    (line,) = await opened_by(web, connect, 1)
    assert (await line.ask(HEALTH)).status == 200
    assert line.server.has_credentials


@pytest.mark.parametrize("part", [b"", b"GET /"], ids=["idle", "within a head"])
async def test_in_a_full_table_who_has_more_than_half_of_it_goes_before_other_clients(
    web: Web, connect: Connect, part: bytes
) -> None:
    (other,) = await opened_by(web, connect, 1, "admin")
    lines = await opened_by(web, connect, CAPACITY - 1)
    for line in lines:
        line.feed(part)
    await opened_by(web, connect, 3, "admin")
    assert open_ones(lines) == list(range(3, CAPACITY - 1))
    assert not other.pipe.closed


async def test_strangers_take_no_place_of_a_request_that_is_incomplete(
    web: Web, connect: Connect
) -> None:
    lines = await opened_by(web, connect, CAPACITY - 2)
    wire = written(web, tool_call(MODERN, "echo", {}), "user")
    for line in lines:
        line.feed(wire[:-1])
    for number in range(3 * CAPACITY):
        connect(f"192.0.2.{number}")
    assert open_ones(lines) == list(range(CAPACITY - 2))
    for line in lines:
        assert (await line.ask(wire[-1:])).status == 200


async def test_a_call_that_runs_keeps_its_place_whoever_comes(web: Web, connect: Connect) -> None:
    lines = await opened_by(web, connect, CAPACITY)
    DOOR.close()
    lines[0].feed(written(web, tool_call(MODERN, "held", {}), "user"))
    await DOOR.entered.wait()
    for line in lines[1:]:
        line.feed(b"GET /")
    for number in range(CAPACITY):
        connect(f"192.0.2.{number}")
    assert not lines[0].pipe.closed
    DOOR.open.set()
    assert (await lines[0].reply()).status == 200


async def test_a_client_that_pipelines_is_no_stranger(web: Web, connect: Connect) -> None:
    line = connect()
    asked = get(web.keys["user"])
    assert (await line.ask(asked + asked[:20])).status == 200
    assert line.server.has_credentials
    for number in range(CAPACITY // 2):
        connect(f"192.0.2.{number}")
    connect("192.0.2.250").feed(b"GET /")
    for number in range(2 * CAPACITY):
        connect(f"192.0.2.{number}")
    assert (await line.ask(asked[20:])).status == 200

"""Too many connections: strangers go first, and whoever is served stays."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from tests.gate.tools import a_tool, offer
from tests.transports.conftest import Web, opened_web
from tests.transports.connection.test_known_heads import Door
from tests.transports.lines import LONG_LIMITS, Line, written
from tests.transports.mcp_requests import MODERN, tool_call

from toolgate.gate.principal import Role
from toolgate.sections import LimitSettings, ServerSettings
from toolgate.transports.connection.table import ConnectionTable, backlog, default_capacity
from toolgate.transports.peers import Peers

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("remembered")]

HEALTH = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
CAPACITY = 16
FULL = (
    "All 16 connections are taken (setting limits.connections); the oldest without "
    "credentials are closed, then those that are idle or send slowly, of the caller with the most "
    "first."
)
DOOR = Door()

Connect = Callable[..., Line]


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
async def web(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    tools = a_tool("echo", role=Role.PUBLIC), a_tool("held", DOOR.run, role=Role.PUBLIC)
    async with opened_web(tmp_path_factory.mktemp("table"), offer(*tools)) as opened:
        yield opened


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def table(clock: Clock) -> ConnectionTable:
    limits = LONG_LIMITS.model_copy(update={"connections": CAPACITY})
    peers = Peers(ServerSettings(trusted_proxies=("10.0.0.0/8",)))
    return ConnectionTable(limits, peers.of_connection, clock)


@pytest.fixture
async def connect(web: Web, table: ConnectionTable) -> AsyncIterator[Connect]:
    lines: list[Line] = []

    def connect(peer: str = "192.0.2.1") -> Line:
        lines.append(Line(web, peer=peer, table=table))
        return lines[-1]

    yield connect
    for line in lines:
        await line.hang_up()


def open_ones(lines: list[Line]) -> list[int]:
    return [number for number, line in enumerate(lines) if not line.pipe.closed]


async def test_the_oldest_stranger_goes_for_a_new_connection(
    connect: Connect, table: ConnectionTable
) -> None:
    lines = [connect(f"192.0.2.{number}") for number in range(CAPACITY + 5)]
    assert open_ones(lines) == list(range(5, CAPACITY + 5))
    assert len(table) == CAPACITY
    assert (await lines[-1].ask(HEALTH)).status == 200


async def test_a_stranger_that_was_answered_is_still_a_stranger(connect: Connect) -> None:
    first = connect("192.0.2.9")
    assert (await first.ask(HEALTH)).status == 200
    for number in range(CAPACITY):
        connect(f"192.0.2.{number}")
    assert first.pipe.closed


@pytest.mark.parametrize("times", [1, 3])
async def test_clients_with_credentials_stay(web: Web, connect: Connect, times: int) -> None:
    client = connect("192.0.2.9")
    asked = written(web, tool_call(MODERN, "echo", {}))
    for _ in range(times):  # the last of three has a known head
        assert (await client.ask(asked)).status == 200
    for number in range(3 * CAPACITY):
        connect(f"192.0.2.{number}")
    assert not client.pipe.closed
    assert (await client.ask(asked)).status == 200


async def test_a_wrong_credential_is_none(web: Web, connect: Connect) -> None:
    client = connect("192.0.2.9")
    asked = written(web, tool_call(MODERN, "echo", {}), authorization="Bearer wrong")
    assert (await client.ask(asked)).status == 401
    for number in range(CAPACITY):
        connect(f"192.0.2.{number}")
    assert client.pipe.closed


async def test_where_all_have_credentials_the_oldest_idle_one_goes(
    web: Web, connect: Connect
) -> None:
    asked = written(web, tool_call(MODERN, "echo", {}))
    lines = [connect(f"192.0.2.{number}") for number in range(CAPACITY)]
    for line in lines:
        await line.ask(asked)
    lines[0].feed(asked[:30])
    newcomer = connect()
    assert open_ones(lines) == [0, *range(2, CAPACITY)]
    assert (await newcomer.ask(HEALTH)).status == 200


async def test_whoever_is_being_answered_stays_and_a_newcomer_is_told(
    web: Web, connect: Connect
) -> None:
    DOOR.close()
    held = written(web, tool_call(MODERN, "held", {}))
    lines = [connect(f"192.0.2.{number}") for number in range(CAPACITY)]
    for line in lines:
        line.feed(held)
        await asyncio.sleep(0)
    await DOOR.entered.wait()
    newcomer = connect()
    assert newcomer.pipe.written.startswith(b"HTTP/1.1 503 ")
    assert newcomer.pipe.written.endswith(
        b'{"error":"All connections are taken. Try again later."}'
    )
    assert newcomer.pipe.closed
    assert open_ones(lines) == list(range(CAPACITY))
    DOOR.open.set()
    for line in lines:
        assert (await line.reply()).status == 200


async def test_one_peer_cannot_take_the_places_of_all_strangers(connect: Connect) -> None:
    others = [connect(f"192.0.2.{number}") for number in range(4)]
    flood = [connect("198.51.100.7") for _ in range(3 * CAPACITY)]
    assert open_ones(others) == [0, 1, 2, 3]
    assert open_ones(flood) == list(range(3 * CAPACITY - CAPACITY // 2, 3 * CAPACITY))


async def test_a_household_on_ipv6_is_one_peer(connect: Connect) -> None:
    flood = [connect(f"2001:db8::{number:x}") for number in range(CAPACITY)]
    assert len(open_ones(flood)) == CAPACITY // 2


async def test_behind_a_trusted_proxy_are_many(connect: Connect) -> None:
    crowd = [connect("10.1.2.3") for _ in range(CAPACITY)]
    assert len(open_ones(crowd)) == CAPACITY


async def test_a_full_table_is_told_once_and_its_end_once(
    connect: Connect, table: ConnectionTable, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    lines = [connect(f"192.0.2.{number}") for number in range(5 * CAPACITY)]
    table.sweep(0)
    assert caplog.messages == [FULL]
    clock.now += 30
    connect("192.0.2.200")
    table.sweep(0)
    assert caplog.messages == [FULL]
    for line in lines:
        await line.hang_up()
    clock.now += 59
    table.sweep(0)
    assert caplog.messages == [FULL], "it may not be over yet"
    clock.now += 1
    for _ in range(3):
        table.sweep(0)
    ended = "There is room for connections again. (65 times in 90 s)"
    assert caplog.messages == [FULL, ended]


async def test_a_connection_that_is_gone_leaves_nothing(
    web: Web, connect: Connect, table: ConnectionTable
) -> None:
    for number in range(3):
        line = connect()
        if number:
            await line.ask(written(web, tool_call(MODERN, "echo", {})))
        await line.hang_up()
    assert len(table) == 0
    left = {name: value for name, value in vars(table).items() if isinstance(value, dict)}
    assert left
    assert not any(left.values())


@pytest.mark.parametrize("files", [64, 256, 1024, 4096, 20_000, 1_000_000, None])
def test_by_default_connections_leave_files_for_all_that_may_be_accepted_at_once(
    files: int | None,
) -> None:
    assert LimitSettings().connections is None
    capacity = default_capacity(files)
    assert 16 <= capacity <= 10_000
    if files is not None and files >= 256:
        assert capacity + backlog(files) + 64 <= files

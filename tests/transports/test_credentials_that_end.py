"""A key that is revoked or expires ends everywhere within a second, by whichever process it was.

The clock is the tests' own: what is remembered for a second is forgotten when they say so, and who
waits between two looks at a stream's credential goes on when they say so.
"""

import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from sqlalchemy import update
from tests.gate.tools import a_tool, offer
from tests.patience import PATIENT
from tests.transports.conftest import Web, opened_web
from tests.transports.mcp_requests import ERAS, LEGACY, MODERN, Request, initialize, request
from tests.transports.peers import Peer, call, message, piped

from toolgate.db.tables import keys as key_table
from toolgate.gate.audit_records import timestamp
from toolgate.gate.context import Context
from toolgate.gate.principal import Role
from toolgate.identity import credential_changes, credentials
from toolgate.identity.keys import Keys, NewKey
from toolgate.transports import stream_credentials
from toolgate.transports.connection import heads
from toolgate.transports.mcp import stdio

pytestmark = pytest.mark.anyio

UNAUTHENTICATED, UNAVAILABLE = -32100, -32500


STARTS = count(1000, 1000)


@dataclass
class Clock:
    """A second passes when the test says so; it is later than in any test before."""

    now: float = field(default_factory=lambda: time.monotonic() + next(STARTS))

    def monotonic(self) -> float:
        return self.now


@dataclass
class Ticks:
    """Stands for the pause between two looks at a credential."""

    waiting: list[anyio.Event] = field(default_factory=list[anyio.Event])
    paused: list[float] = field(default_factory=list[float])

    async def pause(self, seconds: float) -> None:
        self.paused.append(seconds)
        self.waiting.append(anyio.Event())
        await self.waiting[-1].wait()

    def tick(self) -> None:
        for one in self.waiting:
            one.set()
        self.waiting.clear()


@dataclass
class Held:
    """What a call that runs for long waits for."""

    started: anyio.Event = field(default_factory=anyio.Event)
    go_on: anyio.Event = field(default_factory=anyio.Event)


HELD: list[Held] = []


async def hold(ctx: Context, args: Any) -> Any:
    HELD[-1].started.set()
    await HELD[-1].go_on.wait()
    return await ECHO.handler(ctx, args)


ECHO = a_tool("echo")


@pytest.fixture(scope="module")
async def web(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    folder = tmp_path_factory.mktemp("ending")
    async with opened_web(folder, offer(ECHO, a_tool("hold", hold))) as opened:
        yield opened


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    now = SimpleNamespace(monotonic=made.monotonic, time=time.time)
    for module in (credentials, credential_changes, heads):
        monkeypatch.setattr(module, "time", now)
    return made


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> Ticks:
    made = Ticks()
    monkeypatch.setattr(stream_credentials, "pause", made.pause)
    return made


@pytest.fixture
async def key(web: Web) -> NewKey:
    return await web.kit.app.keys.create(role=Role.ADMIN)


async def revoke_elsewhere(web: Web, key: NewKey) -> None:
    """As another process does it: nobody here is told."""
    await Keys(web.kit.app.gate.database).revoke(key.id)


async def expire(web: Web, key: NewKey) -> None:
    ended = update(key_table).where(key_table.c.id == key.id).values(expires_at=timestamp())
    await web.kit.app.gate.database.write(lambda connection: connection.execute(ended))


async def revoke_here(web: Web, key: NewKey) -> None:
    await web.kit.app.keys.revoke(key.id)


End = Callable[[Web, NewKey], Any]
ENDS = [revoke_elsewhere, expire, revoke_here]


# Standard input and output


@asynccontextmanager
async def started_with(web: Web, key: NewKey) -> AsyncGenerator[Peer, None]:
    app = web.kit.app
    principal = await app.credentials.holder(key.key)
    assert principal is not None

    def identify(oldest: float | None) -> Any:
        return app.credentials.holder(key.key, oldest)

    async with piped(app.gate, principal, identify=identify) as peer:
        yield peer


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("way", ["short", "sdk"])
async def test_on_standard_input_nothing_is_done_for_a_key_that_ended_a_second_ago(
    web: Web,
    key: NewKey,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
    era: str,
    end: End,
) -> None:
    if way == "sdk":
        monkeypatch.setattr(stdio, "plain_request", lambda *_: None)
    before = len(await web.kit.audit_rows())
    async with started_with(web, key) as peer:
        await peer.open(era)
        assert "result" in await peer.ask(call("echo", {}, era=era))
        await end(web, key)
        clock.now += 1.0
        for asked in (call("echo", {}, era=era), message("tools/list", era=era)):
            told = await peer.ask(asked)
            assert told["error"]["code"] == UNAUTHENTICATED
            assert "expired or was revoked" in told["error"]["message"]
    rows = (await web.kit.audit_rows())[before:]
    refused = [row for row in rows if row["rule"] == "credentials-required"]
    assert len(refused) == 2
    assert {row["transport"] for row in refused} == {"stdio"}


async def test_on_standard_input_a_good_key_goes_on(web: Web, key: NewKey, clock: Clock) -> None:
    async with started_with(web, key) as peer:
        for _ in range(3):
            assert "result" in await peer.ask(call("echo", {}))
            clock.now += 1.0


async def test_on_standard_input_other_requests_are_refused_too(
    web: Web, key: NewKey, clock: Clock
) -> None:
    async with started_with(web, key) as peer:
        await peer.open(LEGACY)
        await revoke_elsewhere(web, key)
        clock.now += 1.0
        for method in ("ping", "prompts/list", "resources/list"):
            told = await peer.ask(message(method, era=LEGACY))
            assert told["error"]["code"] == UNAUTHENTICATED


async def test_a_call_that_runs_when_its_key_ends_is_finished(
    web: Web, key: NewKey, clock: Clock
) -> None:
    HELD.append(Held())
    async with started_with(web, key) as peer:
        await peer.send(call("hold", {}, id=1))
        with anyio.fail_after(PATIENT):
            await HELD[-1].started.wait()
        await revoke_elsewhere(web, key)
        clock.now += 1.0
        assert (await peer.ask(call("echo", {}, id=2)))["error"]["code"] == UNAUTHENTICATED
        HELD[-1].go_on.set()
        told = await peer.answer()
        assert (told["id"], "result" in told) == (1, True)


@pytest.mark.parametrize("end", ENDS)
async def test_a_subscription_on_standard_input_ends(
    web: Web, key: NewKey, ticks: Ticks, clock: Clock, end: End
) -> None:
    listen = message("subscriptions/listen", id=5, notifications={"toolsListChanged": True})
    async with started_with(web, key) as peer:
        told = await peer.ask(listen)
        assert told["method"] == "notifications/subscriptions/acknowledged"
        await until(lambda: ticks.waiting)
        await end(web, key)
        clock.now += stream_credentials.EVERY_SECONDS
        ticks.tick()
        told = await peer.answer()
        assert (told["id"], told["error"]["code"]) == (5, UNAUTHENTICATED)


# Streams over HTTP


@dataclass
class Stream:
    """A request whose answer stays open, as an ASGI server sees it."""

    sent: list[Any] = field(default_factory=list[Any])
    ended: anyio.Event = field(default_factory=anyio.Event)

    @property
    def is_open(self) -> bool:
        return any(one["type"] == "http.response.start" for one in self.sent) and not self.is_closed

    @property
    def is_closed(self) -> bool:
        """Properly, with the last piece of its body."""
        last = self.sent[-1] if self.sent else {"type": ""}
        return last["type"] == "http.response.body" and not last.get("more_body", False)

    @property
    def text(self) -> str:
        return b"".join(one.get("body", b"") for one in self.sent).decode()


async def until(holds: Callable[[], object]) -> None:
    with anyio.fail_after(PATIENT):
        while not holds():
            await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def opened(
    web: Web, key: NewKey, method: str, wanted: Request, **headers: str
) -> AsyncGenerator[Stream, None]:
    stream, body = Stream(), json.dumps(wanted.body).encode() if method == "POST" else b""
    every = {"host": "127.0.0.1", "authorization": f"Bearer {key.key}", **wanted.headers, **headers}
    scope: dict[str, Any] = {
        "type": "http",
        "method": method,
        "path": "/mcp",
        "raw_path": b"/mcp",
        "root_path": "",
        "scheme": "http",
        "http_version": "1.1",
        "query_string": b"",
        "client": ("127.0.0.1", 4711),
        "server": ("127.0.0.1", 80),
        "headers": [
            (name.replace("_", "-").encode(), value.encode()) for name, value in every.items()
        ],
    }
    pending = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        if pending:
            return pending.pop()
        await anyio.sleep_forever()

    async def send(message: Any) -> None:
        stream.sent.append(message)

    async def serve() -> None:
        await web.app(scope, receive, send)
        stream.ended.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        yield stream
        tasks.cancel_scope.cancel()


async def session_of(web: Web, key: NewKey) -> str:
    """A session of an older client."""
    async with web.client(None, Authorization=f"Bearer {key.key}") as client:
        answer = await initialize("sampling").send(client)
        session: str = answer.headers["mcp-session-id"]
        said = Request({"jsonrpc": "2.0", "method": "notifications/initialized"}, LISTEN.headers)
        await said.having(mcp_session_id=session).send(client)
    return session


LISTEN = request(LEGACY, "ping")
SUBSCRIBE = request(MODERN, "subscriptions/listen", {"notifications": {"toolsListChanged": True}})


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("era", ERAS)
async def test_an_open_stream_ends_with_its_key(
    web: Web, key: NewKey, ticks: Ticks, clock: Clock, era: str, end: End
) -> None:
    more = {"mcp_session_id": await session_of(web, key)} if era == LEGACY else {}
    asked = ("POST", SUBSCRIBE) if era == MODERN else ("GET", LISTEN)
    async with opened(web, key, *asked, **more) as stream:
        await until(lambda: stream.is_open and ticks.waiting)
        for _ in range(3):  # as long as the key is good, nothing happens to it
            clock.now += stream_credentials.EVERY_SECONDS
            ticks.tick()
            await until(lambda: ticks.waiting)
        assert stream.is_open
        await end(web, key)
        clock.now += stream_credentials.EVERY_SECONDS
        ticks.tick()
        with anyio.fail_after(PATIENT):
            await stream.ended.wait()
        assert stream.is_closed
    if era == MODERN:
        assert f'"code":{UNAUTHENTICATED}' in stream.text
    assert set(ticks.paused) == {stream_credentials.EVERY_SECONDS}


def test_a_stream_is_looked_at_often_enough() -> None:
    assert stream_credentials.EVERY_SECONDS + stream_credentials.FRESH_SECONDS < 1


async def test_the_streams_of_one_key_share_what_is_looked_up(
    web: Web, key: NewKey, ticks: Ticks, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    original = Keys.row

    async def noticed(self: Keys, credential: str, *given: Any) -> Any:
        looked.append(credential)
        return await original(self, credential, *given)

    async with (
        opened(web, key, "POST", SUBSCRIBE) as one,
        opened(web, key, "POST", SUBSCRIBE) as other,
    ):
        await until(lambda: one.is_open and other.is_open and len(ticks.waiting) == 2)
        monkeypatch.setattr(Keys, "row", noticed)
        clock.now += stream_credentials.EVERY_SECONDS
        ticks.tick()
        await until(lambda: len(ticks.waiting) == 2)
    assert looked == [key.key]

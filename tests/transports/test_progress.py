"""A slow tool says how far it has come, to clients that ask; it stops when nobody waits for it."""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import anyio
import pytest
from tests.gate.tools import Said, a_tool, offer
from tests.patience import PATIENT
from tests.transports.conftest import ADMIN_KEY, Web, opened_web
from tests.transports.mcp_requests import ERAS, MODERN, Request, envelope, tool_call
from tests.transports.peers import call, cancel, piped

from toolgate.gate.context import Context
from toolgate.gate.tool import ToolLimits

pytestmark = pytest.mark.anyio

SLOW = ToolLimits(slow=True)
TOKEN = "p-1"
REPORTED = [
    {"progressToken": TOKEN, "progress": 1, "total": 2, "message": "Half"},
    {"progressToken": TOKEN, "progress": 2},
]


class Sleep:
    """Of a tool: it has begun, it has ended."""

    def __init__(self) -> None:
        self.begun, self.ended = anyio.Event(), anyio.Event()


SLEEPS: list[Sleep] = []


async def work(ctx: Context[Any], args: Any) -> Said:
    await ctx.progress(1, total=2, message="Half")
    await ctx.progress(2)
    return Said(done=True)


async def sleep(ctx: Context[Any], args: Any) -> Said:
    SLEEPS[-1].begun.set()
    try:
        await anyio.sleep_forever()
    finally:
        SLEEPS[-1].ended.set()
    return Said()


@pytest.fixture(scope="module")
async def web(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    tools = a_tool("work", work, limits=SLOW), a_tool("sleep", sleep, limits=SLOW)
    async with opened_web(tmp_path_factory.mktemp("progress"), offer(*tools)) as opened:
        yield opened


@pytest.fixture
def sleeping() -> Iterator[Sleep]:
    SLEEPS.append(Sleep())
    yield SLEEPS[-1]
    SLEEPS.pop()


def meta(era: str, **more: Any) -> dict[str, Any]:
    return envelope(**more) if era == MODERN else more


def told(messages: list[Any]) -> list[Any]:
    """What was said of progress, before the answer, which is the last."""
    *before, answer = messages
    assert answer["result"]["structuredContent"]["result"] == {"done": True}, answer
    assert {one["method"] for one in before} <= {"notifications/progress"}
    return [one["params"] for one in before]


async def sent(web: Web, asked: Request) -> list[Any]:
    """The messages that answer a request."""
    async with web.client() as client:
        answer = await asked.send(client)
    if answer.headers["content-type"] == "application/json":
        return [answer.json()]
    lines = [line for line in answer.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line.removeprefix("data: ")) for line in lines]


@pytest.mark.parametrize("era", ERAS)
async def test_progress_is_told_over_http(web: Web, era: str) -> None:
    asked = tool_call(era, "work", {}).with_params(_meta=meta(era, progressToken=TOKEN))
    assert told(await sent(web, asked)) == REPORTED


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_does_not_ask_for_progress_is_told_none(web: Web, era: str) -> None:
    assert told(await sent(web, tool_call(era, "work", {}))) == []


@pytest.mark.parametrize("era", ERAS)
async def test_progress_is_told_over_stdio(web: Web, era: str) -> None:
    asked = call("work", {})
    asked["params"]["_meta"] = meta(era, progressToken=TOKEN)
    async with piped(web.kit.app.gate) as peer:
        await peer.open(era)
        await peer.send(asked)
        messages = [await peer.answer() for _ in range(3)]
    assert told(messages) == REPORTED


async def test_where_nobody_listens_progress_is_nothing(web: Web) -> None:
    outcome = await web.kit.call("work")
    assert outcome.error is None
    async with web.client() as client:
        answer = await client.post("/v1/tools/work", json={})
    assert answer.json() == outcome.body


# Nobody waits any more


async def cancelled_rows(web: Web) -> list[str]:
    rows = await web.kit.audit_rows()
    return [row["transport"] for row in rows if row["error_type"] == "cancelled"]


async def test_a_slow_call_stops_when_its_client_goes_away(web: Web, sleeping: Sleep) -> None:
    before = len(await cancelled_rows(web))
    asked = tool_call(MODERN, "sleep", {})
    headers = {**asked.headers, "host": "127.0.0.1", "authorization": f"Bearer {ADMIN_KEY}"}
    scope = {
        "type": "http",
        "http_version": "1.1",
        "scheme": "http",
        "method": "POST",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "root_path": "",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    bodies = [json.dumps(asked.body).encode()]

    async def receive() -> dict[str, Any]:
        if bodies:
            return {"type": "http.request", "body": bodies.pop(), "more_body": False}
        await sleeping.begun.wait()
        return {"type": "http.disconnect"}

    async def send(_: Any) -> None:
        pass

    with anyio.fail_after(PATIENT):
        await web.app(scope, receive, send)
        await sleeping.ended.wait()
    assert (await cancelled_rows(web))[before:] == ["mcp"]


@pytest.mark.parametrize("era", ERAS)
async def test_a_slow_call_stops_when_it_is_cancelled(web: Web, sleeping: Sleep, era: str) -> None:
    before = len(await cancelled_rows(web))
    asked = call("sleep", {})
    asked["params"]["_meta"] = meta(era, progressToken=TOKEN)
    async with piped(web.kit.app.gate) as peer:
        await peer.open(era)
        await peer.send(asked)
        with anyio.fail_after(PATIENT):
            await sleeping.begun.wait()
            await peer.send(cancel(1))
            await sleeping.ended.wait()
    assert (await cancelled_rows(web))[before:] == ["stdio"]

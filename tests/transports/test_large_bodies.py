"""Requests with a file in them: larger than others, one at a time in memory, for few callers."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest
from tests.gate.tools import a_tool, offer
from tests.transports.conftest import Web, opened_web

from toolgate.gate.context import Context
from toolgate.gate.errors import InvalidArguments
from toolgate.gate.limits import Limits
from toolgate.gate.principal import Role
from toolgate.gate.tool import Input, Output, ToolLimits
from toolgate.sections import LimitSettings
from toolgate.transports.asgi import MAX_NESTED, parse_json

pytestmark = pytest.mark.anyio

USUAL, FILE = 4096, 30_000


class Text(Input):
    text: str


class Length(Output):
    length: int


class Running:
    """How many calls run, and how many ran at once."""

    now = 0
    most = 0


async def count(ctx: Context[None], args: Text) -> Length:
    Running.now += 1
    Running.most = max(Running.most, Running.now)
    await anyio.lowlevel.checkpoint()
    Running.now -= 1
    return Length(length=len(args.text))


@pytest.fixture
async def web(tmp_path: Path) -> AsyncIterator[Web]:
    taking = ToolLimits(body_bytes=FILE)
    tools = [
        a_tool("file.take", count, takes=Text, gives=Length, role=Role.ADMIN, limits=taking),
        a_tool("plain", count, takes=Text, gives=Length, role=Role.PUBLIC),
    ]
    settings: dict[str, Any] = {"limits__body_bytes": USUAL, "limits__attachment_bytes": FILE}
    async with opened_web(tmp_path, offer(*tools), **settings) as opened:
        yield opened


def body_of(size: int) -> bytes:
    return orjson.dumps({"text": "x" * size})


async def test_a_tool_that_takes_files_takes_larger_requests_than_others(web: Web) -> None:
    async with web.client() as client:
        taken = await client.post("/v1/tools/file.take", content=body_of(20_000))
        refused = await client.post("/v1/tools/plain", content=body_of(20_000))
        too_large = await client.post("/v1/tools/file.take", content=body_of(FILE))
    assert (taken.status_code, "20000" in taken.text) == (200, True), taken.text
    assert (refused.status_code, too_large.status_code) == (413, 413)
    assert "limits.body_bytes" in refused.text


async def test_a_caller_who_sees_no_such_tool_sends_no_such_request(web: Web) -> None:
    async with web.client("user") as client:
        answer = await client.post("/v1/tools/plain", content=body_of(20_000))
        unknown = await client.post("/v1/tools/file.take", content=body_of(20_000))
    assert (answer.status_code, unknown.status_code) == (413, 404)


async def test_a_large_request_says_how_long_it_is(web: Web) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        whole = body_of(20_000)
        for at in range(0, len(whole), 1000):
            yield whole[at : at + 1000]

    async with web.client() as client:
        answer = await client.post("/v1/tools/file.take", content=pieces())
    assert answer.status_code == 413


async def test_large_requests_are_handled_one_at_a_time(web: Web) -> None:
    Running.most = 0
    async with web.client() as client, anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(lambda: client.post("/v1/tools/file.take", content=body_of(20_000)))
    assert Running.most == 1


async def test_one_whose_client_leaves_is_in_nobodys_way(web: Web) -> None:
    headers = [
        (b"host", b"127.0.0.1"),
        (b"authorization", f"Bearer {web.keys['admin']}".encode()),
        (b"content-length", b"20011"),
    ]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/tools/file.take",
        "query_string": b"",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "scheme": "http",
    }
    messages = [
        {"type": "http.request", "body": b'{"text": "', "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> Any:
        return messages.pop(0)

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await web.app(scope, receive, send)
    assert sent == []
    async with web.client() as client:
        answer = await client.post("/v1/tools/file.take", content=body_of(20_000))
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("said", "attachment", "most"),
    [(None, 10, 2048), (100, 10, 2048), (5000, 10_000, 5000), (5000, 30, 2088)],
    ids=["nothing", "less", "more", "lowered"],
)
def test_settings_lower_what_a_tool_takes(said: int | None, attachment: int, most: int) -> None:
    settings = LimitSettings.model_construct(
        **{**LimitSettings().__dict__, "body_bytes": 2048, "attachment_bytes": attachment}
    )
    limits = Limits(settings)
    assert limits.body_bytes(a_tool("one", limits=ToolLimits(body_bytes=said))) == most


LONG = 12345678901234567890123


@pytest.mark.parametrize("beside", [[], [1] * 2000], ids=["few values", "many values"])
def test_integers_keep_their_digits_beside_much_text(beside: list[int]) -> None:
    given = {"file": "0123456789" * 20_000, "numbers": [1, {"long": LONG}], "beside": beside}
    assert parse_json(json.dumps(given).encode()) == given


@pytest.mark.parametrize("text", ["", "x" * 100_000], ids=["alone", "beside much text"])
def test_what_is_nested_too_deep_is_refused(text: str) -> None:
    deep = MAX_NESTED + 1
    body = b'["%b", %b%b]' % (text.encode(), b"[" * deep, b"]" * deep)
    with pytest.raises(InvalidArguments, match="nested more than"):
        parse_json(body)

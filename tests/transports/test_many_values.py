"""JSON with very many values stops everybody while it is parsed, so there is a bound to them."""

import gc
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.gate.tools import a_tool, offer
from tests.transports.conftest import Web, opened_web
from tests.transports.mcp_requests import MODERN, tool_call

from toolgate.gate.context import Context
from toolgate.gate.errors import InvalidArguments
from toolgate.gate.principal import Role
from toolgate.gate.tool import Input, Output, ToolLimits
from toolgate.transports.asgi import FEW, LARGE, MAX_VALUES, parse_json

pytestmark = pytest.mark.anyio

TOO_MANY = b"[%b1]" % (b"[]," * MAX_VALUES)
MANY = b"[%b1]" % (b"[]," * (MAX_VALUES // 2 - 2))


@pytest.mark.parametrize(
    "body",
    [TOO_MANY, b"[%b1]" % (b'"",' * MAX_VALUES), b"[" * (MAX_VALUES + 1)],
    ids=["lists", "texts", "deep"],
)
def test_too_many_values_are_refused_unparsed(body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(_: bytes) -> Any:
        raise AssertionError("to parse it takes seconds")

    monkeypatch.setattr(orjson, "loads", never)
    with pytest.raises(InvalidArguments, match="200000 values"):
        parse_json(body)


@pytest.mark.parametrize(
    "text",
    ["a,b\n" * MAX_VALUES, '["a", {"b": 1}]' * MAX_VALUES, "\\" * 99_999 + "[" * MAX_VALUES],
    ids=["a table", "JSON within", "backslashes"],
)
def test_what_is_within_a_text_is_one_value(text: str) -> None:
    given = {"before": [1, 2], "text": text, "after": {"a": [3]}}
    assert parse_json(orjson.dumps(given)) == given


SAME = [
    b'{"a": 1, "a": 2}',
    b"NaN",
    b"-Infinity",
    b"1e999",
    b'"\\ud800"',
    b'"\xff"',
    b'"\x00"',
    b'"\\u0000"',
    b"1" * 30,
    b"-9007199254740993",
    b"1" * 309,
    b"9" * 309,
    b"1" * 310,
    b"-%b" % (b"1" * 310),
    b"[[%b]]" % (b"1" * 1000),
    b"1" * 4300,
    b"1" * 5000,
    b"%d" % (2**1024 - 2**970 - 1),
    b"%d" % (2**1024 - 2**970),
    b"%d" % -(2**1024 - 2**970),
    b"1.7976931348623157e308",
    b"1.7976931348623159e308",
    b"1" * 400 + b".5",
    b"1.5e3",
    b"-0",
    b"01",
    b"[1,]",
    b"[" * 99 + b"]" * 99,
    b"[" * 101 + b"]" * 101,
    b"[" * 5000 + b"]" * 5000,
    b"tru",
    b"",
]


def parsed(body: bytes) -> str:
    """What a body is parsed to, whole; or that it is refused."""
    try:
        return repr(parse_json(body))
    except InvalidArguments:
        return "refused"


@pytest.mark.parametrize("value", SAME, ids=range(len(SAME)))
@pytest.mark.parametrize("text", [b"A" * 100_000, b"A,[" * 50_000], ids=["a file", "a text"])
def test_beside_a_long_text_a_value_is_what_it_is_elsewhere(value: bytes, text: bytes) -> None:
    alone = parsed(b'{"value": %b}' % value)
    beside = parsed(b'{"value": %b, "text": "%b"}' % (value, text))
    assert beside == alone.removesuffix("}") + f", 'text': '{text.decode()}'}}" or (
        beside == alone == "refused"
    )


IN_TEXT = b'["%b"]' % (b"[[]]," * 60_000)


@pytest.mark.parametrize("separator", [b"[[]],", b"1,", b'"",', b'"a,b",'])
def test_a_body_that_is_larger_for_a_file_holds_few_values(
    separator: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(_: bytes) -> Any:
        raise AssertionError("to parse it takes long")

    body = b'[%b"%b"]' % (separator * (FEW + 1), b"A" * LARGE)
    assert len(parse_json(body)) == FEW + 2
    monkeypatch.setattr(orjson, "loads", never)
    with pytest.raises(InvalidArguments, match=r"more than 1000 values .*limits\.body_bytes"):
        parse_json(body, with_file=True)


def test_such_a_file_may_be_any_text() -> None:
    assert parse_json(IN_TEXT, with_file=True) == ["[[]]," * 60_000]


@pytest.mark.parametrize("body", [MANY, MANY[:-1]], ids=["valid", "cut"])
def test_no_garbage_is_looked_for_while_many_values_are_parsed(body: bytes) -> None:
    looks: list[str] = []

    def note(phase: str, _: dict[str, int]) -> None:
        looks.append(phase)

    gc.collect()
    gc.callbacks.append(note)
    try:
        parsed = parse_json(body)
        assert len(parsed) == MAX_VALUES // 2 - 1
        assert looks.count("start") <= 1  # at its end; there were hundreds
    except InvalidArguments:
        assert body is not MANY
    finally:
        gc.callbacks.remove(note)
    assert gc.isenabled()


class Items(Input):
    items: list[str]


class Same(Output):
    items: list[str]


async def give_back(ctx: Context[None], args: Items) -> Same:
    return Same(items=args.items)


@pytest.mark.parametrize("way", ["http", "rpc", "mcp"])
@pytest.mark.parametrize("number", [FEW // 2, 2 * FEW], ids=["few", "many"])
async def test_every_transport_takes_few_values_beside_a_file(
    tmp_path: Path, way: str, number: int
) -> None:
    taking = ToolLimits(body_bytes=4 * LARGE)
    tool = a_tool("take", give_back, takes=Items, gives=Same, role=Role.ADMIN, limits=taking)
    settings = {"limits__body_bytes": LARGE, "limits__attachment_bytes": 4 * LARGE}
    items = [*["1"] * number, "A" * 2 * LARGE]
    async with opened_web(tmp_path, offer(tool), **settings) as web, web.client() as client:
        if way == "http":
            answer = await client.post("/v1/tools/take", json={"items": items})
        elif way == "rpc":
            message = {"jsonrpc": "2.0", "id": 1, "method": "take", "params": {"items": items}}
            answer = await client.post("/rpc", json=message)
        else:
            answer = await tool_call(MODERN, "take", {"items": items}).send(client)
    assert ("more than 1000 values" in answer.text) == (number > FEW), answer.text[:300]
    assert ("A" * LARGE in answer.text) == (number < FEW)


@pytest.mark.parametrize("path", ["/v1/tools/list_collections", "/rpc", "/mcp"])
async def test_every_transport_says_that_there_are_too_many(web: Web, path: str) -> None:
    accept = "application/json, text/event-stream"
    async with web.client(**{"Content-Type": "application/json", "Accept": accept}) as client:
        answer = await client.post(path, content=TOO_MANY)
    assert answer.status_code == (200 if path == "/rpc" else 400), answer.text
    assert "200000 values" in answer.text

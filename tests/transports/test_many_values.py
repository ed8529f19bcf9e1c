"""JSON with very many values stops everybody while it is parsed, so there is a bound to them."""

import gc
from typing import Any

import orjson
import pytest
from tests.transports.conftest import Web

from toolgate.gate.errors import InvalidArguments
from toolgate.transports.asgi import MOST_VALUES, parse_json

pytestmark = pytest.mark.anyio

TOO_MANY = b"[%b1]" % (b"[]," * MOST_VALUES)
MANY = b"[%b1]" % (b"[]," * (MOST_VALUES // 2 - 2))


@pytest.mark.parametrize(
    "body",
    [TOO_MANY, b"[%b1]" % (b'"",' * MOST_VALUES), b"[" * (MOST_VALUES + 1)],
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
    ["a,b\n" * MOST_VALUES, '["a", {"b": 1}]' * MOST_VALUES, "\\" * 99_999 + "[" * MOST_VALUES],
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
    b"1" * 5000,
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


@pytest.mark.parametrize("body", [MANY, MANY[:-1]], ids=["valid", "cut"])
def test_no_garbage_is_looked_for_while_many_values_are_parsed(body: bytes) -> None:
    looks: list[str] = []

    def note(phase: str, _: dict[str, int]) -> None:
        looks.append(phase)

    gc.collect()
    gc.callbacks.append(note)
    try:
        parsed = parse_json(body)
        assert len(parsed) == MOST_VALUES // 2 - 1
        assert looks.count("start") <= 1  # at its end; there were hundreds
    except InvalidArguments:
        assert body is not MANY
    finally:
        gc.callbacks.remove(note)
    assert gc.isenabled()


@pytest.mark.parametrize("path", ["/v1/tools/list_collections", "/rpc", "/mcp"])
async def test_every_transport_says_that_there_are_too_many(web: Web, path: str) -> None:
    accept = "application/json, text/event-stream"
    async with web.client(**{"Content-Type": "application/json", "Accept": accept}) as client:
        answer = await client.post(path, content=TOO_MANY)
    assert answer.status_code == (200 if path == "/rpc" else 400), answer.text
    assert "200000 values" in answer.text

"""Standard input: what is no message is answered at once, under its id where that can be read."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.transports.mcp_requests import ERAS, LEGACY
from tests.transports.peers import call, piped

from toolgate.testing import Kit, opened_kit
from toolgate.transports.jsonrpc import id_around, id_in

pytestmark = pytest.mark.anyio

PARSE_ERROR, INVALID_REQUEST, LIMITED = -32700, -32600, -32400
CALL = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"create_document",'
DEEP = b"[" * 300 + b"]" * 300

UNREADABLE: dict[str, tuple[bytes, Any]] = {
    "no JSON": (b"no json", None),
    "no UTF-8": (b"\xff", None),
    "no UTF-8 in the arguments": (CALL + b'"arguments":{"a":"\xff"}}}', 7),
    "cut": (CALL[:40], 7),
    "cut within the arguments": (CALL + b'"arguments":{"id":3,"coll', 7),
    "cut within the id": (CALL[:22], None),
    "cut before the id": (b'{"jsonrpc":"2.0","method":"tools/call","params":{"id":3', None),
    "broken behind the id": (CALL + b"nonsense}}", 7),
    "a lone surrogate": (CALL + b'"arguments":{"a":"\\ud800"}}}', 7),
    "a lone surrogate beside a long number": (
        CALL + b'"arguments":{"a":"\\ud800","n":1234567890123456789}}}',
        7,
    ),
    "a lone surrogate in the id": (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', None),
    "infinity": (CALL + b'"arguments":{"n":1e400}}}', 7),
    "not a number": (CALL + b'"arguments":{"n":NaN}}}', 7),
    "nested deep": (CALL + b'"arguments":{"n":' + DEEP + b"}}}", 7),
    "nested deeper than anybody reads": (b"[" * 100_000, None),
}
NO_MESSAGE: dict[str, tuple[bytes, Any]] = {
    "a list": (b"[]", None),
    "a batch": (b'[{"jsonrpc":"2.0","id":7,"method":"ping"}]', None),
    "a number": (b"5", None),
    "an empty object": (b"{}", None),
    "an odd method": (b'{"jsonrpc":"2.0","id":7,"method":["tools/call"]}', 7),
    "odd params": (b'{"jsonrpc":"2.0","id":7,"method":"tools/list","params":[1]}', 7),
    "another JSON-RPC": (b'{"jsonrpc":"1.0","id":7,"method":"ping"}', 7),
    "another JSON-RPC's answer": (b'{"jsonrpc":"1.0","id":7,"result":{}}', None),
    "neither a request nor an answer": (b'{"jsonrpc":"2.0","id":7}', 7),
}


@pytest.fixture(scope="module")
async def kit(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Kit]:
    async with opened_kit(
        tmp_path_factory.mktemp("unreadable"), limits__refusals_per_minute=10_000
    ) as opened:
        yield opened


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("line", "id", "code"),
    [(*one, PARSE_ERROR) for one in UNREADABLE.values()]
    + [(*one, INVALID_REQUEST) for one in NO_MESSAGE.values()],
    ids=[*UNREADABLE, *NO_MESSAGE],
)
async def test_it_is_answered_and_the_next_line_counts(
    kit: Kit, line: bytes, id: Any, code: int, era: str
) -> None:
    before = len(await kit.audit_rows())
    async with piped(kit.app.gate) as peer:
        await peer.open(era)
        await peer.write(line + b"\n")
        told = await peer.answer()
        assert (told["id"], told["error"]["code"]) == (id, code)
        assert "result" in await peer.ask(call("list_collections", {}, id=8, era=era))
    rows = (await kit.audit_rows())[before:]
    named = [(row["tool_name"], row["rule"]) for row in rows]
    assert named == [("(unreadable)", "unreadable"), ("list_collections", "public-tools")]


@pytest.mark.parametrize("cut", range(1, len(CALL)))
async def test_a_line_that_is_cut_by_the_end_of_the_input_is_answered(kit: Kit, cut: int) -> None:
    async with piped(kit.app.gate) as peer:
        await peer.write(CALL[:cut])
        peer.finish()
        told = await peer.answer()
    assert told["error"]["code"] == PARSE_ERROR
    assert told["id"] == (7 if b'"id":7,' in CALL[:cut] else None)


async def test_empty_lines_are_no_lines(kit: Kit) -> None:
    async with piped(kit.app.gate) as peer:
        await peer.write(b"\n\n  \r\n")
        assert (await peer.ask(call("list_collections", {})))["id"] == 1


async def test_an_answer_of_the_client_is_not_answered(kit: Kit) -> None:
    async with piped(kit.app.gate) as peer:
        await peer.open(LEGACY)
        await peer.write(b'{"jsonrpc":"2.0","id":7,"result":{}}\n')
        assert (await peer.ask(call("list_collections", {}, era=LEGACY)))["id"] == 1


@pytest.mark.parametrize(
    ("line", "id"),
    [
        (b'{"id":12', None),
        (b'{"id":12 ', 12),
        (b'{"id":1.', None),
        (b'{"id":"ab', None),
        (b'{"id":"ab"', "ab"),
        (b'{"id":"a\xff", nonsense', None),
        (b'{"id":"\\ud83d\\ude00", nonsense', "\N{GRINNING FACE}"),
        (b'{"id":18446744073709551616, nonsense', None),
        (b'{"id":true, nonsense', None),
        (b'{"result":{},"id":5, nonsense', None),
        (b'{"a":"b\\"id\\":3,', None),
        (b"", None),
    ],
)
def test_an_id_is_read_only_where_it_is_sure(line: bytes, id: Any) -> None:
    assert id_in(line) == id


PUT = b'{"method":"tools/call","params":{"name":"a","arguments":{"id":3,"x":"'


@pytest.mark.parametrize(
    ("beginning", "ending", "id"),
    [
        (PUT, b'yy"}},"jsonrpc":"2.0","id":5}', 5),
        (PUT, b'yy"}}, "id" : "five" , "jsonrpc": "2.0" }\r', "five"),
        (CALL, b'yy"}}}', 7),
        (PUT, b'yy","id":4}}}', None),
        (PUT, b'yy"}},"id":true}', None),
        (PUT, b'yy"}},"not \\"id":5}', None),
        (b'{"result":{"x":"', b'yy"},"jsonrpc":"2.0","id":5}', None),
        (b"nonsense", b"nonsense", None),
    ],
)
def test_the_id_of_a_line_that_is_too_long_may_stand_at_its_end(
    beginning: bytes, ending: bytes, id: Any
) -> None:
    assert id_around(beginning, ending) == id


@pytest.mark.parametrize("size", [5 << 20, 20 << 20])
async def test_a_line_that_is_too_long_is_answered_under_its_id(kit: Kit, size: int) -> None:
    asked = call("list_collections", {"x": "y" * size}, era=LEGACY)
    asked["id"] = asked.pop("id")
    async with piped(kit.app.gate) as peer:
        await peer.open(LEGACY)
        told = await peer.ask(asked)
    assert told["id"] == asked["id"]
    assert "This line is over the limit of 4194304 bytes" in told["error"]["message"]


async def test_lines_past_the_limit_of_refusals_are_told_so(tmp_path: Path) -> None:
    """Also those of a client whose key has ended."""
    async with opened_kit(tmp_path, limits__refusals_per_minute=3) as kit:
        async with piped(kit.app.gate) as peer:
            await peer.write(b"[]\n" * 5)
            answers = [await peer.answer() for _ in range(5)]
        assert [one["error"]["code"] for one in answers] == [INVALID_REQUEST] * 3 + [LIMITED] * 2
        assert "Try again in" in answers[-1]["error"]["message"]

        async def nobody(_: float | None) -> None:
            return None

        async with piped(kit.app.gate, identify=nobody) as peer:
            codes = [
                (await peer.ask(call("list_collections", {})))["error"]["code"] for _ in range(5)
            ]
        assert codes[:3] == [codes[0]] * 3
        assert LIMITED not in codes[:3]
        assert codes[3:] == [LIMITED] * 2

"""Standard input and output: the short way, the SDK behind it, and the ends of both."""

import json
import os
import socket
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.gate.tools import USER, Said, a_tool, offer
from tests.patience import PATIENT
from tests.transports.mcp_requests import ERAS, LEGACY, META, MODERN, envelope
from tests.transports.peers import INITIALIZED, Peer, call, cancel, hello, message, piped, quiet

from toolgate.gate.context import Context
from toolgate.gate.offer import AnyOffer
from toolgate.gate.pipeline import Gate
from toolgate.gate.principal import Principal
from toolgate.gate.tool import Input, ToolLimits
from toolgate.testing import Kit, opened_kit
from toolgate.testing.kit import ADMIN
from toolgate.transports.mcp import stdio, wire
from toolgate.transports.mcp.responses import Responses

pytestmark = pytest.mark.anyio

JANE = {"collection": "users", "document_id": "abc123"}
INVALID_REQUEST, INVALID_PARAMS, UNSUPPORTED_VERSION = -32600, -32602, -32022
PARSE_ERROR = -32700
LONGEST = 100_000


@dataclass
class Held:
    """What the tools of these tests wait for."""

    started: anyio.Event = field(default_factory=anyio.Event)
    go_on: anyio.Event = field(default_factory=anyio.Event)


HELD: list[Held] = []


class Size(Input):
    """How much."""

    size: int


def special() -> list[AnyOffer]:
    async def hold(ctx: Context, args: Any) -> Said:
        HELD[-1].started.set()
        await HELD[-1].go_on.wait()
        return Said(held=True, live=ctx.report is not None)

    async def much(ctx: Context, args: Size) -> Said:
        return Said(much="x" * args.size)

    async def digits(ctx: Context, args: Size) -> Said:
        return Said(size=str(args.size))

    held = a_tool("hold", hold, pack="backend", open_world=True)
    return offer(
        held,
        replace(held, name="talk", limits=ToolLimits(slow=True)),
        a_tool("much", much, pack="backend", takes=Size),
        a_tool("digits", digits, takes=Size),
    )


@pytest.fixture(scope="module")
async def kit(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Kit]:
    folder = tmp_path_factory.mktemp("stdio")
    given: dict[str, Any] = {"demo_data": True, "plugins": special()}
    async with opened_kit(folder, limits__body_bytes=LONGEST, **given) as opened:
        yield opened


@pytest.fixture
def gate(kit: Kit) -> Gate:
    return kit.app.gate


@pytest.fixture
def held() -> Iterator[Held]:
    HELD.append(Held())
    yield HELD[-1]
    HELD.pop()


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The ids of the requests that the short way took."""
    seen: list[Any] = []
    original = stdio.StdioClient._answer  # pyright: ignore[reportPrivateUsage]

    def noticed(self: stdio.StdioClient, plain: Any) -> None:
        seen.append(plain.id)
        original(self, plain)

    monkeypatch.setattr(stdio.StdioClient, "_answer", noticed)
    return seen


async def rows_since(kit: Kit, before: int) -> list[tuple[str, str, str | None]]:
    rows = (await kit.audit_rows())[before:]
    return [(row["transport"], row["tool_name"], row["error_type"]) for row in rows]


# Both ways give the same answers


SAME = {
    "a list": message("tools/list"),
    "a good answer": call("get_document", JANE),
    "no arguments": call("list_collections"),
    "null arguments": call("list_collections", None),
    "a tool's error": call("get_document", {"collection": "users", "document_id": "nobody"}),
    "bad arguments": call("get_document", {"collection": 5, "more": 1}),
    "a write that is off": call("create_document", {**JANE, "data": {}}),
    "an unknown tool": call("no_such_tool", {}),
    "a tool of another spelling": call("appdata.list_collections", {}),
    "a long integer": call("digits", {"size": 123456789012345678901234567890}),
    "an id that is a word": call("list_collections", id="word"),
    "an id that is a number as a word": call("list_collections", id="7"),
}


def in_era(wanted: dict[str, Any], era: str) -> dict[str, Any]:
    params = {name: value for name, value in wanted["params"].items() if name != "_meta"}
    return {**wanted, "params": params | ({"_meta": envelope()} if era == MODERN else {})}


@pytest.mark.parametrize("principal", [ADMIN, USER], ids=["admin", "user"])
@pytest.mark.parametrize("era", [*ERAS, "2025-06-18"])
@pytest.mark.parametrize("what", SAME)
async def test_both_ways_give_the_same_answer(
    gate: Gate,
    taken: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    what: str,
    era: str,
    principal: Principal,
) -> None:
    wanted = in_era(SAME[what], era)
    async with piped(gate, principal) as peer:
        await peer.open(era)
        short = await peer.ask(wanted)
    assert taken == [wanted["id"]], "the short way answers this"
    monkeypatch.setattr(stdio, "plain_request", lambda *_: None)
    async with piped(gate, principal) as peer:
        await peer.open(era)
        long = await peer.ask(wanted)
    assert taken == [wanted["id"]], "the SDK answers this"
    assert short == long


@pytest.mark.parametrize("era", ERAS)
async def test_a_hidden_tool_is_an_unknown_tool(gate: Gate, taken: list[Any], era: str) -> None:
    async with piped(gate, USER) as peer:
        await peer.open(era)
        for name in ("hold", "talk", "list_documents", "no_such_tool"):
            told = await peer.ask(in_era(call(name, {}), era))
            assert told["error"] == {"code": INVALID_PARAMS, "message": f"Unknown tool: {name}"}
    assert taken == [1, 1, 1, 1]


async def test_the_audit_tells_of_both_ways_alike(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = len(await kit.audit_rows())
    for _ in range(2):
        async with piped(kit.app.gate, USER) as peer:
            await peer.ask(call("list_collections", {}))
            await peer.ask(call("list_documents", {}))
        monkeypatch.setattr(stdio, "plain_request", lambda *_: None)
    first, second, *again = await rows_since(kit, before)
    assert first == ("stdio", "list_collections", None)
    assert second[:2] == ("stdio", "list_documents")
    assert again == [first, second]


# The eras


async def test_a_call_before_the_handshake_is_refused(gate: Gate, taken: list[Any]) -> None:
    async with piped(gate) as peer:
        told = await peer.ask(call("list_collections", {}, era=LEGACY))
        first = "Send initialize, then notifications/initialized, then this again."
        error = {"code": INVALID_PARAMS, "message": f"tools/call came before initialize. {first}"}
        assert told["error"] == error
        await peer.shake_hands()
        assert "result" in await peer.ask(call("list_collections", {}, era=LEGACY, id=2))
    assert taken == [2]


async def test_a_call_within_the_handshake_is_answered(gate: Gate, taken: list[Any]) -> None:
    async with piped(gate) as peer:
        await peer.ask(hello())
        assert "result" in await peer.ask(call("list_collections", {}, era=LEGACY))
        assert taken == [], "the SDK's, as the handshake is not over"
        await peer.send(INITIALIZED)
        await peer.ask(message("ping", era=LEGACY))
        await peer.ask(call("list_collections", {}, era=LEGACY, id=2))
        await peer.ask(hello(id="again"))
        await peer.ask(call("list_collections", {}, era=LEGACY, id=3))
    assert taken == [2]


async def test_all_of_a_handshake_may_come_at_once(gate: Gate) -> None:
    async with piped(gate) as peer:
        await peer.send(hello(), INITIALIZED, call("list_collections", {}, era=LEGACY, id=2))
        assert (await peer.answer())["id"] == "hello"
        assert "result" in await peer.answer()


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26"])
async def test_a_client_that_is_older_still_is_the_sdks(
    gate: Gate, taken: list[Any], version: str
) -> None:
    async with piped(gate) as peer:
        await peer.shake_hands(version)
        assert "result" in await peer.ask(call("list_collections", {}, era=LEGACY))
    assert taken == []


async def test_no_newer_request_on_an_older_connection(gate: Gate, taken: list[Any]) -> None:
    async with piped(gate) as peer:
        await peer.shake_hands()
        told = await peer.ask(call("list_collections", {}))
        assert told["error"]["code"] == INVALID_REQUEST
    assert taken == []


@pytest.mark.parametrize("first", [call("list_collections", {}), message("server/discover")])
async def test_no_handshake_on_a_newer_connection(gate: Gate, first: dict[str, Any]) -> None:
    """Whoever answers the first request, it decides."""
    async with piped(gate) as peer:
        assert "result" in await peer.ask(first)
        told = await peer.ask(hello())
        assert (told["id"], told["error"]["code"]) == ("hello", UNSUPPORTED_VERSION)
        told = await peer.ask(call("list_collections", {}, era=LEGACY))
        assert told["error"]["code"] == INVALID_PARAMS
        assert "result" in await peer.ask(call("list_collections", {}))


async def test_a_newer_client_that_asks_first_is_answered_the_short_way(
    gate: Gate, taken: list[Any]
) -> None:
    async with piped(gate) as peer:
        assert MODERN in (await peer.ask(message("server/discover")))["result"]["supportedVersions"]
        await peer.ask(call("list_collections", {}, id=2))
        await peer.ask(message("tools/list", id=3))
    assert taken == [2, 3]


ODD = {
    "progress is wanted": call("list_collections", {}, meta={"progressToken": 1}),
    "no capabilities": call("list_collections", {}, meta={f"{META}clientCapabilities": None}),
    "another version": call("list_collections", {}, meta={f"{META}protocolVersion": "2099-01-01"}),
    "more params": message("tools/call", name="list_collections", task={}),
    "a cursor": message("tools/list", cursor="x"),
    "arguments that are a list": call("list_collections", []),
    "no name": message("tools/call"),
    "a prompt": message("prompts/list"),
}


@pytest.mark.parametrize("what", ODD)
async def test_what_is_odd_is_the_sdks(gate: Gate, taken: list[Any], what: str) -> None:
    async with piped(gate) as peer:
        assert (await peer.ask(ODD[what]))["id"] == 1
    assert taken == []


async def test_a_tool_that_talks_to_the_client_is_the_sdks(
    gate: Gate, taken: list[Any], held: Held
) -> None:
    held.go_on.set()
    async with piped(gate) as peer:
        told = await peer.ask(call("talk", {}))
        assert json.loads(told["result"]["content"][0]["text"])["live"] is True
    assert taken == []


# Many at once


@pytest.mark.parametrize("era", ERAS)
async def test_a_slow_call_holds_nobody_up(gate: Gate, held: Held, era: str) -> None:
    async with piped(gate) as peer:
        await peer.open(era)
        await peer.send(
            in_era(call("hold", {}, id=1), era), in_era(call("list_collections", {}, id=2), era)
        )
        assert (await peer.answer())["id"] == 2
        held.go_on.set()
        assert (await peer.answer())["id"] == 1


@pytest.mark.parametrize("era", ERAS)
async def test_a_thousand_calls_at_once(gate: Gate, era: str) -> None:
    async with piped(gate) as peer:
        await peer.open(era)
        wanted = [in_era(call("list_collections", {}, id=id), era) for id in range(1000)]
        await peer.send(*wanted)
        answers = [await peer.answer() for _ in wanted]
        assert sorted(one["id"] for one in answers) == list(range(1000))
        assert all("result" in one for one in answers)
        peer.finish()
        assert await peer.line() == b""


async def test_lines_are_whole_however_long_and_whoever_writes(gate: Gate) -> None:
    """The client reads only when all is asked; what it does not take waits."""
    async with piped(gate) as peer:
        size = 300_000
        ours = [call("much", {"size": size}, id=id) for id in range(20)]
        theirs = [
            call("much", {"size": size}, id=id, meta={"progressToken": id}) for id in range(20, 40)
        ]
        await peer.send(*(one for pair in zip(ours, theirs, strict=True) for one in pair))
        peer.finish()
        answers = [await peer.answer() for _ in range(40)]
        assert await peer.line() == b""
    assert sorted(one["id"] for one in answers) == list(range(40))
    for one in answers:
        assert json.loads(one["result"]["content"][0]["text"])["much"] == "x" * size


async def test_a_client_that_does_not_read_is_not_read_either(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits for it stays bounded: the bound, and the answers to what runs when it is reached.

    A chunk holds fewer than ten requests, and an answer its text twice.
    """
    most, running, size = 100_000, 20, 20_000
    waiting, full = list[int](), anyio.Event()
    keep = wire.Wire._keep  # pyright: ignore[reportPrivateUsage]

    def noticed(self: wire.Wire, data: bytes) -> None:
        keep(self, data)
        waiting.append(len(self._unsent))  # pyright: ignore[reportPrivateUsage]
        if waiting[-1] > most:
            full.set()

    monkeypatch.setattr(wire, "MAX_UNSENT", most)
    monkeypatch.setattr(wire, "CHUNK", 1000)
    monkeypatch.setattr(wire.Wire, "_keep", noticed)
    monkeypatch.setattr(stdio, "MAX_RUNNING", running)
    async with piped(gate) as peer, anyio.create_task_group() as tasks:
        wanted = [call("much", {"size": size}, id=id) for id in range(500)]
        tasks.start_soon(peer.send, *wanted)
        with anyio.fail_after(PATIENT):
            await full.wait()
        answers = [await peer.answer() for _ in wanted]
    assert sorted(one["id"] for one in answers) == list(range(500))
    assert max(waiting) < most + (running + 10) * 2.1 * size


async def test_only_so_many_calls_run_at_once(
    gate: Gate, taken: list[Any], held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio, "MAX_RUNNING", 3)
    monkeypatch.setattr(wire, "CHUNK", 50)
    async with piped(gate) as peer:
        await peer.send(*(call("hold", {}, id=id) for id in range(3)))
        await peer.send(message("tools/list", id=3))
        with anyio.fail_after(PATIENT):
            await held.started.wait()
        await quiet()
        assert taken == [0, 1, 2]
        held.go_on.set()
        answers = [await peer.answer() for _ in range(4)]
    assert sorted(one["id"] for one in answers) == [0, 1, 2, 3]


async def test_a_fault_of_our_own_is_not_told(
    gate: Gate, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any) -> bytes:
        raise ValueError("secret")

    monkeypatch.setattr(Responses, "to_call", broken)
    monkeypatch.setattr(Responses, "to_list", broken)
    async with piped(gate) as peer:
        for wanted in (call("list_collections", {}), message("tools/list")):
            told = await peer.ask(wanted)
            assert told["error"] == {"code": -32603, "message": "Internal error"}
    assert [one.split(" in ")[0] for one in caplog.messages] == [
        "MCP tools/call failed: ValueError",
        "MCP tools/list failed: ValueError",
    ]
    assert "secret" not in caplog.text


# Cancelling


@pytest.mark.parametrize(("id", "named"), [(1, 1), ("a", "a"), (7, "7"), ("7", 7)])
@pytest.mark.parametrize("era", ERAS)
async def test_a_cancelled_call_ends_and_is_not_answered(
    kit: Kit, taken: list[Any], held: Held, era: str, id: Any, named: Any
) -> None:
    before = len(await kit.audit_rows())
    async with piped(kit.app.gate) as peer:
        await peer.open(era)
        await peer.send(in_era(call("hold", {}, id=id), era))
        with anyio.fail_after(PATIENT):
            await held.started.wait()
        await peer.send(cancel(named))
        await peer.send(in_era(call("list_collections", {}, id=2), era))
        assert (await peer.answer())["id"] == 2
        peer.finish()
        assert await peer.line() == b""
    assert taken == [id, 2]
    assert ("stdio", "hold", "cancelled") in await rows_since(kit, before)


async def test_a_call_that_is_cancelled_at_once_is_not_answered(gate: Gate, held: Held) -> None:
    async with piped(gate) as peer:
        await peer.send(call("hold", {}), cancel(1), call("list_collections", {}, id=2))
        assert (await peer.answer())["id"] == 2
        peer.finish()
        assert await peer.line() == b""


async def test_a_call_of_the_sdks_is_cancelled_by_it(gate: Gate, held: Held) -> None:
    async with piped(gate) as peer:
        await peer.send(call("talk", {}))
        with anyio.fail_after(PATIENT):
            await held.started.wait()
        await peer.send(cancel(1), cancel("nothing"), call("list_collections", {}, id=2))
        assert (await peer.answer())["id"] == 2
        peer.finish()
        assert await peer.line() == b""


# Too long


@pytest.mark.parametrize("size", [LONGEST + 1, 40 * LONGEST])
async def test_a_line_over_the_limit_is_refused(kit: Kit, size: int) -> None:
    before = len(await kit.audit_rows())
    async with piped(kit.app.gate) as peer:
        await peer.write(b"x" * size + b"\n")
        told = await peer.answer()
        assert (told["id"], told["error"]["code"]) == (None, PARSE_ERROR)
        long = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "x" * size}).encode()
        await peer.write(long + b"\n")
        told = await peer.answer()
        assert (told["id"], told["error"]["code"]) == (7, PARSE_ERROR)
        assert "limits.body_bytes" in told["error"]["message"]
        assert "result" in await peer.ask(call("list_collections", {}))
        padded = json.dumps(call("list_collections", {}, id=2)).encode()
        await peer.write(padded.ljust(LONGEST) + b"\n")
        assert (await peer.answer())["id"] == 2
    assert (await rows_since(kit, before))[0] == ("stdio", "(unreadable)", "size_limit_exceeded")


# The end


@pytest.mark.parametrize("tool", ["hold", "talk"])
async def test_what_runs_when_the_client_closes_its_end_is_answered(
    gate: Gate, held: Held, tool: str
) -> None:
    """By the short way, and by the SDK."""
    async with piped(gate) as peer:
        await peer.send(call(tool, {}))
        with anyio.fail_after(PATIENT):
            await held.started.wait()
        await peer.finish_and_be_heard()
        held.go_on.set()
        assert "result" in await peer.answer()
        assert await peer.line() == b""


async def test_a_last_line_needs_no_end(gate: Gate) -> None:
    async with piped(gate) as peer:
        await peer.write(json.dumps(call("list_collections", {})).encode())
        peer.finish()
        assert "result" in await peer.answer()


async def test_a_client_that_closes_its_other_end_ends_the_calls(kit: Kit, held: Held) -> None:
    before = len(await kit.audit_rows())
    async with piped(kit.app.gate) as peer:
        await peer.send(call("hold", {}))
        with anyio.fail_after(PATIENT):
            await held.started.wait()
        peer.leave()
        await peer.send(call("list_collections", {}, id=2))
        with anyio.fail_after(PATIENT):
            await peer.ended.wait()
    assert isinstance(peer.problem, BrokenPipeError)
    assert ("stdio", "hold", "cancelled") in await rows_since(kit, before)


async def test_nobody_at_all_is_served(gate: Gate) -> None:
    nobody = os.open(os.devnull, os.O_RDONLY)
    async with piped(gate, source=nobody) as peer:
        assert await peer.line() == b""
    os.close(nobody)


@pytest.mark.parametrize("count", [1, 2000])
async def test_a_file_is_read_to_its_end(gate: Gate, tmp_path: Path, count: int) -> None:
    wanted = [call("list_collections", {}, id=id) for id in range(count)]
    file = tmp_path / "asked"
    file.write_text("\n".join(json.dumps(one) for one in wanted))
    source = os.open(file, os.O_RDONLY)
    async with piped(gate, source=source) as peer:
        answers = [await peer.answer() for _ in wanted]
        assert await peer.line() == b""
    os.close(source)
    assert sorted(one["id"] for one in answers) == list(range(count))


async def test_a_socket_serves_as_well(gate: Gate) -> None:
    """Some clients give a program sockets, one for both directions."""
    inside, outside = socket.socketpair()
    with inside, outside:
        peer = Peer(os.dup(outside.fileno()), os.dup(outside.fileno()))
        client = stdio.StdioClient(
            gate, ADMIN, inside.fileno(), inside.fileno(), underscore_names=True
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.serve)
            wanted = [call("much", {"size": 10_000}, id=id) for id in range(100)]
            tasks.start_soon(peer.send, *wanted)
            answers = [await peer.answer() for _ in wanted]
            outside.shutdown(socket.SHUT_WR)
        assert sorted(one["id"] for one in answers) == list(range(100))
        assert os.get_blocking(inside.fileno()), "the descriptor is left as it was"
        peer.finish()
        peer.leave()

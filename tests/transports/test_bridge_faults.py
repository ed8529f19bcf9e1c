"""What the bridge does with what is wrong: plain words, and it goes on."""

import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest
from tests.patience import PATIENT
from tests.transports.bridges import HELLO, META, Backend, Wire, backend, wired

JANE = {"collection": "users", "document_id": "abc123"}
MEGABYTE = 1024 * 1024


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    with backend(tmp_path_factory.mktemp("bridged")) as started:
        yield started


def works(wire: Wire, id: Any = "after") -> None:
    """The bridge answers as ever."""
    wire.call(id, "get_document", **JANE)
    answer = wire.answer()
    assert (answer["id"], answer["result"]["isError"]) == (id, False)


def clean(wire: Wire) -> str:
    """It ends by itself, with nothing more to say on standard output; what it said beside."""
    code, out, err = wire.ended()
    assert (code, out) == (0, b"")
    assert "Traceback" not in err
    return err


@pytest.mark.parametrize(
    ("line", "code", "id"),
    [
        (b"junk", -32700, None),
        (b'{"jsonrpc": "2.0", "id": 1', -32700, None),
        (b'{"jsonrpc": "2.0", "id": 1, "meth', -32700, 1),
        (b"\xff\xfe\x00", -32700, None),
        (b"[" * 100_000, -32700, None),
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', -32600, None),
        (b"42", -32600, None),
        (b'{"jsonrpc": "2.0"}', -32600, None),
        (b'{"jsonrpc": "2.0", "id": [], "method": "ping"}', -32600, None),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600, None),
        (b'{"jsonrpc": "2.0", "id": 18446744073709551616, "method": "ping"}', -32600, None),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "\\ud800"}', -32700, 1),
    ],
    ids=[
        "junk",
        "cut",
        "cut later",
        "bytes",
        "deep",
        "batch",
        "number",
        "empty",
        "id",
        "null",
        "long",
        "surrogate",
    ],
)
def test_a_line_that_is_no_message_is_told_and_the_next_one_counts(
    server: Backend, line: bytes, code: int, id: int | None
) -> None:
    with wired(server.url, server.key) as wire:
        wire.write(line)
        answer = wire.answer()
        assert (answer["id"], answer["error"]["code"]) == (id, code)
        works(wire)
        assert clean(wire) == ""


def test_a_line_that_never_ends_is_left_out(server: Backend) -> None:
    with wired(server.url, server.key) as wire:
        wire.write(b'{"jsonrpc": "2.0", "id": 1, "method": "' + b"x" * 40 * MEGABYTE)
        answer = wire.answer()
        assert (answer["id"], answer["error"]["code"]) == (1, -32700)
        assert "longer than 16777216 bytes" in answer["error"]["message"]
        works(wire)
        assert "longer than" in clean(wire)


def test_a_body_over_the_servers_limit_is_refused_with_its_id(server: Backend) -> None:
    with wired(server.url, server.key) as wire:
        wire.call(7, "get_document", collection="users", document_id="x" * 2 * MEGABYTE)
        answer = wire.answer()
        assert answer["id"] == 7
        assert "limits.body_bytes" in answer["error"]["message"]
        works(wire)


def test_ids_come_back_as_they_were(server: Backend) -> None:
    with wired(server.url, server.key) as wire:
        for id in (0, -1, "1", "ü ☃", 2**53):
            works(wire, id)
        clean(wire)


def test_empty_lines_and_a_last_line_without_its_end_are_fine(server: Backend) -> None:
    with wired(server.url, server.key) as wire:
        wire.write(b"")
        wire.write(b"  \r")
        call = {"name": "list_collections", "arguments": {}, "_meta": META}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        assert wire.process.stdin is not None
        wire.process.stdin.write(json.dumps(message).encode())
        code, out, err = wire.ended()
    assert (code, err) == (0, "")
    assert json.loads(out)["result"]["isError"] is False


@pytest.mark.parametrize(
    ("key", "told"),
    [(None, "wants credentials (401)"), ("tg_0_1", "does not take this key or token (401)")],
)
@pytest.mark.parametrize("method", ["initialize", "server/discover"])
def test_a_bad_key_is_told_with_the_way_to_another(
    server: Backend, key: str | None, told: str, method: str
) -> None:
    with wired(server.url, key) as wire:
        params = HELLO if method == "initialize" else {"_meta": META}
        wire.send(id=1, method=method, params=params)
        answer = wire.answer()
        assert answer["id"] == 1
        assert told in answer["error"]["message"]
        err = clean(wire)
    assert told in err
    assert "--key" in err
    assert "toolgate keys create" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("path", ["/nothing/here", "/healthz", "/v1/tools"])
def test_another_path_is_no_endpoint(server: Backend, path: str) -> None:
    with wired(f"{server.url}{path}", server.key) as wire:
        wire.send(id=1, method="initialize", params=HELLO)
        assert "no MCP endpoint" in wire.answer()["error"]["message"]
        assert "check --url" in clean(wire)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


def test_a_server_that_is_not_there_is_told_at_once_and_answered_after_a_while() -> None:
    with wired(f"http://127.0.0.1:{free_port()}", "key") as wire:
        wire.send(id=1, method="initialize", params=HELLO)
        wire.send(id=2, method="ping")
        told = [wire.answer() for _ in range(2)]
        assert {one["id"] for one in told} == {1, 2}
        assert all("Cannot reach http://127.0.0.1" in one["error"]["message"] for one in told)
        err = clean(wire)
    assert "Trying for 5 s." in err
    assert "Check that the server runs there." in err


@pytest.mark.parametrize("url", ["127.0.0.1:8765", "ftp://x", "http://", "http://x:99999/mcp", ""])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with wired(url, None) as wire:
        code, out, err = wire.ended()
    assert (code, out) == (2, b"")
    assert "--url" in err
    assert err.count("\n") == 1


def test_a_key_never_stands_in_the_address() -> None:
    with wired("http://me:secret@127.0.0.1:1/mcp", None) as wire:
        code, out, err = wire.ended()
    assert (code, out) == (2, b"")
    assert "secret" not in err


class Odd(BaseHTTPRequestHandler):
    """A server that is none of ours."""

    seen: ClassVar[list[tuple[str, Any]]] = []
    answers: ClassVar[dict[str, tuple[int, dict[str, str], bytes]]] = {
        "/html": (200, {"Content-Type": "text/html"}, b"<h1>hello</h1>"),
        "/moved": (307, {"Location": "http://127.0.0.1:1/elsewhere"}, b""),
        "/broken": (200, {"Content-Type": "application/json"}, b'{"a":\n'),
        "/failing": (500, {"Content-Type": "text/plain"}, b"\x1b[31mboom"),
        "/pretty": (
            200,
            {"Content-Type": "application/json"},
            b'{\n "jsonrpc": "2.0",\r\n "id": 1,\n "result": {"n": 123456789012345678901}\n}',
        ),
        "/cut": (200, {"Content-Type": "text/event-stream"}, b"event: message\r\n"),
    }

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        type(self).seen.append((self.path, json.loads(body)))
        status, headers, answer = self.answers[self.path]
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def odd() -> Iterator[str]:
    Odd.seen.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Odd) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/html", "answered text/html; it is no MCP endpoint"),
        ("/moved", "leads to http://127.0.0.1:1/elsewhere, which is not followed"),
        ("/broken", "something that is no JSON-RPC message"),
        ("/failing", "answered 500."),
        ("/cut", "may have been carried out. It was not repeated."),
    ],
)
def test_a_call_that_another_server_answers_oddly_is_sent_once(
    odd: str, path: str, told: str
) -> None:
    with wired(f"{odd}{path}", "key") as wire:
        wire.call(1, "pay")
        answer = wire.answer()
        assert answer["id"] == 1
        assert told in answer["error"]["message"]
        clean(wire)
    assert [seen for seen, _ in Odd.seen] == [path]


def test_an_answer_over_several_lines_becomes_one_with_every_digit(odd: str) -> None:
    with wired(f"{odd}/pretty", "key") as wire:
        wire.call(1, "any")
        assert wire.answer()["result"] == {"n": 123456789012345678901}
        clean(wire)


def test_a_message_passes_with_every_digit(odd: str) -> None:
    with wired(f"{odd}/pretty", "key") as wire:
        wire.call(1, "any", number=123456789012345678901, text="☃\n")
        wire.answer()
    arguments = Odd.seen[0][1]["params"]["arguments"]
    assert arguments == {"number": 123456789012345678901, "text": "☃\n"}


def test_a_client_that_stops_reading_ends_it(server: Backend) -> None:
    with wired(server.url, server.key) as wire:
        works(wire)
        assert wire.process.stdout is not None
        wire.process.stdout.close()
        wire.call(2, "list_collections")
        assert wire.process.wait(PATIENT) == 0
        assert wire.process.stderr is not None
        assert b"Traceback" not in wire.process.stderr.read()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_the_middle_of_a_call(server: Backend, number: int) -> None:
    with wired(server.url, server.key) as wire:
        works(wire)
        wire.call(2, "hold")
        wire.process.send_signal(number)
        assert wire.process.wait(PATIENT) == 0


def test_at_the_end_of_input_running_calls_may_finish(server: Backend) -> None:
    with wired(server.url, server.key) as wire:
        wire.call(1, "test_tool_with_progress")
        wire.call(2, "hold")
        code, out, _ = wire.ended()
    assert code == 0
    assert [json.loads(line)["id"] for line in out.splitlines()] == [1]


def test_the_bridge_is_light() -> None:
    code = "import sys, toolgate.transports.mcp.bridge.relay; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENT
    )
    loaded = set(done.stdout.split())
    assert "httpx2" in loaded
    assert loaded.isdisjoint({"mcp", "mcp_types", "sqlalchemy", "uvicorn", "toolgate.gate"})

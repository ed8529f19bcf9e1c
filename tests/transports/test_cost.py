"""What a call costs, counted and not timed, so that a step back is seen on any machine.

`docs/explanation/where-the-time-goes.md` says what the figures are made of. Who needs more than is
allowed here should know what for.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.gate.tools import a_tool, offer
from tests.statements import noted_statements
from tests.transports.conftest import Web, opened_web

from toolgate.db.threads import Threads
from toolgate.gate.principal import Role
from toolgate.transports.mcp import answers

pytestmark = pytest.mark.anyio

MODERN, LEGACY = "2026-07-28", "2025-11-25"
CALL_FRAMES = 55
"""Python functions entered for one governed call, from ASGI to ASGI."""
LIST_FRAMES = 23

Ask = Callable[[], Awaitable[bytes]]


@pytest.fixture(scope="module")
async def web(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    folder = tmp_path_factory.mktemp("cost")
    async with opened_web(folder, offer(a_tool("echo", role=Role.PUBLIC))) as opened:
        yield opened


def asking(web: Web, era: str, method: str, **params: Any) -> Ask:
    """One request of a client that has asked before, without HTTP around it."""
    headers = {
        "host": "127.0.0.1",
        "authorization": f"Bearer {web.keys['admin']}",
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": era,
    }
    if era == MODERN:
        meta = "io.modelcontextprotocol/"
        params["_meta"] = {f"{meta}protocolVersion": era, f"{meta}clientCapabilities": {}}
        headers |= {"mcp-method": method} | (
            {"mcp-name": params["name"]} if "name" in params else {}
        )
    body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]

    async def ask() -> bytes:
        return await exchanged(web.app, raw, body)

    return ask


async def exchanged(app: Any, headers: list[tuple[bytes, bytes]], body: bytes) -> bytes:
    scope: dict[str, Any] = {
        "type": "http",
        "method": "POST",
        "scheme": "http",
        "path": "/mcp",
        "headers": headers,
        "client": ("127.0.0.1", 1),
    }
    sent: list[bytes] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message.get("body", b""))

    await app(scope, receive, send)
    return b"".join(sent)


async def frames(ask: Ask) -> Counter[str]:
    """The functions of ours that are entered for a request, once everything is warm."""
    for _ in range(3):
        assert b'"result"' in await ask()
    entered: Counter[str] = Counter()

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            entered[frame.f_code.co_qualname] += 1

    sys.setprofile(note)
    try:
        await ask()
    finally:
        sys.setprofile(None)
    return entered


def get_document(web: Web, era: str) -> Ask:
    arguments = {"collection": "users", "document_id": "jane"}
    return asking(web, era, "tools/call", name="get_document", arguments=arguments)


@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_a_call_enters_few_functions(web: Web, era: str) -> None:
    entered = await frames(asking(web, era, "tools/call", name="echo", arguments={}))
    assert entered.total() <= CALL_FRAMES, entered.most_common()


@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_a_list_enters_few_functions_however_many_tools_there_are(
    web: Web, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = asking(web, era, "tools/list")
    await ask()

    def never(*_: Any) -> Any:
        raise AssertionError("a list is put together once")

    monkeypatch.setattr(answers, "listed_tool", never)
    entered = await frames(ask)
    assert entered.total() <= LIST_FRAMES, entered.most_common()


@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_a_call_asks_the_database_for_nothing_but_its_data(web: Web, era: str) -> None:
    echo = asking(web, era, "tools/call", name="echo", arguments={})
    read = get_document(web, era)
    await echo()
    await read()
    with noted_statements() as statements:
        await echo()
    assert statements == []
    with noted_statements() as statements:
        await read()
    assert len(statements) == 1, statements


@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_a_document_is_read_without_a_thread_or_a_task(
    web: Web, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = get_document(web, era)
    await read()

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("not for a look-up by key")

    monkeypatch.setattr(Threads, "run", never)
    monkeypatch.setattr(asyncio.get_running_loop(), "create_task", never, raising=False)
    assert b'"isError"' in await read()


async def test_a_credential_that_was_seen_is_not_hashed_again(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = asking(web, MODERN, "tools/call", name="echo", arguments={})
    entered = await frames(ask)
    assert not any("digest" in name or "_hash" in name for name in entered), entered


async def test_rows_of_many_calls_are_stored_in_few_statements(tmp_path: Path) -> None:
    async with opened_web(tmp_path, offer(a_tool("echo", role=Role.PUBLIC))) as opened:
        ask = asking(opened, MODERN, "tools/call", name="echo", arguments={})
        await ask()
        await opened.kit.app.gate.audit.flush()
        with noted_statements() as statements:
            for _ in range(200):
                await ask()
            await opened.kit.app.gate.audit.flush()
    stored = [one for one in statements if one.startswith("INSERT INTO audit ")]
    assert 1 <= len(stored) <= 8, len(stored)
    assert len(statements) <= len(stored) + 6, statements

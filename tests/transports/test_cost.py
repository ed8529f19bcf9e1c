"""What a call costs, counted and not timed, so that a step back is seen on any machine.

`docs/explanation/where-the-time-goes.md` says what the figures are made of. Who needs more than is
allowed here should know what for.
"""

import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.gate.tools import a_tool, offer
from tests.statements import noted_statements
from tests.transports.conftest import Web, opened_web
from tests.transports.lines import Line, known, written
from tests.transports.mcp_requests import LEGACY, MODERN, Request, request, tool_call

from toolgate.db import engine
from toolgate.db.threads import Threads
from toolgate.gate import audit, seals
from toolgate.gate.principal import Role
from toolgate.transports.edge import Edge
from toolgate.transports.mcp import responses

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("remembered")]

CALL_FRAMES = 55
"""Python functions entered for one governed call, from the bytes that came to those that go."""
UNSEEN_FRAMES = 100
"""The same with a key that was not seen in the last second, in a head that is known otherwise."""
RETURNING_FRAMES = 58
"""The same with one that was seen before, but not in the last second."""
LIST_FRAMES = 23
CLIENT = ("/tests/", "/types.py")

Ask = Callable[[], Awaitable[bytes]]


@pytest.fixture(scope="module", autouse=True)
def nothing_beside() -> Iterator[None]:
    """What is done every so often is done at another time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audit, "BATCH_SECONDS", 3600)
        patch.setattr(seals, "SEAL_SECONDS", 3600)
        patch.setattr(engine, "LOOK_SECONDS", 3600)
        yield


@pytest.fixture(scope="module")
async def web(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    folder = tmp_path_factory.mktemp("cost")
    async with opened_web(folder, offer(a_tool("echo", role=Role.PUBLIC))) as opened:
        yield opened


async def asking(web: Web, asked: Request) -> Ask:
    """One request of a client that has asked before, on a connection that stays."""
    line, wire = Line(web), written(web, asked)
    await known(line, wire)

    async def ask() -> bytes:
        return (await line.ask_alone(wire)).body

    return ask


async def frames(ask: Ask) -> Counter[str]:
    """The functions that are entered for a request, once everything is warm."""
    for _ in range(3):
        assert b'"result"' in await ask()
    entered: Counter[str] = Counter()

    def note(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and not any(one in code.co_filename for one in CLIENT):
            entered[code.co_qualname] += 1

    sys.setprofile(note)
    try:
        await ask()
    finally:
        sys.setprofile(None)
    return entered


async def echo(web: Web, era: str) -> Ask:
    return await asking(web, tool_call(era, "echo", {}))


async def get_document(web: Web, era: str) -> Ask:
    wanted = {"collection": "users", "document_id": "jane"}
    return await asking(web, tool_call(era, "get_document", wanted))


@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_a_call_enters_few_functions(web: Web, era: str) -> None:
    entered = await frames(await echo(web, era))
    assert entered.total() <= CALL_FRAMES, entered.most_common()


@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_a_list_enters_few_functions_however_many_tools_there_are(
    web: Web, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = await asking(web, request(era, "tools/list"))
    await ask()

    def never(*_: Any) -> Any:
        raise AssertionError("a list is put together once")

    monkeypatch.setattr(responses, "listed_tool", never)
    entered = await frames(ask)
    assert entered.total() <= LIST_FRAMES, entered.most_common()


@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_a_call_asks_the_database_for_nothing_but_its_data(web: Web, era: str) -> None:
    await web.kit.app.gate.audit.flush()
    say = await echo(web, era)
    read = await get_document(web, era)
    await say()
    await read()
    with noted_statements() as statements:
        await say()
    assert statements == []
    with noted_statements() as statements:
        await read()
    assert len(statements) == 1, statements


@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_a_document_is_read_without_a_thread(
    web: Web, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = await get_document(web, era)
    await read()

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("not for a look-up by key")

    monkeypatch.setattr(Threads, "run", never)
    assert b'"isError"' in await read()


async def test_a_credential_that_was_seen_is_not_hashed_again(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = await echo(web, MODERN)
    entered = await frames(ask)
    assert not any("digest" in name or "_hash" in name for name in entered), entered


async def echo_of_unseen_keys(web: Web, *, returning: bool = False) -> Ask:
    """A request with another key each time; `returning`: that was seen, if not lately."""
    line, asked = Line(web), tool_call(MODERN, "echo", {})
    await known(line, written(web, asked))
    made = [await web.kit.app.keys.create(role=Role.USER, user_id="abc123") for _ in range(6)]
    every = [written(web, asked, authorization=f"Bearer {one.key}") for one in made]
    for wire in every if returning else []:
        await line.ask_alone(wire)
    assert isinstance(web.app, Edge)
    web.app.heads._known.clear()  # pyright: ignore[reportPrivateUsage]
    wires, line.requests = iter(every), 0

    async def ask() -> bytes:
        body = (await line.ask_alone(next(wires))).body
        assert line.requests == 0, "by way of ASGI"
        return body

    return ask


async def test_a_call_with_an_unseen_key_enters_few_functions(web: Web) -> None:
    entered = await frames(await echo_of_unseen_keys(web))
    assert entered.total() <= UNSEEN_FRAMES, entered.most_common()
    assert entered["digest"] + entered["_hash"] == 1, "its digest is made once"


async def test_a_call_with_an_unseen_key_asks_the_database_once(web: Web) -> None:
    ask = await echo_of_unseen_keys(web)
    await ask()
    with noted_statements() as statements:
        await ask()
    assert len(statements) == 1, statements


async def test_a_call_with_a_key_that_was_seen_before_asks_nothing(web: Web) -> None:
    ask = await echo_of_unseen_keys(web, returning=True)
    with noted_statements() as statements:
        entered = await frames(ask)
    assert statements == []
    assert entered.total() <= RETURNING_FRAMES, entered.most_common()


async def test_rows_of_many_calls_are_stored_in_few_statements(tmp_path: Path) -> None:
    async with opened_web(tmp_path, offer(a_tool("echo", role=Role.PUBLIC))) as opened:
        ask = await echo(opened, MODERN)
        await ask()
        await opened.kit.app.gate.audit.flush()
        with noted_statements() as statements:
            for _ in range(200):
                await ask()
            await opened.kit.app.gate.audit.flush()
    stored = [one for one in statements if one.startswith("INSERT INTO audit ")]
    assert 1 <= len(stored) <= 8, len(stored)
    # The seal, in a savepoint of its own. What packs look for meanwhile is no part of a call.
    of_rows = [one for one in statements if "audit" in one or "SAVEPOINT" in one]
    assert len(of_rows) <= len(stored) + 8, of_rows
    assert len(statements) < 200, "a call has none of its own"

"""Bodies that are not small: what they may take of the process, and for how long."""

import asyncio
import errno
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.gate.tools import a_tool, offer
from tests.patience import PATIENT
from tests.transports.conftest import Web, opened_web
from tests.transports.exchanges import Exchange, called

from toolgate.gate.context import Context
from toolgate.gate.principal import Role
from toolgate.gate.tool import Input, Output, ToolLimits
from toolgate.gate.turns import Turns
from toolgate.transports import body_files, large_bodies
from toolgate.transports.body_files import BodyFile

pytestmark = pytest.mark.anyio

USUAL, FILE = 4096, 30_000
PATHS = ["/v1/tools", "/rpc", "/mcp"]


class Text(Input):
    text: str


class Length(Output):
    length: int


class Calls:
    """Who called, in order; a call ends when it may."""

    callers: ClassVar[list[str]] = []
    begun: ClassVar[asyncio.Event]
    may_end: ClassVar[asyncio.Event]


async def take(ctx: Context[None], args: Text) -> Length:
    Calls.callers.append(ctx.principal.id)
    Calls.begun.set()
    await Calls.may_end.wait()
    return Length(length=len(args.text))


@pytest.fixture(autouse=True)
def calls() -> None:
    Calls.callers, Calls.begun, Calls.may_end = [], asyncio.Event(), asyncio.Event()
    Calls.may_end.set()


def opened(folder: Path, **settings: Any) -> Any:
    taking = ToolLimits(body_bytes=FILE)
    tools = [
        a_tool("file.take", take, takes=Text, gives=Length, role=Role.ADMIN, limits=taking),
        a_tool("plain", take, takes=Text, gives=Length, role=Role.PUBLIC),
    ]
    limits: dict[str, Any] = {"limits__body_bytes": USUAL, "limits__attachment_bytes": FILE}
    return opened_web(folder, offer(*tools), **(limits | settings))


@pytest.fixture
async def web(tmp_path: Path) -> AsyncIterator[Web]:
    async with opened(tmp_path) as made:
        yield made


async def another_admin(web: Web) -> str:
    return (await web.kit.app.keys.create(role=Role.ADMIN)).key


def put(web: Web, path: str = "/v1/tools", text: str = "x" * 20_000, **given: Any) -> Exchange:
    """A request with a file, all of which has come."""
    path, body = called(path, "file.take", text)
    exchange = Exchange(web, path, len(body), **given)
    exchange.give(body)
    return exchange


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("spent", ["calls", "refusals"])
async def test_who_has_nothing_left_is_told_so_unread(
    tmp_path: Path, path: str, spent: str
) -> None:
    few = "limits__calls_per_minute" if spent == "calls" else "limits__refusals_per_minute"
    async with opened(tmp_path, **{few: 1}) as web:
        tool = "plain" if spent == "calls" else "none"
        async with web.client() as client:
            await client.post(f"/v1/tools/{tool}", json={"text": ""})
        where, _ = called(path, "file.take", "")
        for length in (5000, 20_000, None):
            refused = Exchange(web, where, length)
            assert (await refused.end(), refused.read) == (429, 0), refused.body


@pytest.mark.parametrize("path", PATHS)
async def test_who_does_not_read_the_answer_keeps_nobody_waiting(web: Web, path: str) -> None:
    slow = put(web, path, reads=False)
    await asyncio.wait_for(slow.begun.wait(), PATIENT)
    assert await put(web).end() == 200
    assert not slow.task.done()
    assert await slow.end() == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/v1/tools"), ("GET", "/mcp"), ("DELETE", "/mcp"), ("GET", "/openapi.json")],
)
async def test_where_no_file_is_taken_none_is_stored(
    web: Web, monkeypatch: pytest.MonkeyPatch, method: str, path: str
) -> None:
    def never(*_: Any) -> Any:
        raise AssertionError("nothing is to be stored")

    monkeypatch.setattr(large_bodies, "BodyFile", never)
    asked = Exchange(web, path, 20_000, method=method)
    asked.give(b"x" * 20_000)
    asked.leave()
    await asked.end()
    refused = Exchange(web, "/v1/tools/plain", 20_000)
    assert (await refused.end(), refused.read) == (413, 0)


async def test_callers_take_turns(web: Web) -> None:
    Calls.may_end.clear()
    first = put(web)
    await asyncio.wait_for(Calls.begun.wait(), PATIENT)
    many = [put(web) for _ in range(3)]
    for one in many:
        await one.waiting()
    other = put(web, key=await another_admin(web))
    await other.waiting()
    Calls.may_end.set()
    assert [await one.end() for one in (first, *many, other)] == [200] * 5
    mine = Calls.callers[0]
    assert [one == mine for one in Calls.callers] == [True, True, False, True, True]


async def test_who_leaves_waits_no_longer(web: Web) -> None:
    Calls.may_end.clear()
    first = put(web)
    await asyncio.wait_for(Calls.begun.wait(), PATIENT)
    gone = put(web)
    await gone.waiting()
    gone.leave()
    assert await gone.end() == 0
    Calls.may_end.set()
    assert (await first.end(), await put(web).end()) == (200, 200)
    assert len(Calls.callers) == 2


@pytest.mark.parametrize("path", PATHS)
async def test_nobody_waits_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    def none(_: int) -> Turns:
        return Turns(0)

    monkeypatch.setattr(large_bodies, "Turns", none)
    async with opened(tmp_path, limits__seconds=0.01) as web:
        refused = put(web, path)
        assert await refused.end() == 503, refused.body
    assert b"take long" in refused.body


@pytest.mark.parametrize("path", PATHS)
async def test_files_that_wait_are_bounded_for_each_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(large_bodies, "LEAST_FILE", 0)
    monkeypatch.setattr(large_bodies, "MAX_IN_FILES", 100_000)
    async with opened(tmp_path) as web:
        where, body = called(path, "file.take", "x" * 20_000)
        begun = [Exchange(web, where, len(body)) for _ in range(3)]
        for one in begun:
            await one.waiting()
        refused = Exchange(web, where, len(body))
        assert (await refused.end(), refused.read) == (429, 0), refused.body
        assert b"Send fewer at once" in refused.body
        assert await put(web, path, key=await another_admin(web)).end() == 200
        for one in begun:
            one.leave()
            assert await one.end() == 0
        assert await put(web, path).end() == 200


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("chunked", [False, True], ids=["of known length", "chunked"])
async def test_bodies_in_memory_are_bounded_for_each_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, chunked: bool
) -> None:
    # Where nobody says how much comes, more is taken than is needed.
    monkeypatch.setattr(large_bodies, "MAX_IN_MEMORY", 800_000 if chunked else 500_000)
    async with opened(tmp_path, limits__body_bytes=200_000) as web:
        where, body = called(path, "plain", "x" * 100_000)
        length = None if chunked else len(body)
        begun = [Exchange(web, where, length) for _ in range(3)]
        for one in begun:
            await one.waiting()
            one.give(body[:90_000], more=True)
            await one.waiting()
        refused = Exchange(web, where, length)
        assert await refused.end() == 429, refused.body
        for one in begun:
            one.give(body[90_000:])
            assert await one.end() == 200, one.body
        again = Exchange(web, where, length)
        again.give(body)
        assert await again.end() == 200


ODD_LENGTHS = {
    "space": b"100011 ",
    "tab": b"100011\t",
    "zeros": b"00000000000000100011",
    "many zeros": b"0" * 5000 + b"100011",
    "no number": b"many",
    "nothing": b"",
}


@pytest.mark.parametrize("length", ODD_LENGTHS.values(), ids=list(ODD_LENGTHS))
async def test_a_length_in_an_odd_spelling_takes_room_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: bytes
) -> None:
    monkeypatch.setattr(large_bodies, "MAX_IN_MEMORY", 400_000)
    async with opened(tmp_path, limits__body_bytes=200_000) as web:
        where, body = called("/v1/tools", "plain", "x" * 100_000)
        assert len(body) == 100_011
        begun = [Exchange(web, where, length) for _ in range(10)]
        for one in begun:
            one.give(body[:90_000], more=True)
            await one.settled()
        held = [one for one in begun if not one.sent]
        assert 1 <= len(held) <= 3
        assert {one.status for one in begun if one.sent} == {429}
        for one in held:
            one.give(body[90_000:])
            assert await one.end() == 200, one.body


@pytest.mark.parametrize("length", ODD_LENGTHS.values(), ids=list(ODD_LENGTHS))
async def test_who_has_nothing_left_is_told_so_unread_in_any_spelling(
    tmp_path: Path, length: bytes
) -> None:
    async with opened(tmp_path, limits__calls_per_minute=1) as web:
        async with web.client() as client:
            await client.post("/v1/tools/plain", json={"text": ""})
        refused = Exchange(web, "/v1/tools/plain", length)
        assert (await refused.end(), refused.read) == (429, 0), refused.body


@pytest.mark.parametrize("path", PATHS)
async def test_a_full_disk_is_told_in_the_callers_words(
    web: Web, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    monkeypatch.setattr(body_files, "SPARE_BYTES", 1 << 60)
    refused = put(web, path)
    assert await refused.end() == 503, refused.body
    assert b"cannot be stored" in refused.body
    assert refused.body.startswith(b"{")
    assert os.strerror(errno.ENOSPC) in caplog.text


async def test_a_disk_that_fails_while_a_body_comes_is_told_too(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(errno.EIO, "no")

    monkeypatch.setattr(BodyFile, "write", fail)
    assert await put(web).end() == 503
    monkeypatch.undo()
    assert await put(web).end() == 200


def test_what_the_system_takes_in_parts_is_written_as_a_whole(tmp_path: Path) -> None:
    class Short:
        def __init__(self, file: Any) -> None:
            self.file = file

        def write(self, data: memoryview) -> int:
            return self.file.write(data[:7])

        def read(self, size: int) -> bytes:
            return self.file.read(min(size, 5))

        def __getattr__(self, name: str) -> Any:
            return getattr(self.file, name)

    with BodyFile(tmp_path, 100) as file:
        vars(file)["_file"] = Short(vars(file)["_file"])
        file.write(bytes(range(100)))
        assert file.read() == bytes(range(100))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("size", [10, 3000, 20_000])
async def test_a_key_that_ends_while_its_request_comes_does_nothing(
    web: Web, path: str, size: int
) -> None:
    keys = web.kit.app.keys
    made = await keys.create(role=Role.ADMIN)
    where, body = called(path, "file.take", "x" * size)
    begun = Exchange(web, where, len(body), key=made.key)
    begun.give(body[:20], more=True)
    await begun.waiting()
    await keys.revoke(made.id)
    begun.give(body[20:])
    assert (await begun.end(), Calls.callers) == (401, [])
    assert any(name == b"www-authenticate" for name, _ in begun.sent[0]["headers"])


async def test_a_key_that_ends_while_its_request_waits_does_nothing(web: Web) -> None:
    keys = web.kit.app.keys
    made = await keys.create(role=Role.ADMIN)
    Calls.may_end.clear()
    first = put(web)
    await asyncio.wait_for(Calls.begun.wait(), PATIENT)
    second = put(web, key=made.key)
    await second.waiting()
    await keys.revoke(made.id)
    Calls.may_end.set()
    assert (await first.end(), await second.end(), len(Calls.callers)) == (200, 401, 1)
    assert await put(web).end() == 200

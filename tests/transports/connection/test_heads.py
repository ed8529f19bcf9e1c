"""Headers that were found good are remembered, and never for longer than they are good."""

import math
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest
from sqlalchemy import update
from tests.transports.conftest import Web

from toolgate.db.tables import keys
from toolgate.gate.principal import Role
from toolgate.transports.connection import heads
from toolgate.transports.connection.heads import Head, Heads, SeenKeys
from toolgate.transports.edge import Edge

pytestmark = pytest.mark.anyio

TOOLS = "/v1/tools"


def kept(web: Web) -> dict[Any, Head]:
    assert isinstance(web.app, Edge)
    return web.app.heads._known  # pyright: ignore[reportPrivateUsage]


def later(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    real = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: real() + seconds)


@pytest.fixture
async def made(web: Web) -> str:
    """A key that a test may end; its holder is `guest`."""
    key = await web.kit.app.keys.create(role=Role.USER)
    web.keys["guest"] = key.key
    return key.id


async def test_headers_that_come_again_are_known(web: Web) -> None:
    kept(web).clear()
    async with web.client() as http:
        first, second = [await http.get(TOOLS) for _ in range(2)]
    assert (first.status_code, first.content) == (second.status_code, second.content)
    assert first.headers["x-request-id"] != second.headers["x-request-id"]
    assert len(kept(web)) == 1


async def test_a_key_that_is_ended_here_is_refused_at_once(web: Web, made: str) -> None:
    async with web.client("guest") as http:
        assert (await http.get(TOOLS)).status_code == 200
        await web.kit.app.keys.revoke(made)
        assert (await http.get(TOOLS)).status_code == 401


async def test_a_key_that_is_ended_elsewhere_is_refused_within_a_second(
    web: Web, made: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = update(keys).where(keys.c.id == made).values(revoked_at="2020-01-01T00:00:00.000000Z")
    async with web.client("guest") as http:
        assert (await http.get(TOOLS)).status_code == 200
        later(monkeypatch, 0.9)
        # Known from before, and remembered once more with other headers.
        assert (await http.get(TOOLS, headers={"x-other": "1"})).status_code == 200
        await web.kit.app.gate.database.write(lambda connection: connection.execute(ended))
        later(monkeypatch, 1.0)
        assert (await http.get(TOOLS)).status_code == 401
        assert (await http.get(TOOLS, headers={"x-other": "1"})).status_code == 401


@pytest.mark.parametrize(
    ("different", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"origin": "https://evil.example"}, 403),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": ""}, 401),
    ],
)
async def test_other_headers_are_looked_at_anew(
    web: Web, different: dict[str, str], status: int
) -> None:
    async with web.client() as http:
        assert (await http.get(TOOLS)).status_code == 200
        assert (await http.get(TOOLS, headers=different)).status_code == status


async def test_nothing_is_remembered_for_long(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """No credential stays in memory when its holder is gone."""
    async with web.client() as http, web.client("user") as other:
        for _ in range(2):
            await http.get(TOOLS)
        later(monkeypatch, 5)
        for _ in range(2):
            await other.get(TOOLS)
    assert [head.principal.roles for head in kept(web).values()] == [{Role.USER}]


def a_head() -> Head:
    return Head(cast(Any, None), cast(Any, None), math.inf)


def some_heads() -> Heads:
    keys = SimpleNamespace(revocations=0)
    return Heads(cast(Any, SimpleNamespace(keys=keys, forgotten=0)))


async def test_headers_that_are_new_each_time_are_not_kept(web: Web) -> None:
    kept(web).clear()
    async with web.client() as http:
        for number in range(5):
            traced = {"traceparent": f"00-{number:032x}-{number:016x}-01"}
            assert (await http.get(TOOLS, headers=traced)).status_code == 200
    assert not kept(web)


def test_heads_that_never_come_back_keep_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "MAX_HEADS", 10)
    table = some_heads()
    table.recall("anything")
    head = a_head()
    for number in range(1000):
        table.keep(f"once {number}", head)
    for number in range(25):
        for _ in range(2):
            table.keep(f"twice {number}", head)
        assert table.recall(f"twice {number}") is head, "a newcomer gets in"
    assert len(table._known) == 10  # pyright: ignore[reportPrivateUsage]


def test_what_was_seen_is_still_seen_when_what_is_known_is_forgotten() -> None:
    table = some_heads()
    table.recall("anything")
    table.keep("client", a_head())
    assert table.recall("client") is None
    table.forget()
    table.keep("client", head := a_head())
    assert table.recall("client") is head


def test_sightings_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "MAX_HEADS", 100)
    seen = SeenKeys()
    assert not seen.check_and_add("client")
    for number in range(100_000):
        seen.check_and_add(number)
        if number % 50 == 0:
            assert seen.check_and_add("client"), "who comes often enough is remembered"
    assert sum(len(one) for one in vars(seen).values()) <= 200


def test_a_head_of_unusual_length_is_not_kept_byte_for_byte() -> None:
    table = some_heads()
    table.recall("anything")
    for size, kept_there in ((heads.MAX_HEAD_BYTES, True), (heads.MAX_HEAD_BYTES + 1, False)):
        key = ("peer", b"x" * size)
        for _ in range(2):
            table.keep_raw(key, a_head())
        assert (table.recall(key) is not None) == kept_there


async def test_ids_that_callers_choose_are_kept_and_fill_no_memory(web: Web) -> None:
    async with web.client() as http:
        for number in range(3):
            answer = await http.get(TOOLS, headers={"x-request-id": f"mine-{number}"})
            assert answer.headers["x-request-id"] == f"mine-{number}"
    assert not any(name == b"x-request-id" for key in kept(web) for name, _ in key[2:])

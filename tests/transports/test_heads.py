"""Headers that were found good are remembered, and never for longer than they are good."""

import time
from typing import Any

import pytest
from sqlalchemy import update
from tests.transports.conftest import Web

from toolgate.db.tables import keys
from toolgate.gate.principal import Role
from toolgate.transports.edge import Edge
from toolgate.transports.heads import Head

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
        # Known from before, and remembered once more with other headers: for no longer.
        assert (await http.get(TOOLS, headers={"x-other": "1"})).status_code == 200
        await web.kit.app.gate.database.write(lambda connection: connection.execute(ended))
        later(monkeypatch, 0.2)
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
    async with web.client() as http:
        await http.get(TOOLS)
        later(monkeypatch, 5)
        async with web.client("user") as other:
            await other.get(TOOLS)
    assert [head.principal.roles for head in kept(web).values()] == [{Role.USER}]


async def test_ids_that_callers_choose_are_kept_and_fill_no_memory(web: Web) -> None:
    async with web.client() as http:
        for number in range(3):
            answer = await http.get(TOOLS, headers={"x-request-id": f"mine-{number}"})
            assert answer.headers["x-request-id"] == f"mine-{number}"
    assert not any(name == b"x-request-id" for key in kept(web) for name, _ in key[2:])

"""Who registers and begins sign-ins by the thousand displaces their own, and nobody else's."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import func, select
from tests.identity.oauth.flow import Flow, hidden, query_of, registered
from tests.transports.conftest import ADMIN_KEY, Web, opened_web

from toolgate.db.oauth_tables import clients, sign_ins
from toolgate.identity.oauth import clients as clients_module
from toolgate.identity.oauth import sign_ins as sign_ins_module
from toolgate.identity.oauth.eviction import network_of

pytestmark = pytest.mark.anyio

PERSON, OTHER_SITE = "198.51.100.7", "2001:db8:2::1"
MOST = 20


@asynccontextmanager
async def at(web: Web, peer: str) -> AsyncGenerator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(web.app, client=(peer, 50000))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        yield http


def of_one_site(number: int) -> str:
    """An address in another /64 each time, all in one /48."""
    return f"2001:db8:1:{number:x}::1"


async def many(web: Web, table: Any) -> int:
    counted = select(func.count()).select_from(table)
    return await web.kit.app.gate.database.read(lambda c: c.execute(counted).scalar_one())


async def flood(web: Web, times: int, *, begins: bool = False) -> None:
    """A stranger registers from all over its site, and perhaps begins to sign in with each."""
    for number in range(times):
        async with at(web, of_one_site(number)) as http:
            flow = await registered(http)
            if begins:
                assert (await flow.authorize()).status_code == 303


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients_module, "MAX_NEVER_USED", MOST)
    monkeypatch.setattr(sign_ins_module, "MAX_AT_ONCE", MOST)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("begins", [False, True])
async def test_registrations_of_one_site_displace_only_their_own(
    tmp_path: Path, *, begins: bool
) -> None:
    async with opened_web(tmp_path) as web, at(web, PERSON) as http, at(web, OTHER_SITE) as other:
        mine, theirs = await registered(http), await registered(other)
        await flood(web, 3 * MOST, begins=begins)
        assert (await mine.tokens(ADMIN_KEY))["token_type"] == "Bearer"
        assert (await theirs.tokens(ADMIN_KEY))["token_type"] == "Bearer"
        assert await many(web, clients) <= 2 * MOST + 2


@pytest.mark.usefixtures("few")
async def test_a_client_with_a_sign_in_on_its_way_stays_where_all_have_one_each(
    tmp_path: Path,
) -> None:
    async with opened_web(tmp_path) as web, at(web, PERSON) as http:
        mine = await registered(http)
        page = await http.get((await mine.authorize()).headers["location"])
        for number in range(2 * MOST):  # networks of their own, so no one of them has most
            async with at(web, f"2001:db8:{number:x}::1") as stranger:
                await registered(stranger)
        answer = await http.post("/backend-manager/mcp/sign-in", data=key_in(page))
        code = await allowed(mine, answer)
        assert (await mine.exchange(code)).status_code == 200


def key_in(page: httpx2.Response) -> dict[str, str]:
    return {**hidden(page), "key": ADMIN_KEY}


async def allowed(flow: Flow, signed_in: httpx2.Response) -> str:
    page = await flow.http.get(signed_in.headers["location"])
    return query_of(await flow.decide(page))["code"]


@pytest.mark.usefixtures("few")
async def test_sign_ins_of_one_site_displace_only_their_own(tmp_path: Path) -> None:
    async with opened_web(tmp_path) as web, at(web, PERSON) as http, at(web, OTHER_SITE) as other:
        mine = await registered(http)
        page = await http.get((await mine.authorize()).headers["location"])
        proved = await (await registered(other)).sign_in(ADMIN_KEY)
        await flood(web, 3 * MOST, begins=True)
        assert await many(web, sign_ins) == MOST + 1, "and the one that somebody has signed in to"
        answer = await http.post("/backend-manager/mcp/sign-in", data=key_in(page))
        assert answer.status_code == 303
        assert (await other.get(proved.headers["location"])).status_code == 200


async def test_the_network_is_kept_only_until_a_client_is_used(tmp_path: Path) -> None:
    async with opened_web(tmp_path) as web, at(web, of_one_site(1)) as http:
        flow = await registered(http)
        kept = select(clients.c.network)
        database = web.kit.app.gate.database
        assert await database.read(lambda c: c.execute(kept).scalar_one()) == "2001:db8:1::/48"
        await flow.tokens(ADMIN_KEY)
        assert await database.read(lambda c: c.execute(kept).scalar_one()) is None


@pytest.mark.parametrize(
    ("peer", "network"),
    [
        ("2001:db8:1:2::/64", "2001:db8:1::/48"),
        ("198.51.100.7", "198.51.100.7"),
        ("unknown", "unknown"),
        ("unknown via 10.0.0.1", "unknown via 10.0.0.1"),
    ],
)
def test_a_site_is_one_network(peer: str, network: str) -> None:
    assert network_of(peer) == network

"""Two workers that share nothing but the database: any of them can serve any step."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import anyio
import httpx2
import pytest
from tests.identity.oauth.flow import Flow, registered
from tests.patience import PATIENT
from tests.servers import Server, running_server

pytestmark = pytest.mark.anyio

PEOPLE = 25
RACERS = 20


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory, server__workers=2) as started:
        yield started


@pytest.fixture
async def http(workers: Server) -> AsyncIterator[httpx2.AsyncClient]:
    async with browser(workers) as client:
        yield client


def browser(server: Server) -> httpx2.AsyncClient:
    """A browser that opens a connection for each request, so that either worker may get it."""
    limits = httpx2.Limits(max_keepalive_connections=0)
    return httpx2.AsyncClient(base_url=server.url, trust_env=False, timeout=PATIENT, limits=limits)


async def test_people_sign_in_at_once(workers: Server) -> None:
    made: list[dict[str, Any]] = []

    async def one() -> None:
        async with browser(workers) as http:
            flow = await registered(http)
            tokens = await flow.tokens(workers.key_of("user"))
            assert (await flow.tools(tokens["access_token"])).status_code == 200
            renewed = await flow.refresh(tokens["refresh_token"])
            assert renewed.status_code == 200, renewed.text
            assert (await flow.tools(renewed.json()["access_token"])).status_code == 200
            made.append(tokens)

    async with anyio.create_task_group() as people:
        for _ in range(PEOPLE):
            people.start_soon(one)
    assert len({one["access_token"] for one in made}) == PEOPLE


async def test_of_racing_exchanges_of_one_code_one_succeeds(
    workers: Server, http: httpx2.AsyncClient
) -> None:
    flow = await registered(http)
    code = await flow.code(workers.admin_key)
    statuses: list[int] = []

    async def race(racer: Flow) -> None:
        statuses.append((await racer.exchange(code)).status_code)

    async with anyio.create_task_group() as racers:
        for _ in range(RACERS):
            racers.start_soon(race, flow)
    assert sorted(statuses) == [200] + [400] * (RACERS - 1)

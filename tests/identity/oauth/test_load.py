"""Many people at once on two workers, one of which is killed: nothing is lost, nothing doubled."""

import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import anyio
import psutil
import psycopg
import pytest
from sqlalchemy import func, make_url, select
from tests.databases import KINDS
from tests.each_worker import worker_pids
from tests.effort import effort
from tests.identity.oauth.crowd import Crowd, Person, gathered
from tests.patience import PATIENT
from tests.servers import Server, pause, running_server

from toolgate.db.engine import Database
from toolgate.db.oauth_tables import grants, tokens

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(600)]

AT_ONCE = effort(16, 40)
PEOPLE = {"sqlite": effort(40, 200), "postgresql": effort(20, 50)}
KILLED_AMONG = effort(24, 60)
"""Fewer do here: what counts are those on their way when the kill comes."""
WORKERS = 2


@dataclass(frozen=True)
class Running:
    """A server with two workers, and its database."""

    server: Server
    database: Database

    async def in_force(self, crowd: Crowd) -> dict[str, int]:
        """How many grants with tokens each of these people has."""
        held = (
            select(grants.c.user_id, func.count())
            .where(grants.c.code_used_at.is_not(None), grants.c.ended_at.is_(None))
            .where(grants.c.user_id.in_(crowd.keys))
            .group_by(grants.c.user_id)
        )
        return {uid: many for uid, many in await self.database.read(lambda c: [*c.execute(held)])}

    async def grants(self, crowd: Crowd) -> int:
        """How many grants these people have, also those that came to nothing."""
        every = select(func.count()).where(grants.c.user_id.in_(crowd.keys))
        return await self.database.read(lambda c: c.execute(every).scalar_one())

    async def tokens(self, crowd: Crowd) -> int:
        """How many tokens these people have."""
        joined = tokens.join(grants, grants.c.id == tokens.c.grant_id)
        every = select(func.count()).select_from(joined).where(grants.c.user_id.in_(crowd.keys))
        return await self.database.read(lambda c: c.execute(every).scalar_one())


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def address(kind: str, request: pytest.FixtureRequest) -> str | None:
    """Where the database is; None for the server's own."""
    if kind == "sqlite":
        return None
    room: str = request.getfixturevalue("postgres_room")
    with psycopg.connect(room, autocommit=True) as connection:
        connection.execute("CREATE DATABASE crowd")
    return make_url(room).set(database="crowd").render_as_string(hide_password=False)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, address: str | None) -> Iterator[Server]:
    settings = {} if address is None else {"database__url": address}
    with running_server(tmp_path_factory, server__workers=WORKERS, **settings) as started:
        yield started


@pytest.fixture
async def running(server: Server, address: str | None) -> AsyncIterator[Running]:
    database = Database(address or f"sqlite:///{server.data / 'toolgate.db'}")
    yield Running(server, database)
    await database.close()


async def test_everybody_signs_in_and_calls_at_once(running: Running, kind: str) -> None:
    names: dict[str, str] = {}

    async def one(crowd: Crowd, uid: str) -> None:
        async with crowd.person(uid) as person:
            await person.sign_in()
            names[uid] = await person.name()

    async with (
        gathered(running.server.url, running.database, PEOPLE[kind], "all") as crowd,
        anyio.create_task_group() as everybody,
    ):
        for uid in crowd.keys:
            everybody.start_soon(one, crowd, uid)
    assert names == {uid: uid for uid in crowd.keys}
    assert set(crowd.wire.statuses) == {200, 201, 303}
    assert crowd.wire.lost == 0
    assert await running.in_force(crowd) == dict.fromkeys(crowd.keys, 1)
    assert await running.grants(crowd) == PEOPLE[kind]
    assert await running.tokens(crowd) == 2 * PEOPLE[kind]


async def test_a_worker_is_killed_meanwhile(running: Running) -> None:
    """The killed one's answers are lost; who has tokens does not notice."""
    before = worker_pids(running.server.pid)
    assert len(before) == WORKERS
    victim, survivor = sorted(before)
    people: list[Person] = []
    turns = anyio.CapacityLimiter(AT_ONCE)

    async def one(crowd: Crowd, uid: str) -> None:
        async with turns, crowd.person(uid) as person:
            await person.sign_in()
            people.append(person)
            if len(people) == KILLED_AMONG // 2:
                psutil.Process(victim).kill()

    async with gathered(running.server.url, running.database, KILLED_AMONG, "some") as crowd:
        async with anyio.create_task_group() as everybody:
            for uid in crowd.keys:
                everybody.start_soon(one, crowd, uid)
        await all_are_known(people, crowd)
        assert await running.in_force(crowd) == dict.fromkeys(crowd.keys, 1)
        again = sum(person.beginnings - 1 for person in people)
        unused = await running.grants(crowd) - KILLED_AMONG
        assert unused <= again <= crowd.wire.lost <= AT_ONCE

        newcomer = replaced(running, before)
        psutil.Process(survivor).kill()
        await all_are_known(people, crowd)
        assert newcomer in worker_pids(running.server.pid)


async def all_are_known(people: list[Person], crowd: Crowd) -> None:
    """Every token works, is its holder's, and can be refreshed."""
    names: dict[str, str] = {}

    async def one(person: Person) -> None:
        assert await person.name() == person.uid
        await person.refresh()
        names[person.uid] = await person.name()

    async with anyio.create_task_group() as everybody:
        for person in people:
            everybody.start_soon(one, person)
    assert names == {uid: uid for uid in crowd.keys}


def replaced(running: Running, before: set[int]) -> int:
    """The worker that takes the killed one's place."""
    deadline = time.monotonic() + PATIENT
    while time.monotonic() < deadline:
        now = worker_pids(running.server.pid)
        if len(now) == WORKERS and now != before:
            [newcomer] = now - before
            return newcomer
        pause()
    pytest.fail(f"there was no new worker within {PATIENT} s")

"""`toolgate keys revoke`, as another process, ends the open event streams of running servers.

How long that takes is `stream_credentials`' to promise, and tested on a clock of the tests' own.
Here the processes are real, so what counts is the order of what happens.
"""

import json
import os
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import anyio
import httpx2
import psycopg
import pytest
from anyio import to_thread
from sqlalchemy import make_url
from tests import preloaded
from tests.databases import KINDS
from tests.patience import PATIENT
from tests.servers import Server, running_server
from tests.transports.mcp_requests import MODERN, request

pytestmark = pytest.mark.anyio

WORKERS = {"sqlite": 1, "postgresql": 2}
STREAMS = 6
"""Connections of their own, so that both workers have some."""
LISTEN = request(MODERN, "subscriptions/listen", {"notifications": {"toolsListChanged": True}})
UNAUTHENTICATED = -32100


@dataclass(frozen=True)
class Installation:
    """A running server, and commands for its data."""

    server: Server
    database_url: str | None

    def command(self, *words: str) -> str:
        """What a command says, run as a process of its own."""
        ours = {} if self.database_url is None else {"TOOLGATE_DATABASE__URL": self.database_url}
        ended = preloaded.run(
            [sys.executable, "-m", "toolgate", *words, "--data", str(self.server.data)],
            env={"PATH": os.environ["PATH"], **ours},
            capture_output=True,
            text=True,
            timeout=PATIENT,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def key(self) -> dict[str, str]:
        return json.loads(self.command("keys", "create", "--role", "admin", "--json"))


@pytest.fixture(params=KINDS)
def installation(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    address = None
    if request.param == "postgresql":
        room: str = request.getfixturevalue("postgres_room")
        with psycopg.connect(room, autocommit=True) as connection:
            connection.execute("CREATE DATABASE revoked_elsewhere")
        made = make_url(room).set(database="revoked_elsewhere")
        address = made.render_as_string(hide_password=False)
    settings = {} if address is None else {"database__url": address}
    workers = WORKERS[request.param]
    with running_server(tmp_path_factory, server__workers=workers, **settings) as server:
        yield Installation(server, address)


@asynccontextmanager
async def stream(server: Server, key: str) -> AsyncGenerator[httpx2.Response]:
    """An open event stream, past its first event."""
    headers = {"Authorization": f"Bearer {key}", **LISTEN.headers}
    content = json.dumps(LISTEN.body).encode()
    async with (
        httpx2.AsyncClient(base_url=server.url, timeout=PATIENT, trust_env=False) as http,
        http.stream("POST", "/mcp", headers=headers, content=content) as opened,
    ):
        assert opened.status_code == 200
        yield opened


async def rest_of(opened: httpx2.Response) -> str:
    """All that comes until the server ends the stream."""
    return "".join([text async for text in opened.aiter_text()])


async def test_every_stream_of_the_key_ends_and_no_other(installation: Installation) -> None:
    server = installation.server
    gone, stays = await to_thread.run_sync(lambda: (installation.key(), installation.key()))
    events: list[str] = []
    told: list[str] = []

    async def follow(opened: httpx2.Response, name: str) -> None:
        told.append(await rest_of(opened))
        events.append(name)

    async with AsyncExitStack() as stack:
        theirs = [
            await stack.enter_async_context(stream(server, gone["key"])) for _ in range(STREAMS)
        ]
        other = await stack.enter_async_context(stream(server, stays["key"]))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow, other, "other")
            async with anyio.create_task_group() as ending:
                for opened in theirs:
                    ending.start_soon(follow, opened, "ended")
                assert events == []
                await to_thread.run_sync(installation.command, "keys", "revoke", gone["id"])
                events.append("revoked")
            assert sorted(events) == ["ended"] * STREAMS + ["revoked"], "the other one is open"
            tasks.cancel_scope.cancel()
    assert all(f'"code":{UNAUTHENTICATED}' in text for text in told)
    headers = {"Authorization": f"Bearer {gone['key']}"}
    async with httpx2.AsyncClient(base_url=server.url, timeout=PATIENT, trust_env=False) as http:
        with anyio.fail_after(PATIENT):
            while (await http.get("/v1/tools", headers=headers)).status_code != 401:
                continue  # remembered for a second at most

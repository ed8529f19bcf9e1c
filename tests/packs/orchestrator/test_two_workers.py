"""Two workers on one database: one winner a version, and settings that steer the other worker."""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import anyio
import httpx2
import psycopg
import pytest
from sqlalchemy.engine import make_url
from tests.each_worker import each_worker, until_each
from tests.effort import effort
from tests.patience import PATIENT
from tests.servers import Server, running_server

from toolgate import packs

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(600)]

WORKERS = 2
ROUNDS, AT_ONCE = effort(8, 20), effort(30, 50)
KEY = {"scope_type": "user", "scope_id": "alice", "key": "custom.counter"}
TASK = {"task_id": "00000000-0000-4000-8000-0000000000b1"}
DISABLED = "mcp.tools.disabled"


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    settings: dict[str, Any] = {
        "server__workers": WORKERS,
        "packs__enabled": packs.SHIPPED,
    }
    if request.param == "postgresql":
        room: str = request.getfixturevalue("postgres_room")
        with psycopg.connect(room, autocommit=True) as connection:
            connection.execute("DROP DATABASE IF EXISTS team")
            connection.execute("CREATE DATABASE team")
        url = make_url(room).set(database="team").render_as_string(hide_password=False)
        settings["database__url"] = url
    with running_server(tmp_path_factory, **settings) as started:
        yield started


@pytest.fixture
async def http(server: Server) -> AsyncIterator[httpx2.AsyncClient]:
    limits = httpx2.Limits(max_connections=AT_ONCE, max_keepalive_connections=AT_ONCE)
    headers = {"Authorization": f"Bearer {server.admin_key}"}
    async with httpx2.AsyncClient(
        base_url=server.url, headers=headers, timeout=PATIENT, limits=limits, trust_env=False
    ) as client:
        yield client


async def call(http: httpx2.AsyncClient, tool: str, **arguments: Any) -> Any:
    return (await http.post(f"/v1/tools/{tool}", json=arguments)).json()


async def test_of_many_updates_at_once_one_a_version_wins(http: httpx2.AsyncClient) -> None:
    made = await call(http, "db.preference.create", **KEY, value="0", value_type="string")
    assert made["result"]["version"] == 1, made
    winners: Counter[int] = Counter()
    conflicts: Counter[int] = Counter()
    values: dict[int, str] = {}

    async def attempt(version: int, number: int) -> None:
        value = f"{version}.{number}"
        body = await call(
            http,
            "db.preference.update",
            **KEY,
            value=value,
            value_type="string",
            expected_version=version,
        )
        if body["status"] == "success":
            winners[version] += 1
            values[version + 1] = value
            assert body["result"]["version"] == version + 1
        else:
            assert body["error"]["type"] == "conflict", body
            assert body["error"]["details"]["current_version"] == version + 1
            conflicts[version] += 1

    for version in range(1, ROUNDS + 1):
        async with anyio.create_task_group() as group:
            for number in range(AT_ONCE):
                group.start_soon(attempt, version, number)
    assert winners == dict.fromkeys(range(1, ROUNDS + 1), 1)
    assert conflicts == dict.fromkeys(range(1, ROUNDS + 1), AT_ONCE - 1)
    stored = (await call(http, "db.preference.get", **KEY))["result"]
    assert (stored["version"], stored["value"]) == (ROUNDS + 1, values[ROUNDS + 1])
    history = (await call(http, "operator.preference.history", **KEY))["result"]["entries"]
    assert [one["new"] for one in history[1:]] == [values[one["version"]] for one in history[1:]]


@pytest.fixture
def workers(server: Server) -> Iterator[list[httpx2.Client]]:
    with each_worker(server, WORKERS) as clients:
        yield clients


def knows(tool: str, *, known: bool = True) -> Callable[[httpx2.Client], bool]:
    """Whether a worker finds a tool, or does not."""

    def asked(client: httpx2.Client) -> bool:
        answer = client.post(f"/v1/tools/{tool}", json=TASK)
        return (answer.status_code != 403) is known

    return asked


async def test_a_setting_that_one_worker_stores_steers_both(
    workers: list[httpx2.Client], http: httpx2.AsyncClient
) -> None:
    tool = "db.task.get"
    assert all(knows(tool)(worker) for worker in workers)
    value = {"key": DISABLED, "value_type": "array"}
    assert (await call(http, "db.system_setting.create", **value, value=[tool]))["result"]
    until_each(workers, knows(tool, known=False))
    assert (await call(http, "db.system_setting.update", **value, value=[]))["result"]
    until_each(workers, knows(tool))


async def test_an_access_rule_that_one_worker_stores_holds_on_both(
    server: Server, http: httpx2.AsyncClient
) -> None:
    with each_worker(server, WORKERS, "pm") as workers:
        assert all(knows("db.task.get")(worker) for worker in workers)
        rule = {"effect": "deny", "resource_pattern": "db.task.*"}
        made = (await call(http, "operator.access_rule.create", **rule))["result"]
        until_each(workers, knows("db.task.get", known=False))
        await call(http, "operator.access_rule.delete", rule_id=made["id"])
        until_each(workers, knows("db.task.get"))


async def test_where_a_setting_is_deleted_both_go_back_to_its_default(
    workers: list[httpx2.Client], http: httpx2.AsyncClient
) -> None:
    tool = "db.job.get"
    key = f"mcp.tool.{tool}.enabled"
    made = await call(http, "db.system_setting.create", key=key, value=False, value_type="boolean")
    until_each(workers, knows(tool, known=False))
    version = made["result"]["version"]
    gone = await call(http, "db.system_setting.delete", key=key, expected_version=version)
    assert gone["status"] == "success"
    until_each(workers, knows(tool))

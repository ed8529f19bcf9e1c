"""Two workers on one database: one winner a version, and settings that steer the other worker."""

import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

import anyio
import httpx2
import psycopg
import pytest
from sqlalchemy.engine import make_url
from tests.effort import effort
from tests.patience import PATIENT
from tests.servers import Server, pause, running_server

from toolgate import packs

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(600)]

ROUNDS, AT_ONCE = effort(8, 20), effort(30, 50)
KEY = {"scope_type": "user", "scope_id": "alice", "key": "custom.counter"}
TASK = {"task_id": "00000000-0000-4000-8000-0000000000b1"}
DISABLED = "mcp.tools.disabled"


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    settings: dict[str, Any] = {
        "server__workers": 2,
        "packs__enabled": packs.SHIPPED,
    }
    if request.param == "postgresql":
        room: str = request.getfixturevalue("postgres_room")
        with psycopg.connect(room, autocommit=True) as connection:
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


def is_known(server: Server, tool: str) -> set[bool]:
    """Whether a tool is there, as ten new connections find it: both workers are among them."""
    found: set[bool] = set()
    for _ in range(10):
        with server.client() as client:
            answer = client.post(f"/v1/tools/{tool}", json=TASK)
            found.add(answer.status_code != httpx2.codes.FORBIDDEN)
    return found


def wait_for(server: Server, tool: str, *, known: bool) -> None:
    deadline = time.monotonic() + PATIENT
    while is_known(server, tool) != {known}:
        assert time.monotonic() < deadline, f"a worker still finds {tool} {not known}"
        pause()


async def test_a_setting_that_one_worker_stores_steers_both(
    server: Server, http: httpx2.AsyncClient
) -> None:
    tool = "db.task.get"
    assert is_known(server, tool) == {True}
    value = {"key": DISABLED, "value_type": "array"}
    assert (await call(http, "db.system_setting.create", **value, value=[tool]))["result"]
    wait_for(server, tool, known=False)
    assert (await call(http, "db.system_setting.update", **value, value=[]))["result"]
    wait_for(server, tool, known=True)


async def test_an_access_rule_that_one_worker_stores_holds_on_both(
    server: Server, http: httpx2.AsyncClient
) -> None:
    def allowed() -> set[bool]:
        found: set[bool] = set()
        for _ in range(10):
            with server.client("pm") as client:
                found.add(client.post("/v1/tools/db.task.get", json=TASK).is_success)
        return found

    def wait(expected: bool) -> None:
        deadline = time.monotonic() + PATIENT
        while allowed() != {expected}:
            assert time.monotonic() < deadline
            pause()

    assert allowed() == {True}
    rule = {"effect": "deny", "resource_pattern": "db.task.*"}
    made = (await call(http, "operator.access_rule.create", **rule))["result"]
    wait(expected=False)
    await call(http, "operator.access_rule.delete", rule_id=made["id"])
    wait(expected=True)


async def test_where_a_setting_is_deleted_both_go_back_to_its_default(
    server: Server, http: httpx2.AsyncClient
) -> None:
    tool = "db.job.get"
    key = f"mcp.tool.{tool}.enabled"
    made = await call(http, "db.system_setting.create", key=key, value=False, value_type="boolean")
    wait_for(server, tool, known=False)
    version = made["result"]["version"]
    gone = await call(http, "db.system_setting.delete", key=key, expected_version=version)
    assert gone["status"] == "success"
    wait_for(server, tool, known=True)

"""The example worker, a process of its own, against a real server."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest
from tests.packs.orchestrator.calls import result
from tests.packs.orchestrator.node_calls import set_clock
from tests.patience import PATIENT
from tests.servers import ROOT, Server, pause, running_server

from toolgate.testing import opened_kit

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(5 * PATIENT)]

SLUG = "worker-02"
MUST_BE = "GATE_URL must begin with http:// or https:// and name a host, such as http://127.0.0.1:"
ENABLED = ["appdata", "backend", "content", "orchestrator"]


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory, packs__enabled=ENABLED) as server:
        yield server


def ask(client: httpx2.Client, tool: str, **arguments: Any) -> Any:
    answer = client.post(f"/v1/tools/{tool}", json=arguments)
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]


def node_when(client: httpx2.Client, **wanted: Any) -> Any:
    """The node, once it is so."""
    deadline = time.monotonic() + PATIENT
    while True:
        node = ask(client, "node.get", node_slug=SLUG)
        if all(node[name] == value for name, value in wanted.items()):
            return node
        assert time.monotonic() < deadline, (wanted, node)
        pause()


@contextmanager
def working(
    team: Server, key: str, *options: str
) -> Generator["subprocess.Popen[str]", None, None]:
    command = [sys.executable, str(ROOT / "examples/worker/worker.py"), *options]
    environment = {**os.environ, "GATE_URL": team.url, "NODE_KEY": key, "no_proxy": "*"}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENT)


def test_a_worker_reports_itself_and_follows_its_configuration(team: Server) -> None:
    with team.client() as admin, team.client("pm") as pm:
        key = ask(admin, "operator.node.create", node_slug=SLUG)["key"]
        assert ask(pm, "node.get", node_slug=SLUG)["status"] == "registered"
        with working(team, key, "--interval", "0.1", "--model", "llama3") as worker:
            node = node_when(pm, status="active", config_ack_status="applied")
            first = node["config_version"]
            compute = node["capabilities"]["compute"]
            assert compute["cpu_cores"] == os.cpu_count()
            assert compute["memory_mb"] > 0
            assert [one["model"] for one in node["models"]] == ["llama3"]
            versions = [
                ask(pm, "node.refresh_config", node_slug=SLUG)["node"]["config_version"]
                for _ in range(2)
            ]
            assert first < versions[0] < versions[1]
            node_when(pm, config_ack_version=versions[1], config_ack_status="applied")
            wrong = {"heartbeat_seconds": "often"}
            ask(admin, "operator.node.update", node_slug=SLUG, config=wrong)
            node = node_when(pm, config_ack_status="rolled_back")
            assert node["config_ack_error"] == "heartbeat_seconds must be a number above 0"
            ask(admin, "operator.node.update", node_slug=SLUG, config={"heartbeat_seconds": 0.2})
            node_when(pm, config_ack_status="applied")
            seen = ask(pm, "node.get", node_slug=SLUG)["last_seen_at"]
            while ask(pm, "node.get", node_slug=SLUG)["last_seen_at"] == seen:
                pause()
        assert worker.returncode == 0


async def test_a_worker_that_stopped_is_inactive_after_a_while(team: Server) -> None:
    with team.client() as admin:
        key = ask(admin, "operator.node.create", node_slug="worker-04")["key"]
        with working(team, key, "--once", "--model", "llama3") as worker:
            assert worker.wait(PATIENT) == 0
        assert ask(admin, "node.get", node_slug="worker-04")["status"] == "active"
    async with opened_kit(team.data, packs__enabled=ENABLED) as other:
        set_clock(other, time.time() + 90)
        found = await result(other, "node.get", node_slug="worker-04")
        assert found["status"] == "inactive"
        models = (await result(other, "model.list"))["entries"]
        assert [one["availability"] for one in models] == [[], [], [], []]


def test_a_worker_whose_key_has_ended_says_so(team: Server) -> None:
    with working(team, "tg_" + "0" * 16 + "_" + "0" * 64) as worker:
        out, _ = worker.communicate(timeout=PATIENT)
    assert worker.returncode == 1
    assert "worker_node.register answered 401" in out


def test_the_key_of_a_node_opens_nothing_else(team: Server) -> None:
    with team.client() as admin:
        key = ask(admin, "operator.node.create", node_slug="worker-03")["key"]
    with httpx2.Client(base_url=team.url, trust_env=False, timeout=PATIENT) as client:
        client.headers["Authorization"] = f"Bearer {key}"
        listed = {one["name"] for one in client.get("/v1/tools").json()["tools"]}
        for_everybody = {"health_check", "list_collections", "describe_collection"}
        assert listed - for_everybody == {
            "worker_node.register",
            "worker_node.heartbeat",
            "worker_node.report_capabilities",
            "worker_node.get_config",
            "worker_node.acknowledge_config",
        }
        answers = [
            client.post("/v1/tools/worker_node.heartbeat", json={"node_slug": slug})
            for slug in ("worker-01", "nobody")
        ]
        assert {one.status_code for one in answers} == {404}
        assert len({json.dumps(one.json()) for one in answers}) == 1
        beat: dict[str, Any] = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "worker_node.heartbeat",
            "params": {},
        }
        assert "worker-03" in client.post("/rpc", json=beat).text


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"NODE_KEY": ""}, "NODE_KEY is not set"),
        ({"NODE_KEY": "null"}, "NODE_KEY is not set. operator.node.create shows the key of a new"),
        ({"NODE_KEY": "secret\nkey"}, "NODE_KEY has characters that are in no key."),
        ({"NODE_KEY": "secret\n", "GATE_URL": "http://127.0.0.1:1"}, "<urlopen error"),
        ({"GATE_URL": "127.0.0.1:1"}, MUST_BE),
        ({"GATE_URL": "http://"}, MUST_BE),
        ({"GATE_URL": "http://127.0.0.1:abc"}, MUST_BE),
        ({"GATE_URL": "http://127.0.0.1:1/"}, "http://127.0.0.1:1: <urlopen error"),
    ],
    ids=[
        "no key",
        "null",
        "a line break",
        "a line break at the end",
        "no scheme",
        "no host",
        "no port",
        "no server",
    ],
)
def test_a_round_that_cannot_be_made_says_why_and_fails(
    variables: dict[str, str], told: str
) -> None:
    command = [sys.executable, str(ROOT / "examples/worker/worker.py"), "--once"]
    environment = {**os.environ, "NODE_KEY": "x", "no_proxy": "*", **variables}
    ended = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENT
    )
    assert ended.returncode == 1
    assert told in ended.stdout + ended.stderr
    assert "trying again" not in ended.stdout
    assert "Traceback" not in ended.stderr
    assert "secret" not in ended.stdout + ended.stderr


@pytest.mark.parametrize("interval", ["-1", "0", "nan", "soon"])
def test_an_interval_is_above_zero(interval: str) -> None:
    command = [sys.executable, str(ROOT / "examples/worker/worker.py"), f"--interval={interval}"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENT)
    assert ended.returncode == 2
    assert f"argument --interval: invalid seconds value: '{interval}'" in ended.stderr


def test_a_key_that_has_ended_is_told_how_to_be_replaced(team: Server) -> None:
    with working(team, "tg_ended", "--once") as worker:
        assert worker.stdout
        assert "operator.node.replace_key a new one" in worker.stdout.read()
        assert worker.wait(PATIENT) == 1


def test_an_address_may_end_with_a_slash(team: Server) -> None:
    with team.client() as admin:
        key = ask(admin, "operator.node.create", node_slug="worker-05")["key"]
    command = [sys.executable, str(ROOT / "examples/worker/worker.py"), "--once"]
    environment = {**os.environ, "GATE_URL": f"{team.url}/", "NODE_KEY": key, "no_proxy": "*"}
    ended = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENT
    )
    assert (ended.returncode, "worker-05 is registered" in ended.stdout) == (0, True)

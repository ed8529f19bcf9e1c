"""A pack of another package: installed with pip, enabled by name, served like our own."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import mcp
import pytest
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from tests.servers import ROOT, Server, running_server

EXAMPLE = ROOT / "examples/toolgate_weather"
MAX_LINES = 150
KEY = "an-admin-key-for-tests"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The interpreter of a new environment that has toolgate and the pack."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    # What toolgate needs comes from the environment the tests run in.
    (site,) = folder.glob("lib/python*/site-packages")
    ours = next(one for one in sys.path if one.endswith("site-packages"))
    (site / "ours.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
    python = folder / "bin/python"
    install = ["-m", "pip", "--python", str(python), "install", "--no-deps", "--no-build-isolation"]
    copy = folder / "toolgate_weather"
    subprocess.run(["cp", "-r", str(EXAMPLE), str(copy)], check=True)
    subprocess.run([sys.executable, *install, "-q", str(copy)], check=True)
    return str(python)


def test_the_example_is_short() -> None:
    files = [one for one in EXAMPLE.rglob("*") if one.suffix in (".py", ".toml")]
    assert sum(len(one.read_text().splitlines()) for one in files) < MAX_LINES


def toolgate(python: str, folder: Path, *arguments: str, **variables: str) -> str:
    environment = os.environ | {"TOOLGATE_DATA": str(folder), "TOOLGATE_ADMIN_KEY": KEY} | variables
    command = [python, "-m", "toolgate", *arguments]
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_its_own_tests_pass(python: str, tmp_path: Path) -> None:
    command = [python, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    tests = str(EXAMPLE / "tests")
    done = subprocess.run([*command, tests], cwd=tmp_path, capture_output=True, text=True)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_it_is_there_when_it_is_named_and_not_before(python: str, tmp_path: Path) -> None:
    listed = json.loads(toolgate(python, tmp_path, "packs", "--json"))["packs"]
    assert [one for one in listed if one["name"] == "weather"] == [
        {"name": "weather", "from": "toolgate-weather 0.1.0", "enabled": False}
        | dict.fromkeys(("tools", "tokens", "summary"))
    ]
    enabled = {"TOOLGATE_PACKS__ENABLED": "backend,weather"}
    (weather,) = (
        one
        for one in json.loads(toolgate(python, tmp_path, "packs", "--json", **enabled))["packs"]
        if one["name"] == "weather"
    )
    assert (weather["enabled"], weather["tools"]) == (True, 2)
    assert "celsius" in toolgate(python, tmp_path, "weather", "units", **enabled)


@pytest.fixture(scope="module")
def server(python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = {"packs__enabled": ["weather"], "weather__unit": "fahrenheit"}
    with running_server(tmp_path_factory, python, **settings) as started:
        yield started


OSLO = {"city": "Oslo", "temperature": 25.7, "unit": "fahrenheit"}


def test_it_is_served_over_http_and_json_rpc(server: Server) -> None:
    with server.client() as http:
        assert http.post("/v1/tools/weather.get", json={"city": "Oslo"}).json() == OSLO
        noted = http.post("/v1/tools/weather.note", json={"city": "Rome", "celsius": 20}).json()
        assert noted["temperature"] == 68.0
        asked = {"jsonrpc": "2.0", "id": 1, "method": "weather.get", "params": {"city": "Rome"}}
        assert http.post("/rpc", json=asked).json()["result"]["temperature"] == 68.0


def test_its_rule_lets_users_in(server: Server) -> None:
    with server.client("user") as http:
        assert http.post("/v1/tools/weather.get", json={"city": "Oslo"}).json() == OSLO
    with server.client("worker") as http:
        assert http.post("/v1/tools/weather.get", json={"city": "Oslo"}).status_code == 404


def test_its_rule_lets_only_admins_note(server: Server) -> None:
    noted = {"city": "Bergen", "celsius": 9}
    with server.client("user") as http:
        assert http.post("/v1/tools/weather.note", json=noted).status_code == 404
    with server.client() as http:
        assert http.post("/v1/tools/weather.get", json={"city": "Bergen"}).status_code == 404


LOAD_DEMO_TWICE = """
import anyio, json, sys
from pathlib import Path
from toolgate.demo import load_demo
from toolgate.testing import opened_kit

async def main():
    async with opened_kit(Path(sys.argv[1]), packs__enabled=["weather"]) as kit:
        first = await load_demo(kit.app)
        await kit.call("weather.note", city="Oslo", celsius=12)
        second = await load_demo(kit.app)
        oslo = await kit.call("weather.get", city="Oslo")
        print(json.dumps([first, second, oslo.body["temperature"]]))

anyio.run(main)
"""


def test_its_demo_data_is_loaded_once_and_over_nothing(python: str, tmp_path: Path) -> None:
    command = [python, "-c", LOAD_DEMO_TWICE, str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [{"weather": 1}, {"weather": 0}, 12]


@pytest.mark.anyio
async def test_it_is_served_over_mcp(server: Server) -> None:
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {server.admin_key}"}) as http:
        transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
        async with mcp.Client(transport) as client:
            listed = await client.list_tools()
            answer = await client.call_tool("weather.get", {"city": "Oslo"})
    assert [tool.name for tool in listed.tools] == ["weather.get", "weather.note"]
    assert answer.structured_content == OSLO


@pytest.mark.anyio
async def test_it_is_served_over_stdio(python: str, server: Server) -> None:
    environment = {
        "TOOLGATE_ADMIN_KEY": server.admin_key,
        "TOOLGATE_PACKS__ENABLED": "weather",
        "TOOLGATE_WEATHER__UNIT": "fahrenheit",
    }
    command = ["-m", "toolgate", "mcp", "--data", str(server.data)]
    parameters = StdioServerParameters(command=python, args=command, env=environment)
    async with mcp.Client(stdio_client(parameters)) as client:
        answer = await client.call_tool("weather.get", {"city": "Oslo"})
    assert answer.structured_content == OSLO


def test_it_is_served_on_the_command_line(python: str, server: Server) -> None:
    variables = {"TOOLGATE_PACKS__ENABLED": "weather", "TOOLGATE_WEATHER__UNIT": "fahrenheit"}
    told = toolgate(python, server.data, "call", "weather.get", "city=Oslo", **variables)
    assert json.loads(told) == OSLO

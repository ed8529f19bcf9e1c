"""The same file of tools on every transport of a running server, and on stdio."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import mcp
import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from tests import preloaded
from tests.cli.conftest import *  # noqa: F403 (its fixtures)
from tests.extend.upstream import Upstream
from tests.patience import PATIENT
from tests.servers import Server, running_server

pytestmark = pytest.mark.anyio

YAML = """
- name: own.echo
  title: Echo
  description: Say what was asked
  role: user
  path: echo/{id}
  annotations: {readOnlyHint: true, idempotentHint: true, vendor: 1}
  input_schema: {type: object, properties: {id: {type: string}, q: {type: integer}}, required: [id]}
  output_schema: {type: object, properties: {path: {type: string}}, required: [path]}
- {name: boss_list, description: A list, path: list}
- {name: broken, description: Fails, role: user, method: POST, path: status/418}
"""

PYTHON = '''
from toolgate.extend import RouteTool, tool

tools = [
    RouteTool(
        name="own.echo",
        title="Echo",
        description="Say what was asked",
        role="user",
        path="echo/{id}",
        annotations={"readOnlyHint": True, "idempotentHint": True, "vendor": 1},
        input_schema={
            "type": "object",
            "properties": {"id": {"type": "string"}, "q": {"type": "integer"}},
            "required": ["id"],
        },
        output_schema={
            "type": "object",
            "properties": {"path": {"type": "string"}},
            "required": ["path"],
        },
    ),
    RouteTool(name="boss_list", description="A list", path="list"),
    RouteTool(name="broken", description="Fails", role="user", method="POST", path="status/418"),
]


@tool(role="user")
async def greet(ctx, args) -> dict:
    """Greet."""
    return {"hello": ctx.principal.user_id}


tools.append(greet)
'''
ECHO = {"method": "GET", "path": "/api/echo/7", "query": {"q": "1"}, "body": None}


@pytest.fixture(scope="module", params=["tools.yaml", "tools.py"])
def served(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    backend: Upstream,
) -> Iterator[Server]:
    file = tmp_path_factory.mktemp("own") / request.param
    file.write_text(YAML if file.suffix == ".yaml" else PYTHON)
    settings = {"extend__tools": str(file), "extend__base_url": backend.url}
    with running_server(tmp_path_factory, **settings) as server:
        yield server


def test_over_http(served: Server) -> None:
    with served.client("user") as client:
        answer = client.post("/v1/tools/own.echo", json={"id": "7", "q": 1})
        failed = client.post("/v1/tools/broken", json={})
        hidden = client.post("/v1/tools/boss_list", json={})
        listed = {one["name"]: one for one in client.get("/v1/tools").json()["tools"]}
        document = client.get("/openapi.json").json()
    assert (answer.status_code, answer.json()) == (200, ECHO)
    assert (failed.status_code, failed.json()) == (418, {"error": "the backend says 418"})
    assert (hidden.status_code, hidden.json()) == (404, {"error": "Unknown tool: boss_list"})
    assert listed["own.echo"]["pack"] == "own"
    assert "/v1/tools/own.echo" in document["paths"]
    assert "/v1/tools/boss_list" not in document["paths"]


def test_over_json_rpc(served: Server) -> None:
    with served.client() as client:
        body = {"jsonrpc": "2.0", "id": 1, "method": "own_echo", "params": {"id": "7", "q": 1}}
        assert client.post("/rpc", json=body).json()["result"] == ECHO
        body |= {"method": "boss_list", "params": {}}
        assert client.post("/rpc", json=body).json()["result"] == [1, 2]
        body |= {"method": "broken"}
        assert client.post("/rpc", json=body).json()["error"]["message"] == "the backend says 418"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_over_mcp(served: Server, mode: Any, upstream: Upstream) -> None:
    headers = {"Authorization": f"Bearer {served.key_of('user')}"}
    async with httpx2.AsyncClient(headers=headers, trust_env=False, timeout=PATIENT) as http:
        transport = streamable_http_client(f"{served.url}/mcp", http_client=http)
        async with mcp.Client(transport, mode=mode) as client:
            tools = {one.name: one for one in (await client.list_tools()).tools}
            shown = tools["own.echo"]
            answer = await client.call_tool("own.echo", {"id": "7", "q": 1})
            failed = await client.call_tool("broken", {})
            wrong = await client.call_tool("own.echo", {"q": "x"})
            with pytest.raises(MCPError, match="Unknown tool: boss_list"):
                await client.call_tool("boss_list", {})
    assert shown.title == "Echo"
    assert shown.output_schema == {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
    }
    assert shown.annotations is not None
    assert shown.annotations.read_only_hint is True
    assert shown.annotations.destructive_hint is None
    assert tools["broken"].output_schema is None
    assert answer.structured_content == ECHO
    assert failed.is_error
    assert failed.content[0].text == "the backend says 418"
    assert wrong.content[0].text == "q must be an integer; id is required"
    asked = upstream.requests[0]["headers"]
    assert asked["x-toolgate-user"] == "abc123"
    assert asked["x-toolgate-roles"] == "user"
    assert served.key_of("user") not in json.dumps(upstream.requests)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_answer_that_is_no_object_is_text(served: Server, mode: Any) -> None:
    headers = {"Authorization": f"Bearer {served.admin_key}"}
    async with httpx2.AsyncClient(headers=headers, trust_env=False, timeout=PATIENT) as http:
        transport = streamable_http_client(f"{served.url}/mcp", http_client=http)
        async with mcp.Client(transport, mode=mode) as client:
            answer = await client.call_tool("boss_list", {})
    assert not answer.is_error
    assert answer.content[0].text == "[1,2]"
    assert answer.structured_content is None


@pytest.mark.parametrize("name", ["tools.yaml", "tools.py"])
async def test_on_stdio(
    tmp_path: Path, environment: dict[str, str], upstream: Upstream, name: str
) -> None:
    text = YAML if name == "tools.yaml" else PYTHON
    (tmp_path / name).write_text(text.replace("boss_list", "get_document"))
    command, *arguments = preloaded.command("-m", "toolgate", "mcp")
    server = StdioServerParameters(
        command=command,
        args=arguments,
        env=environment
        | {
            "TOOLGATE_ADMIN_KEY": "0123456789abcdef",
            "TOOLGATE_EXTEND__TOOLS": name,
            "TOOLGATE_EXTEND__BASE_URL": upstream.url,
        },
        cwd=tmp_path,
    )
    with (tmp_path / "stderr").open("w+") as said:
        async with (
            stdio_client(server, errlog=said) as (read, write),
            ClientSession(read, write) as session,
        ):
            await session.initialize()
            answer = await session.call_tool("own.echo", {"id": "7", "q": 1})
            replaced = await session.call_tool("get_document", {})
            if name == "tools.py":
                greeted = await session.call_tool("greet", {})
                assert greeted.structured_content == {"hello": None}
        said.seek(0)
        assert "Your tool get_document replaces the built-in tool of its name." in said.read()
    assert answer.structured_content == ECHO
    assert replaced.content[0].text == "[1,2]"

"""The official Python client, in both protocol eras, against a running server."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any, Literal

import httpx2
import mcp
import mcp_types as types
import pytest
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from tests.clients.conftest import CALLED_FOR_REAL
from tests.needed_packs import needs_pack
from tests.patience import PATIENT
from tests.servers import Server

from toolgate import packs
from toolgate.gate.catalogue import AnyTool, Catalogue

pytestmark = [pytest.mark.anyio, needs_pack("appdata")]

CATALOGUE = Catalogue(packs.offers())
Mode = Literal["auto", "legacy"]
MODES: list[Mode] = ["auto", "legacy"]
VERSIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}
SCHEMA = "cybereco://schema/"
COLLECTIONS = [
    one.uri.removeprefix(SCHEMA) for one in CATALOGUE.resources if one.uri.startswith(SCHEMA)
]
PROMPTS = {
    "integrate_new_app": {"app_name": "My App"},
    "explore_data_model": {},
    "debug_permissions": {"user_id": "abc123", "app_id": "justsplit"},
    "design_query": {"collection": "users", "goal": "admins"},
}


@asynccontextmanager
async def connected(
    server: Server,
    mode: Mode,
    holder: str = "admin",
    path: str = "/mcp",
    further: Mapping[str, str] = MappingProxyType({}),
) -> AsyncGenerator[mcp.Client, None]:
    """A client with a holder's key, and further headers."""
    headers = {"Authorization": f"Bearer {server.key_of(holder)}", **further}
    async with httpx2.AsyncClient(headers=headers, trust_env=False, timeout=PATIENT) as http:
        transport = streamable_http_client(f"{server.url}{path}", http_client=http)
        async with mcp.Client(transport, mode=mode) as client:
            yield client


@pytest.fixture(scope="module", params=MODES)
async def client(request: pytest.FixtureRequest, server: Server) -> AsyncIterator[mcp.Client]:
    async with connected(server, request.param) as opened:
        yield opened


def over_http(server: Server, tool: str, arguments: dict[str, Any]) -> Any:
    with server.client() as plain:
        return plain.post(f"/v1/tools/{tool}", json=arguments).json()


# Tools


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("path", ["/mcp", "/backend-manager/mcp"])
async def test_the_client_connects(server: Server, mode: Mode, path: str) -> None:
    async with connected(server, mode, path=path) as client:
        assert client.protocol_version == VERSIONS[mode]
        assert client.server_info is not None
        assert client.server_info.name == "toolgate"
        assert client.instructions is not None
        assert client.instructions.startswith("Tools of an application's backend.")


async def test_every_tool_is_listed_in_order(client: mcp.Client) -> None:
    listed = (await client.list_tools()).tools
    assert [tool.name for tool in listed] == [tool.name for tool in CATALOGUE]
    for shown, tool in zip(listed, CATALOGUE, strict=True):
        assert shown.title == tool.title
        assert shown.description == tool.description
        assert shown.input_schema == tool.input_schema
        assert shown.output_schema == tool.output_schema
        assert shown.annotations is not None
        assert shown.annotations.read_only_hint is tool.annotations["readOnlyHint"]


@pytest.mark.parametrize(
    "tool",
    [one for one in CATALOGUE if one.pack.name in CALLED_FOR_REAL],
    ids=lambda tool: tool.name,
)
async def test_every_tool_is_called_with_its_example(
    client: mcp.Client, server: Server, tool: AnyTool
) -> None:
    arguments = dict(tool.example)
    if tool.name == "create_document":
        arguments["document_id"] = f"python-{client.protocol_version}"
    # The client itself checks the answer against the output schema.
    called = await client.call_tool(tool.name, arguments)
    assert called.is_error is False
    assert isinstance(called.content[0], types.TextContent)
    assert json.loads(called.content[0].text) == called.structured_content
    if tool.name == "create_document":
        assert called.structured_content == {"id": arguments["document_id"], "success": True}
    else:
        assert called.structured_content == over_http(server, tool.name, arguments)


async def test_health_is_told(client: mcp.Client) -> None:
    called = await client.call_tool("health_check", {})
    assert called.structured_content is not None
    assert called.structured_content["status"] == "healthy"


async def test_a_tools_error_is_a_result(client: mcp.Client) -> None:
    called = await client.call_tool(
        "get_document", {"collection": "users", "document_id": "nobody"}
    )
    assert called.is_error is True
    assert called.structured_content is None
    assert isinstance(called.content[0], types.TextContent)
    told = json.loads(called.content[0].text)
    assert told == {"error": "Document nobody not found in users"}


async def test_an_unknown_tool_is_a_fault(client: mcp.Client) -> None:
    with pytest.raises(MCPError, match="Unknown tool: no_such_tool") as fault:
        await client.call_tool("no_such_tool", {})
    assert fault.value.error.code == types.INVALID_PARAMS


@pytest.mark.parametrize("mode", MODES)
async def test_a_user_sees_and_calls_only_the_tools_of_users(server: Server, mode: Mode) -> None:
    async with connected(server, mode, "user") as client:
        listed = (await client.list_tools()).tools
        assert [tool.name for tool in listed] == [
            "list_collections",
            "describe_collection",
            "get_user",
            "get_subscription",
            "health_check",
        ]
        with pytest.raises(MCPError, match="Unknown tool: get_document"):
            await client.call_tool("get_document", {"collection": "users", "document_id": "a"})
        assert (await client.call_tool("list_collections", {})).is_error is False


@pytest.mark.parametrize("mode", MODES)
async def test_without_a_key_no_client_connects(server: Server, mode: Mode) -> None:
    statuses: list[int] = []

    async def note(answer: httpx2.Response) -> None:
        statuses.append(answer.status_code)

    hooks = {"response": [note]}
    async with httpx2.AsyncClient(trust_env=False, timeout=PATIENT, event_hooks=hooks) as http:
        transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
        with pytest.raises(ExceptionGroup):
            async with mcp.Client(transport, mode=mode):
                pytest.fail("nobody may connect without a key")
    assert set(statuses) == {401}


# Resources


async def test_every_resource_is_listed(client: mcp.Client) -> None:
    listed = (await client.list_resources()).resources
    assert [str(one.uri) for one in listed] == [one.uri for one in CATALOGUE.resources]
    assert len(listed) == 13
    assert all(one.mime_type == "application/json" for one in listed)
    assert (await client.list_resource_templates()).resource_templates == []


async def test_the_resource_of_all_collections_is_their_list(
    client: mcp.Client, server: Server
) -> None:
    assert await read(client, "cybereco://collections") == over_http(server, "list_collections", {})


@pytest.mark.parametrize("collection", COLLECTIONS)
async def test_the_resource_of_a_collection_is_its_description(
    client: mcp.Client, server: Server, collection: str
) -> None:
    described = over_http(server, "describe_collection", {"collection_name": collection})
    assert await read(client, f"cybereco://schema/{collection}") == described


async def read(client: mcp.Client, uri: str) -> Any:
    [content] = (await client.read_resource(uri)).contents
    assert isinstance(content, types.TextResourceContents)
    assert (str(content.uri), content.mime_type) == (uri, "application/json")
    return json.loads(content.text)


@pytest.mark.parametrize(
    "uri",
    ["cybereco://schema/nonexistent", "cybereco://collections/", "cybereco://schema/users/x",
     "file:///etc/passwd", "CYBERECO://collections"],
)  # fmt: skip
async def test_another_address_is_not_found(client: mcp.Client, uri: str) -> None:
    with pytest.raises(MCPError, match="Resource not found") as fault:
        await client.read_resource(uri)
    assert fault.value.error.code == types.INVALID_PARAMS
    assert fault.value.error.data == {"uri": uri}


@pytest.mark.parametrize("mode", MODES)
async def test_a_read_is_audited_as_a_call_of_its_tool(server: Server, mode: Mode) -> None:
    headers = {
        "Authorization": f"Bearer {server.key_of('worker')}",
        "X-Request-Id": f"resource-{mode}",
    }
    async with httpx2.AsyncClient(headers=headers, trust_env=False, timeout=PATIENT) as http:
        transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
        async with mcp.Client(transport, mode=mode) as client:
            await client.read_resource("cybereco://schema/users")
    [row] = server.audit_rows(f"resource-{mode}")
    assert (row["tool_name"], row["agent_type"]) == ("describe_collection", "worker")
    assert (row["transport"], row["status"]) == ("mcp", "success")


# Prompts


async def test_every_prompt_is_listed(client: mcp.Client) -> None:
    listed = (await client.list_prompts()).prompts
    assert [one.name for one in listed] == list(PROMPTS)
    for shown in listed:
        declared = CATALOGUE.prompts[shown.name]
        assert (shown.title, shown.description) == (declared.title, declared.description)
        assert [(arg.name, arg.required) for arg in shown.arguments or ()] == [
            (arg.name, arg.required) for arg in declared.arguments
        ]


@pytest.mark.parametrize("name", PROMPTS)
async def test_a_prompt_is_rendered(client: mcp.Client, name: str) -> None:
    given = await client.get_prompt(name, PROMPTS[name])
    [message] = given.messages
    assert message.role == "user"
    assert isinstance(message.content, types.TextContent)
    assert message.content.text == CATALOGUE.prompts[name].render(PROMPTS[name])


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("integrate_new_app", {}, "app_name is required"),
        ("integrate_new_app", {"app_name": ""}, "app_name is required"),
        ("debug_permissions", {"user_id": "abc123"}, "app_id is required"),
        ("debug_permissions", {}, "user_id, app_id"),
        ("no_such_prompt", {}, "Unknown prompt: no_such_prompt"),
    ],
)
async def test_a_prompt_without_what_it_needs_is_a_clear_error(
    client: mcp.Client, name: str, given: dict[str, str], told: str
) -> None:
    with pytest.raises(MCPError, match=told) as fault:
        await client.get_prompt(name, given)
    assert fault.value.error.code == types.INVALID_PARAMS


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("holder", ["user", "worker"])
async def test_a_prompt_is_hidden_from_who_may_not_use_its_tools(
    server: Server, mode: Mode, holder: str
) -> None:
    async with connected(server, mode, holder) as client:
        shown = {one.name for one in (await client.list_prompts()).prompts}
        public = {"list_collections", "describe_collection", "health_check"}
        assert shown == {
            name for name, one in CATALOGUE.prompts.items() if public.issuperset(one.tools)
        }
        for name in PROMPTS.keys() - shown:
            with pytest.raises(MCPError, match=f"Unknown prompt: {name}"):
                await client.get_prompt(name, PROMPTS[name])


# Completion


@pytest.mark.parametrize(
    ("prompt", "argument", "typed", "expected"),
    [
        ("design_query", "collection", "user", ["users", "userPreferences"]),
        ("design_query", "collection", "PERM", ["permissions", "permissionLogs"]),
        ("design_query", "collection", "zzz", []),
        ("design_query", "goal", "a", []),
        ("design_query", "no_such_argument", "a", []),
        ("no_such_prompt", "collection", "a", []),
    ],
)
async def test_an_argument_is_completed(
    client: mcp.Client, prompt: str, argument: str, typed: str, expected: list[str]
) -> None:
    reference = types.PromptReference(name=prompt)
    completed = await client.complete(reference, {"name": argument, "value": typed})
    assert completed.completion.values == expected
    assert completed.completion.total == len(expected)


async def test_an_empty_argument_is_completed_with_every_collection(client: mcp.Client) -> None:
    reference = types.PromptReference(name="explore_data_model")
    completed = await client.complete(reference, {"name": "collection", "value": ""})
    assert len(completed.completion.values) == 12


@pytest.mark.parametrize("mode", MODES)
async def test_a_hidden_prompt_is_not_completed(server: Server, mode: Mode) -> None:
    async with connected(server, mode, "user") as client:
        shown = {one.name for one in (await client.list_prompts()).prompts}
        assert "design_query" not in shown
        reference = types.PromptReference(name="design_query")
        completed = await client.complete(reference, {"name": "collection", "value": "user"})
    assert completed.completion.values == []

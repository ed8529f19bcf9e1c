"""The official Python client through `toolgate mcp --url`, against a real server."""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import anyio
import mcp
import mcp_types as types
import pytest
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ToolsListChanged
from tests.patience import PATIENT
from tests.transports.bridges import MODES, Backend, Mode, backend, bridged

pytestmark = pytest.mark.anyio
VERSIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}
JANE = {"collection": "users", "document_id": "abc123"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    with backend(tmp_path_factory.mktemp("bridged")) as started:
        yield started


@pytest.fixture(scope="module", params=MODES)
async def client(request: pytest.FixtureRequest, server: Backend) -> AsyncIterator[mcp.Client]:
    async with bridged(server.url, server.key, request.param) as opened:
        yield opened


async def asked(context: Any, params: Any) -> types.ElicitResult:
    """A client with this is given a session by servers of the older protocol."""
    return types.ElicitResult(
        action="accept", content={"username": "jane", "email": "j@x.y", "name": "jane"}
    )


async def test_the_era_is_the_clients(client: mcp.Client, request: pytest.FixtureRequest) -> None:
    assert client.protocol_version == VERSIONS[request.node.callspec.params["client"]]
    assert client.server_info is not None
    assert client.server_info.name == "toolgate"


async def test_tools_are_listed_and_called(client: mcp.Client) -> None:
    assert {"get_document", "hold"} < {one.name for one in (await client.list_tools()).tools}
    called = await client.call_tool("get_document", JANE)
    assert called.structured_content is not None
    assert called.structured_content["displayName"] == "Jane Doe"


async def test_resources_and_prompts_pass(client: mcp.Client) -> None:
    assert len((await client.list_resources()).resources) > 13
    [content] = (await client.read_resource("cybereco://schema/users")).contents
    assert isinstance(content, types.TextResourceContents)
    assert '"users"' in content.text
    assert "design_query" in {one.name for one in (await client.list_prompts()).prompts}
    given = await client.get_prompt("design_query", {"collection": "users", "goal": "ümläut ☃"})
    assert isinstance(given.messages[0].content, types.TextContent)
    assert "ümläut ☃" in given.messages[0].content.text


async def test_a_fault_keeps_its_code(client: mcp.Client) -> None:
    with pytest.raises(MCPError, match="Unknown tool: no_such_töol") as fault:
        await client.call_tool("no_such_töol", {})
    assert fault.value.error.code == types.INVALID_PARAMS


async def test_progress_arrives_while_the_call_runs(client: mcp.Client) -> None:
    seen: list[float] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        seen.append(done)

    called = await client.call_tool("test_tool_with_progress", {}, progress_callback=progress)
    assert called.is_error is False
    assert seen == [0, 50, 100]


async def test_an_argument_is_repeated_in_a_header_where_the_tool_wants_it(
    client: mcp.Client,
) -> None:
    called = await client.call_tool("test_x_mcp_header", {"region": "Zürich"})
    assert isinstance(called.content[0], types.TextContent)
    assert called.content[0].text == "region=Zürich"


async def test_many_calls_run_at_once(client: mcp.Client, server: Backend) -> None:
    results: dict[int, Any] = {}
    before = server.noted("started")

    async def look(number: int) -> None:
        found = await client.call_tool("get_document", {**JANE, "document_id": f"no-{number}"})
        results[number] = json.loads(found.content[0].text)  # type: ignore[union-attr]

    async with anyio.create_task_group() as held:
        for _ in range(8):
            held.start_soon(client.call_tool, "hold", {})
        await server.until("started", before + 8)
        async with anyio.create_task_group() as tasks:
            for number in range(50):
                tasks.start_soon(look, number)
        held.cancel_scope.cancel()
    assert results == {
        number: {"error": f"Document no-{number} not found in users"} for number in range(50)
    }


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("options", [{}, {"elicitation_callback": asked}], ids=["plain", "session"])
async def test_a_cancelled_call_ends_on_the_server(
    server: Backend, mode: Mode, options: dict[str, Any]
) -> None:
    async with bridged(server.url, server.key, mode, **options) as client:
        started, ended = server.noted("started"), server.noted("ended")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "hold", {})
            await server.until("started", started + 1)
            tasks.cancel_scope.cancel()
        await server.until("ended", ended + 1)
        assert (await client.call_tool("get_document", JANE)).is_error is False


@pytest.mark.parametrize("mode", MODES)
async def test_the_server_can_ask_the_client(server: Backend, mode: Mode) -> None:
    tool = "test_elicitation" if mode == "legacy" else "test_input_required_result_elicitation"
    async with bridged(server.url, server.key, mode, elicitation_callback=asked) as client:
        called = await client.call_tool(tool, {"message": "Who?"})
        assert called.is_error is False
        assert isinstance(called.content[0], types.TextContent)
        assert "jane" in called.content[0].text


async def test_a_subscription_hears_of_changes(server: Backend) -> None:
    async with bridged(server.url, server.key, "auto") as client:
        with anyio.fail_after(PATIENT):
            async with client.listen(tools_list_changed=True) as subscription:
                assert subscription.honored.tools_list_changed is True
                await client.call_tool("announce", {})
                assert await anext(subscription) == ToolsListChanged()
        assert (await client.call_tool("get_document", JANE)).is_error is False


async def test_a_session_hears_of_changes(server: Backend) -> None:
    heard = anyio.Event()

    async def handler(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            heard.set()

    options = {"elicitation_callback": asked, "message_handler": handler}
    async with bridged(server.url, server.key, "legacy", **options) as client:
        with anyio.fail_after(PATIENT):
            while not heard.is_set():  # the stream for it opens beside the first requests
                await client.call_tool("announce", {})
                await anyio.sleep(0.05)


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    with backend(tmp_path_factory.mktemp("mortal")) as started:
        yield started


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("options", [{}, {"elicitation_callback": asked}], ids=["plain", "session"])
async def test_a_server_that_was_killed_and_started_again_is_used_again(
    mortal: Backend, mode: Mode, options: dict[str, Any]
) -> None:
    before = mortal.noted("started")
    async with bridged(mortal.url, mortal.key, mode, **options) as client:
        faults: list[str] = []

        async def hold() -> None:
            with pytest.raises(MCPError) as fault:
                await client.call_tool("hold", {})
            faults.append(str(fault.value))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(hold)
            await mortal.until("started", before + 1)
            await anyio.to_thread.run_sync(mortal.kill)
        assert len(faults) == 1
        assert "may have been carried out" in faults[0]
        assert "not repeated" in faults[0]
        # Asked while nobody is there, answered once somebody is.
        found: list[types.CallToolResult] = []

        async def look() -> None:
            found.append(await client.call_tool("get_document", JANE))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(look)
            await anyio.to_thread.run_sync(mortal.start)
        assert found[0].is_error is False
        assert mortal.noted("started") == before + 1
        assert "get_document" in {one.name for one in (await client.list_tools()).tools}


async def test_after_a_restart_the_server_can_still_ask_and_announce(mortal: Backend) -> None:
    heard = anyio.Event()

    async def handler(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            heard.set()

    options = {"elicitation_callback": asked, "message_handler": handler}
    async with bridged(mortal.url, mortal.key, "legacy", **options) as client:
        await client.call_tool("get_document", JANE)
        await anyio.to_thread.run_sync(mortal.kill)
        await anyio.to_thread.run_sync(mortal.start)
        called = await client.call_tool("test_elicitation", {"message": "Who?"})
        assert called.is_error is False
        with anyio.fail_after(PATIENT):
            while not heard.is_set():
                await client.call_tool("announce", {})
                await anyio.sleep(0.05)


async def test_a_subscription_that_broke_is_told_so_and_can_be_made_again(mortal: Backend) -> None:
    async with bridged(mortal.url, mortal.key, "auto") as client:
        async with client.listen(tools_list_changed=True) as subscription:
            await anyio.to_thread.run_sync(mortal.kill)
            with pytest.raises(SubscriptionLost):
                await anext(subscription)
        await anyio.to_thread.run_sync(mortal.start)
        async with client.listen(tools_list_changed=True) as subscription:
            await client.call_tool("announce", {})
            assert await anext(subscription) == ToolsListChanged()

"""The official clients list and call the tools of every pack that ships."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import mcp
import mcp_types as types
import pytest
from tests.clients.conftest import DRY_RUN, EVERY_TOOL, FURTHER, check_told
from tests.clients.test_python_client import MODES, connected
from tests.clients.test_ts_client import MODES as TS_MODES
from tests.clients.test_ts_client import looked
from tests.servers import Server

from toolgate.gate.catalogue import AnyTool

every_further = pytest.mark.parametrize("tool", FURTHER, ids=lambda tool: tool.name)


@pytest.fixture(scope="module", params=MODES)
async def client(request: pytest.FixtureRequest, full_server: Server) -> AsyncIterator[mcp.Client]:
    async with connected(full_server, request.param, further=DRY_RUN) as opened:
        yield opened


@pytest.mark.anyio
async def test_every_tool_is_listed_in_order(client: mcp.Client) -> None:
    listed = (await client.list_tools()).tools
    assert [tool.name for tool in listed] == [tool.name for tool in EVERY_TOOL]


@pytest.mark.anyio
@every_further
async def test_every_tool_is_called_with_its_example(
    client: mcp.Client, full_server: Server, tool: AnyTool
) -> None:
    # The client itself checks the answer against the output schema.
    called = await client.call_tool(tool.name, dict(tool.example))
    assert isinstance(called.content[0], types.TextContent)
    check_told(tool, called.content[0].text, full_server)


@pytest.fixture(scope="module")
def seen(full_server: Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    calls = {tool.name: dict(tool.example) for tool in FURTHER}
    folder: Path = tmp_path_factory.mktemp("calls")
    return looked(full_server, "admin", folder, calls, DRY_RUN)


@pytest.mark.parametrize("mode", TS_MODES)
def test_every_tool_is_listed_in_order_in_typescript(seen: dict[str, Any], mode: str) -> None:
    assert seen[mode]["tools"] == [tool.name for tool in EVERY_TOOL]


@pytest.mark.parametrize("mode", TS_MODES)
@every_further
def test_every_tool_is_called_with_its_example_in_typescript(
    seen: dict[str, Any], full_server: Server, mode: str, tool: AnyTool
) -> None:
    result = seen[mode]["results"][tool.name]
    check_told(tool, result["content"][0]["text"], full_server)

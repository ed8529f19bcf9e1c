"""The official Python client follows the link of an attachment, in both protocol eras."""

import base64
from collections.abc import Iterator
from typing import Literal

import httpx2
import mcp
import mcp_types as types
import pytest
from mcp.client.streamable_http import streamable_http_client
from tests.patience import PATIENT
from tests.servers import Server, running_server

pytestmark = pytest.mark.anyio

TOOLS = '''
from toolgate.extend import Attachment, HandlerContext, Input, Output, tool

DATA = bytes(range(256)) * 40960


class Report(Output):
    pages: int
    content: Attachment


@tool(annotations={"readOnlyHint": True})
async def get_report(ctx: HandlerContext, args: Input) -> Report:
    """Get the report."""
    attachment = Attachment.of(DATA, media_type="application/pdf", name="a/report.pdf")
    return Report(pages=3, content=attachment)


tools = [get_report]
'''
DATA = bytes(range(256)) * 40960
Mode = Literal["auto", "legacy"]
MODES: list[Mode] = ["auto", "legacy"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    path = tmp_path_factory.mktemp("tools") / "tools.py"
    path.write_text(TOOLS)
    with running_server(tmp_path_factory, extend__tools=str(path)) as started:
        yield started


@pytest.mark.parametrize("mode", MODES)
async def test_ten_mebibytes_come_through_a_link(server: Server, mode: Mode) -> None:
    headers = {"Authorization": f"Bearer {server.admin_key}"}
    async with httpx2.AsyncClient(headers=headers, trust_env=False, timeout=PATIENT) as http:
        transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
        async with mcp.Client(transport, mode=mode) as client:
            await client.list_tools()  # the client checks results against the schemas
            called = await client.call_tool("get_report", {})
            _, link = called.content
            assert isinstance(link, types.ResourceLink)
            read = await client.read_resource(link.uri)
    assert called.structured_content == {"pages": 3}
    assert (link.name, link.mime_type, link.size) == ("report.pdf", "application/pdf", len(DATA))
    (content,) = read.contents
    assert isinstance(content, types.BlobResourceContents)
    assert base64.b64decode(content.blob) == DATA
    assert content.mime_type == "application/pdf"


@pytest.mark.parametrize("accept", ["application/pdf", "application/json"])
def test_ten_mebibytes_come_over_plain_http(server: Server, accept: str) -> None:
    with server.client(Accept=accept) as client:
        answer = client.post("/v1/tools/get_report", json={})
    assert answer.headers["content-type"] == accept
    if accept == "application/json":
        assert base64.b64decode(answer.json()["content"]) == DATA
    else:
        assert answer.content == DATA

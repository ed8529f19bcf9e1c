"""What the audit calls a tool, a prompt or a resource that there is not: nothing that leaks."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.gate.files import Folder
from tests.gate.tools import USER, offer
from tests.transports.conftest import Web, opened_web
from tests.transports.mcp_requests import ERAS, LEGACY, request
from tests.transports.peers import message, piped

from toolgate.gate.attachments import URI, uri_of
from toolgate.gate.audited_names import NOT_A_NAME

pytestmark = pytest.mark.anyio

SECRET = "LEAK-sk_live_1"
LINKED = uri_of("file.get", {"path": SECRET})
ENCODED = LINKED.rpartition("/")[2]
URIS = {
    "a query": (f"{URI}file.get?task_id=1&path={SECRET}", URI),
    "a query with a path": (f"{URI}file.get?path=a/{SECRET}", URI),
    "a fragment": (f"{URI}file.get#{SECRET}", URI),
    "an escaped slash": (f"{URI}file.get%2F{ENCODED}", URI),
    "a backslash": (f"{URI}file.get\\{ENCODED}", URI),
    "a backslash and good arguments": (f"{URI}file.get\\{SECRET}/{ENCODED}", NOT_A_NAME),
    "arguments alone": (f"{URI}{ENCODED}", URI),
    "two slashes": (f"{URI}/{ENCODED}", NOT_A_NAME),
    "one slash": (f"toolgate:/attachments/file.get/{ENCODED}", URI),
    "no slash": (f"toolgate:attachments/file.get/{ENCODED}", URI),
    "a space before it": (f" {LINKED}", URI),
    "a port": (f"toolgate://attachments:80/file.get/{ENCODED}", URI),
    "a user": (f"toolgate://x@attachments/file.get/{ENCODED}", URI),
    "another host": (f"TOOLGATE://other/{ENCODED}", URI),
    "a name too long": (f"{URI}{'x' * 129}/{ENCODED}!", URI),
    "no URI": (f"file.get/{ENCODED}", NOT_A_NAME),
    "a scheme before it": (f"x:{LINKED}", NOT_A_NAME),
    "another scheme with a query": (f"no://thing?token={SECRET}", NOT_A_NAME),
    "another scheme with a user": (f"no://x:{SECRET}@thing", NOT_A_NAME),
    "another scheme": ("no://thing", "no://thing"),
    "capitals": (LINKED.replace("toolgate", "TOOLGATE"), "file.get"),
    "bad arguments": (f"{LINKED}!", "file.get"),
}
NAMES = {
    "a slash": f"file.get/{ENCODED}",
    "a query": f"file.get?path={SECRET}",
    "a backslash": f"file.get\\{ENCODED}",
    "a URI": LINKED,
    "a path": f"/tmp/{SECRET}",
    "a space": f"file.get {SECRET}",
    "another alphabet": f"ſ{SECRET}",
    "a line after it": f"{SECRET}\n",
    "too long": SECRET * 10,
}


@pytest.fixture(scope="module")
async def web(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    settings = {"limits__refusals_per_minute": 10_000}
    folder = tmp_path_factory.mktemp("names")
    async with opened_web(folder, offer(Folder().tool()), **settings) as opened:
        yield opened


async def names_after(web: Web, how: str, method: str, **params: Any) -> list[str]:
    """What the audit calls what was asked for, over HTTP or in an era on stdio."""
    before = len(await web.kit.audit_rows())
    if how == "http":
        async with web.client("user") as client:
            told = (await request(LEGACY, method, params).send(client)).text
    else:
        async with piped(web.kit.app.gate, USER) as peer:
            await peer.open(how)
            told = str(await peer.ask(message(method, era=how, **params)))
    assert "rror" in told
    rows = (await web.kit.audit_rows())[before:]
    assert not [row for row in rows if SECRET in str(row) or ENCODED in str(row)]
    assert {row["error_type"] for row in rows} == {"not_found"}
    return [row["tool_name"] for row in rows]


@pytest.mark.parametrize("how", ["http", *ERAS])
@pytest.mark.parametrize("spelling", URIS)
async def test_the_uri_of_an_unknown_resource_leaves_no_arguments(
    web: Web, spelling: str, how: str
) -> None:
    uri, name = URIS[spelling]
    assert await names_after(web, how, "resources/read", uri=uri) == [name]


@pytest.mark.parametrize("how", ["http", *ERAS])
@pytest.mark.parametrize("spelling", NAMES)
@pytest.mark.parametrize("method", ["tools/call", "prompts/get"])
async def test_what_is_no_name_of_a_tool_or_a_prompt_is_not_kept(
    web: Web, method: str, spelling: str, how: str
) -> None:
    assert await names_after(web, how, method, name=NAMES[spelling]) == [NOT_A_NAME]


@pytest.mark.parametrize("path", [f"file.get%2F{ENCODED}", f"%20{SECRET}", f"a/{SECRET}"])
async def test_what_is_no_name_of_a_tool_is_not_kept_from_a_path(web: Web, path: str) -> None:
    async with web.client("user") as client:
        answer = await client.post(f"/v1/tools/{path}", json={})
    (row,) = await web.audit_rows(answer.headers["x-request-id"])
    assert (answer.status_code, row["tool_name"]) == (404, NOT_A_NAME)


async def test_what_is_no_name_of_a_tool_is_not_kept_from_json_rpc(web: Web) -> None:
    async with web.client("user") as client:
        asked = {"jsonrpc": "2.0", "id": 1, "method": NAMES["a slash"]}
        answer = await client.post("/rpc", json=asked)
    (row,) = await web.audit_rows(answer.headers["x-request-id"])
    assert row["tool_name"] == NOT_A_NAME


async def test_a_name_that_may_be_a_tools_is_kept(web: Web) -> None:
    assert await names_after(web, "http", "tools/call", name="Absent-tool_1.get") == [
        "Absent-tool_1.get"
    ]


async def test_no_name_is_kept_where_the_key_has_ended(web: Web) -> None:
    before = len(await web.kit.audit_rows())

    async def nobody(oldest: float | None) -> None:
        return None

    async with piped(web.kit.app.gate, USER, identify=nobody) as peer:
        told = await peer.ask(message("tools/call", name=NAMES["a slash"], arguments={}))
    assert "error" in told
    names = [row["tool_name"] for row in (await web.kit.audit_rows())[before:]]
    assert names == [NOT_A_NAME]

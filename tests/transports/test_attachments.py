"""An attachment on every transport: base64 in JSON, bytes over HTTP, a link over MCP."""

import base64
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import jsonschema
import pytest
from tests.gate.files import FILES, LARGE, Folder
from tests.gate.tools import USER, a_tool, offer
from tests.transports.conftest import Web, opened_web
from tests.transports.mcp_requests import (
    ERAS,
    LEGACY,
    MODERN,
    initialize,
    message_of,
    request,
    tool_call,
)
from tests.transports.peers import message, piped

from toolgate.gate.attachments import URI, uri_of
from toolgate.gate.live_switches import store_switches
from toolgate.gate.principal import Role
from toolgate.gate.tool import Route, ToolLimits

pytestmark = pytest.mark.anyio

FIELD = "content_bytes_base64"
ONE = {"path": "hello.txt"}
LINK = {
    "type": "resource_link",
    "uri": uri_of("file.get", ONE),
    "name": "hello.txt",
    "mimeType": "text/plain; charset=utf-8",
    "size": 5,
}


@pytest.fixture(scope="module")
async def web(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    folder = Folder()
    tools = [
        folder.tool(),
        folder.tool("slow.get", limits=ToolLimits(slow=True)),
        replace(folder.tool("routed.get"), route=Route("/files/{path}")),
        folder.tool("shared.get", role=Role.USER),
        a_tool("plain"),
    ]
    async with opened_web(tmp_path_factory.mktemp("files"), offer(*tools)) as opened:
        yield opened


# JSON and HTTP


@pytest.mark.parametrize("path", ["hello.txt", "empty", "../../up.png", "large"])
async def test_json_has_base64_in_the_field(web: Web, path: str) -> None:
    async with web.client() as client:
        over_http = await client.post("/v1/tools/file.get", json={"path": path})
        asked = {"jsonrpc": "2.0", "id": 1, "method": "file.get", "params": {"path": path}}
        over_rpc = await client.post("/rpc", json=asked)
    assert over_http.json()["result"] == {
        "path": path,
        FIELD: base64.b64encode(FILES[path]).decode(),
    }
    assert over_http.headers["content-type"] == "application/json"
    assert over_rpc.json()["result"] == over_http.json()


@pytest.mark.parametrize(
    ("path", "content_type", "disposition"),
    [
        ("hello.txt", "text/plain; charset=utf-8", 'filename="hello.txt"'),
        ("../../up.png", "image/png", 'filename="up.png"'),
        ("empty", "application/octet-stream", 'filename="empty"'),
        ("größe.txt", "application/octet-stream", "filename*=UTF-8''gr%C3%B6%C3%9Fe.txt"),
        ("large", "application/octet-stream", 'filename="large"'),
    ],
    ids=["text", "outside", "empty", "not ASCII", "large"],
)
async def test_who_asks_for_bytes_gets_them_alone(
    web: Web, path: str, content_type: str, disposition: str
) -> None:
    async with web.client(Accept="application/octet-stream") as client:
        answer = await client.post("/v1/tools/file.get", json={"path": path})
    assert answer.content == FILES[path]
    assert answer.headers["content-type"] == content_type
    assert answer.headers["content-disposition"] == f"attachment; {disposition}"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"].startswith("sandbox;")
    assert "x-evil" not in answer.headers


@pytest.mark.parametrize(
    ("accept", "in_json"),
    [
        ("image/png", False),
        ("text/html;q=0.9, IMAGE/PNG;q=0.8", False),
        ("*/*", True),
        ("application/json, image/png", True),
        ("image/jpeg", True),
        ("application/octet-stream;q=0", True),
        ("image/png; Q=0.000 , text/html", True),
        ("application/octet-stream ; q = 0", True),
        ('application/octet-stream;q="0"', True),
        ("image/png;q=0.001", False),
        ("image/png, application/json;q=0", False),
    ],
    ids=[
        "the type",
        "one of several",
        "any",
        "JSON too",
        "another type",
        "not bytes",
        "not the type",
        "not bytes, with spaces",
        "not bytes, in quotes",
        "the type, if need be",
        "not JSON",
    ],
)
async def test_json_is_answered_unless_the_type_is_named(
    web: Web, accept: str, in_json: bool
) -> None:
    async with web.client(Accept=accept) as client:
        answer = await client.post("/v1/tools/file.get", json={"path": "../../up.png"})
        routed = await client.get("/files/hello.txt")
    assert (answer.headers["content-type"] == "application/json") is in_json
    assert answer.headers["vary"] == "Accept"
    assert routed.json()["result"][FIELD] == "SGVsbG8="


async def test_a_route_of_its_own_hands_over_bytes_too(web: Web) -> None:
    async with web.client(Accept="text/plain") as client:
        assert (await client.get("/files/hello.txt")).content == b"Hello"


async def test_who_asks_for_bytes_is_told_of_failures_in_json(web: Web) -> None:
    async with web.client(Accept="application/octet-stream") as client:
        larger = await client.post("/v1/tools/file.get", json={"path": "larger"})
        absent = await client.post("/v1/tools/file.get", json={"path": "x"})
        nothing = await client.post("/v1/tools/file.get", json={"path": "nothing"})
    assert larger.status_code == 413
    assert str(len(LARGE) + 1) in larger.json()["error"]["message"]
    assert absent.status_code == 404
    assert nothing.json()["result"] == {"path": "nothing", FIELD: None}


async def test_a_batch_has_no_attachments(web: Web) -> None:
    asked = {"jsonrpc": "2.0", "method": "file.get", "params": ONE}
    plain = {"jsonrpc": "2.0", "id": 2, "method": "plain"}
    async with web.client() as client:
        answers = (await client.post("/rpc", json=[asked | {"id": 1}, asked, plain])).json()
    assert "Send its request alone" in answers[0]["error"]["message"]
    assert answers[1]["result"] == {"status": "success", "result": {}}
    rows = [row for row in await web.kit.audit_rows() if row["tool_name"] == "file.get"]
    assert [(row["status"], row["error_type"]) for row in rows[-2:]] == [
        ("error", "size_limit_exceeded")
    ] * 2, "refused before it was read"


async def test_openapi_and_the_list_say_what_is_answered(web: Web) -> None:
    async with web.client() as client:
        paths = (await client.get("/openapi.json")).json()["paths"]
        listed = (await client.get("/v1/tools")).json()["tools"]
    answers = paths["/v1/tools/file.get"]["post"]["responses"]["200"]["content"]
    assert list(answers) == ["application/json", "application/octet-stream"]
    assert list(paths["/v1/tools/plain"]["post"]["responses"]["200"]["content"]) == [
        "application/json"
    ]
    (tool,) = [one for one in listed if one["name"] == "file.get"]
    assert FIELD in tool["outputSchema"]["properties"]["result"]["properties"]


# MCP


async def asked(web: Web, era: str, way: str, method: str, params: dict[str, Any]) -> Any:
    """The answer to a request over HTTP or stdio."""
    if way == "http":
        async with web.client() as client:
            return message_of(await request(era, method, params).send(client))
    async with piped(web.kit.app.gate) as peer:
        await peer.open(era)
        return await peer.ask(message(method, era=era, **params))


@pytest.mark.parametrize("way", ["http", "stdio"])
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("tool", ["file.get", "slow.get"])
async def test_mcp_has_a_link_beside_the_answer(web: Web, era: str, way: str, tool: str) -> None:
    """The slow tool is answered by the SDK, the other without it."""
    called = {"name": tool, "arguments": ONE}
    result = (await asked(web, era, way, "tools/call", called))["result"]
    text, link, embedded = result["content"]
    assert link == LINK | {"uri": uri_of(tool, ONE)}
    itself = {"uri": link["uri"], "mimeType": link["mimeType"], "text": "Hello"}
    assert embedded == {"type": "resource", "resource": itself}
    assert result["structuredContent"] == {"status": "success", "result": {"path": "hello.txt"}}
    assert "SGVsbG8" not in text["text"]
    listed = (await asked(web, era, way, "tools/list", {}))["result"]["tools"]
    (schema,) = [
        one["outputSchema"] for one in listed if one["name"] in (tool, tool.replace(".", "_"))
    ]
    jsonschema.validate(result["structuredContent"], schema)
    assert FIELD not in schema["properties"]["result"]["properties"]


@pytest.mark.parametrize("tool", ["file.get", "slow.get"])
@pytest.mark.parametrize("path", ["empty", "../../up.png", "large"])
async def test_only_a_short_text_stands_beside_its_link(web: Web, tool: str, path: str) -> None:
    called = {"name": tool, "arguments": {"path": path}}
    result = (await asked(web, MODERN, "http", "tools/call", called))["result"]
    assert [one["type"] for one in result["content"]] == ["text", "resource_link"]


@pytest.mark.parametrize("way", ["http", "stdio"])
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("path", ["hello.txt", "empty", "../../up.png", "large"])
async def test_reading_the_link_is_the_same_call_again(
    web: Web, era: str, way: str, path: str
) -> None:
    called = {"name": "file.get", "arguments": {"path": path}}
    link = (await asked(web, era, way, "tools/call", called))["result"]["content"][1]
    rows = len(await web.kit.audit_rows())
    read = (await asked(web, era, way, "resources/read", {"uri": link["uri"]}))["result"]
    (content,) = read["contents"]
    assert base64.b64decode(content["blob"]) == FILES[path]
    assert (content["uri"], content["mimeType"]) == (link["uri"], link["mimeType"])
    assert len(await web.kit.audit_rows()) == rows + 1


@pytest.mark.parametrize("era", ERAS)
async def test_a_link_to_what_is_gone_says_what_the_tool_says(web: Web, era: str) -> None:
    gone = uri_of("file.get", {"path": "gone"})
    nothing = uri_of("file.get", {"path": "nothing"})
    wrong = uri_of("file.get", {"paht": "hello.txt"})
    told = await asked(web, era, "http", "resources/read", {"uri": gone})
    assert told["error"]["message"] == "There is no file gone."
    told = await asked(web, era, "http", "resources/read", {"uri": wrong})
    assert "paht" in told["error"]["message"]
    read = await asked(web, era, "http", "resources/read", {"uri": nothing})
    assert read["result"]["contents"][0]["mimeType"] == "application/json"


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("way", ["http", "stdio"])
async def test_arguments_too_long_for_a_link_are_refused(web: Web, era: str, way: str) -> None:
    called = {"name": "file.get", "arguments": {"path": "x" * 5000}}
    result = (await asked(web, era, way, "tools/call", called))["result"]
    assert result["isError"] is True
    assert "call the tool over plain HTTP" in result["content"][0]["text"]


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26"])
async def test_a_client_that_knows_no_links_is_told_in_words(web: Web, version: str) -> None:
    async with piped(web.kit.app.gate) as peer:
        await peer.open(version)
        asked = message("tools/call", era=version, name="file.get", arguments=ONE)
        _, told, embedded = (await peer.ask(asked))["result"]["content"]
    assert told["type"] == "text"
    assert LINK["uri"] in told["text"]
    assert embedded["resource"]["text"] == "Hello"


async def test_a_link_is_read_in_a_session_too(web: Web) -> None:
    """As JSON: clients limit the size of an event."""
    async with web.client() as client:
        opened = await initialize("roots").send(client)
        reading = request(LEGACY, "resources/read", {"uri": uri_of("file.get", {"path": "large"})})
        session = opened.headers["mcp-session-id"]
        read = await reading.having(mcp_session_id=session).send(client)
        lost = await reading.having(mcp_session_id="x" * 32).send(client)
    assert read.headers["content-type"] == "application/json"
    assert base64.b64decode(read.json()["result"]["contents"][0]["blob"]) == LARGE
    assert lost.status_code == 404
    async with web.client("user") as client:
        theirs = await reading.having(mcp_session_id=session).send(client)
    assert theirs.status_code == 404


# Who may read


@pytest.mark.parametrize("era", ERAS)
async def test_a_hidden_tool_has_no_attachments(web: Web, era: str) -> None:
    """Exactly as one that does not exist, or has none."""
    told: set[str] = set()
    async with web.client("user") as client:
        for tool in ("file.get", "absent.get", "plain"):
            uri = uri_of(tool, ONE)
            answer = await request(era, "resources/read", {"uri": uri}).send(client)
            told.add(f"{answer.status_code} {answer.text.replace(uri, URI)}")
        shown = await request(era, "resources/read", {"uri": uri_of("shared.get", ONE)}).send(
            client
        )
    assert len(told) == 1, told
    assert "Resource not found" in told.pop()
    assert "blob" in message_of(shown)["result"]["contents"][0]


@pytest.mark.parametrize("era", ERAS)
async def test_a_hidden_tool_has_no_attachments_on_stdio(web: Web, era: str) -> None:
    async with piped(web.kit.app.gate, USER) as peer:
        await peer.open(era)
        hidden = await peer.ask(message("resources/read", era=era, uri=LINK["uri"]))
        absent = await peer.ask(message("resources/read", era=era, uri=uri_of("absent", ONE)))
    assert hidden["error"]["code"] == absent["error"]["code"]
    assert hidden["error"]["message"] == f"Resource not found: {LINK['uri']}"


@pytest.mark.parametrize("era", ERAS)
async def test_the_audit_has_the_tool_of_an_attachment_and_not_its_arguments(
    web: Web, era: str
) -> None:
    odd = {
        "file.get": uri_of("file.get", ONE),
        "absent.get": uri_of("absent.get", ONE),
        "plain": uri_of("plain", ONE),
        "shared.get": f"{URI}shared.get/{'e30' * 9}!",
        "other.get": uri_of("other.get", ONE).replace("toolgate", "TOOLGATE"),
        URI: f"{URI}/{'e30' * 9}",
    }
    async with web.client("user") as client:
        for uri in odd.values():
            answer = await request(era, "resources/read", {"uri": uri}).send(client)
            assert "Resource not found" in answer.text, uri
    rows = (await web.kit.audit_rows())[-len(odd) :]
    assert sorted(row["tool_name"] for row in rows) == sorted(odd)
    assert {row["decision"] for row in rows} == {"deny"}
    assert {row["error_type"] for row in rows} == {"not_found"}


@pytest.mark.parametrize("era", ERAS)
async def test_an_attachment_of_a_tool_that_is_switched_off_is_audited_as_such(
    tmp_path_factory: pytest.TempPathFactory, era: str
) -> None:
    folder = tmp_path_factory.mktemp("off")
    async with opened_web(folder, offer(Folder().tool())) as web, web.client() as client:
        database = web.kit.app.gate.database
        off = {"file.get": ["a test"]}
        await database.write(lambda one: store_switches(one, "test", off))
        await web.kit.app.gate.switches.read_if_changed()
        answer = await request(era, "resources/read", {"uri": LINK["uri"]}).send(client)
        assert "switched off" in message_of(answer)["error"]["message"]
        row = (await web.kit.audit_rows())[-1]
    told = (row["tool_name"], row["rule"], row["error_type"])
    assert told == ("file.get", "tool-switched-off", "tool_disabled")


@pytest.mark.parametrize("era", ERAS)
async def test_a_key_revoked_after_the_link_reads_nothing(web: Web, era: str) -> None:
    made = await web.kit.app.keys.create(role=Role.USER)
    headers = {"Authorization": f"Bearer {made.key}"}
    async with web.client(None) as client:
        client.headers.update(headers)
        called = await tool_call(era, "shared.get", ONE).send(client)
        uri = message_of(called)["result"]["content"][1]["uri"]
        reading = request(era, "resources/read", {"uri": uri})
        assert "result" in message_of(await reading.send(client))
        await web.kit.app.keys.revoke(made.id)
        assert (await reading.send(client)).status_code == 401


async def test_each_reading_counts_as_a_call(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = Folder()
    async with (
        opened_web(
            tmp_path_factory.mktemp("limited"), offer(folder.tool()), limits__calls_per_minute=2
        ) as web,
        web.client() as client,
    ):
        reading = request(ERAS[0], "resources/read", {"uri": LINK["uri"]})
        answers = [message_of(await reading.send(client)) for _ in range(3)]
    assert ["result" in one for one in answers] == [True, True, False]
    assert "Rate limit" in answers[2]["error"]["message"]
    assert folder.reads == 2

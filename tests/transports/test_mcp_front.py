"""The short way and the SDK's way give the same answers; what is odd goes to the SDK."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

import httpx2
import mcp
import pytest
from mcp.client.streamable_http import streamable_http_client
from pydantic import Field
from tests.patience import PATIENT
from tests.servers import Server
from tests.transports.conftest import Web, opened_web
from tests.transports.mcp_requests import (
    ERAS,
    LEGACY,
    META,
    MODERN,
    Request,
    envelope,
    initialize,
    message_of,
    request,
    tool_call,
)

from toolgate import packs
from toolgate.gate.catalogue import Catalogue
from toolgate.gate.context import Context
from toolgate.gate.dialects import SENTENCE
from toolgate.gate.offer import AnyOffer, Offer
from toolgate.gate.principal import Role
from toolgate.gate.resources import Resource
from toolgate.gate.tool import Effect, Family, Input, NoArguments, Output, Pack
from toolgate.transports.mcp import front
from toolgate.transports.mcp.responses import Responses

pytestmark = pytest.mark.anyio

JANE = {"collection": "users", "document_id": "abc123"}
HEADER_MISMATCH, UNSUPPORTED_VERSION = -32020, -32022
INVALID_PARAMS, INVALID_REQUEST, NOT_FOUND, PARSE_ERROR = -32602, -32600, -32601, -32700


class Word(Output):
    """A word."""

    word: str = Field(description="The word.")


class Region(Input):
    """Where."""

    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = Field(
        description="A region."
    )


def special() -> AnyOffer:
    """Tools that need the SDK: one may ask back, one wants an argument in a header."""
    family = Family("special", Pack("special", SENTENCE, "Tools that need the SDK."))

    @family.tool("ask.back", role=Role.ADMIN, effect=Effect.READ, title="Ask back", slow=True)
    async def ask_back(ctx: Context, args: NoArguments) -> Word:
        """Ask back."""
        return Word(word="live" if ctx.report else "dead")

    @family.tool("in.region", role=Role.ADMIN, effect=Effect.READ, title="In a region")
    async def in_region(ctx: Context, args: Region) -> Word:
        """Say the region."""
        return Word(word=args.region)

    jane = Resource(
        uri="special://jane",
        name="jane",
        title="Jane",
        description="What only admins may read.",
        tool="get_document",
        arguments=JANE,
    )
    return Offer(pack=family.pack, tools=tuple(family.tools), resources=(jane,))


@pytest.fixture(scope="module")
async def web(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    async with opened_web(tmp_path_factory.mktemp("front"), [special()]) as opened:
        yield opened


@pytest.fixture
async def admin(web: Web) -> AsyncIterator[httpx2.AsyncClient]:
    async with web.client() as client:
        yield client


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the short way took each request."""
    seen: list[bool] = []
    original = front.Front._call  # pyright: ignore[reportPrivateUsage]
    listed = Responses.to_list

    async def noticed(*given: Any) -> Any:
        seen.append(True)
        return await original(*given)

    def noticed_list(*given: Any) -> bytes:
        seen.append(True)
        return listed(*given)

    monkeypatch.setattr(front.Front, "_call", noticed)
    monkeypatch.setattr(Responses, "to_list", noticed_list)
    return seen


async def both_ways(
    client: httpx2.AsyncClient, wanted: Request, monkeypatch: pytest.MonkeyPatch, taken: list[bool]
) -> tuple[httpx2.Response, httpx2.Response]:
    """The answer of the short way, then the SDK's to the very same request."""
    short = await wanted.send(client)
    assert taken == [True], "the short way answers this"
    with monkeypatch.context() as closed:
        closed.setattr(front, "_plain", lambda *_: None)
        long = await wanted.send(client)
    assert taken == [True], "the SDK answers this"
    return short, long


# The same answers


SAME = {
    "a good answer": ("get_document", JANE),
    "no arguments": ("list_collections", ...),
    "null arguments": ("list_collections", None),
    "a tool's error": ("get_document", {"collection": "users", "document_id": "nobody"}),
    "an error with more": ("describe_collection", {"collection_name": "nonexistent"}),
    "bad arguments": ("get_document", {"collection": 5, "more": 1}),
    "a write that fails": ("create_document", {**JANE, "data": {}}),
    "an unknown tool": ("no_such_tool", {}),
}


@pytest.mark.parametrize("holder", ["admin", "user", "worker"])
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("what", SAME)
async def test_a_call_answers_the_same_on_both_ways(
    web: Web,
    monkeypatch: pytest.MonkeyPatch,
    taken: list[bool],
    what: str,
    era: str,
    holder: str,
) -> None:
    async with web.client(holder) as client:
        wanted = tool_call(era, *SAME[what])
        short, long = await both_ways(client, wanted, monkeypatch, taken)
    assert message_of(short) == message_of(long)
    assert short.status_code == long.status_code
    assert short.headers["content-type"] == "application/json"


@pytest.mark.parametrize("holder", ["admin", "user", "worker"])
@pytest.mark.parametrize("era", ERAS)
async def test_the_list_is_the_same_on_both_ways(
    web: Web, monkeypatch: pytest.MonkeyPatch, taken: list[bool], era: str, holder: str
) -> None:
    async with web.client(holder) as client:
        short, long = await both_ways(client, request(era, "tools/list"), monkeypatch, taken)
    assert message_of(short) == message_of(long)
    many = {"admin": len(web.kit.app.gate.catalogue), "user": 5, "worker": 3}
    assert len(message_of(short)["result"]["tools"]) == many[holder]


@pytest.mark.parametrize("era", ERAS)
async def test_both_ways_leave_the_same_audit_row(
    web: Web, admin: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch, era: str
) -> None:
    kept = ["transport", "subject_type", "subject_id", "tool_name", "decision", "rule", "status",
            "error_type", "role_names"]  # fmt: skip
    rows: list[list[Any]] = []
    for way in ("short", "long"):
        if way == "long":
            monkeypatch.setattr(front, "_plain", lambda *_: None)
        for name in ("list_collections", "no_such_tool"):
            await tool_call(era, name, {}).having(x_request_id=f"{era}-{way}").send(admin)
        found = await web.audit_rows(f"{era}-{way}")
        rows.append([{name: row[name] for name in kept} for row in found])
    assert len(rows[0]) == 2
    assert rows[0] == rows[1]


@pytest.mark.parametrize("id", [0, 7, -1, "seven", "", 2**53])
@pytest.mark.parametrize("era", ERAS)
async def test_the_id_comes_back_as_it_was(
    admin: httpx2.AsyncClient, taken: list[bool], era: str, id: Any
) -> None:
    answer = await tool_call(era, "list_collections").saying(id=id).send(admin)
    assert message_of(answer)["id"] == id
    assert taken == [True]


@pytest.mark.parametrize("path", ["/mcp", "/backend-manager/mcp"])
@pytest.mark.parametrize("era", ERAS)
async def test_both_addresses_answer(admin: httpx2.AsyncClient, era: str, path: str) -> None:
    answer = await tool_call(era, "get_document", JANE).send(admin, path)
    assert message_of(answer)["result"]["structuredContent"]["displayName"] == "Jane Doe"


async def test_a_modern_answer_says_who_made_it(admin: httpx2.AsyncClient) -> None:
    result = message_of(await tool_call(MODERN, "list_collections").send(admin))["result"]
    assert result["resultType"] == "complete"
    assert result["_meta"][f"{META}serverInfo"]["name"] == "toolgate"
    listed = message_of(await request(MODERN, "tools/list").send(admin))["result"]
    assert (listed["ttlMs"], listed["cacheScope"]) == (0, "private")


# Hidden is unknown


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("hidden", "unknown"),
    [("get_document", "got_document"), ("ask.back", "asc.back"), ("in.region", "on.region")],
)
async def test_a_hidden_tool_answers_like_no_tool_at_all(
    web: Web, era: str, hidden: str, unknown: str
) -> None:
    async with web.client("user") as client:
        one = await tool_call(era, hidden, {}).send(client)
        other = await tool_call(era, unknown, {}).send(client)
    assert one.content == other.content.replace(unknown.encode(), hidden.encode())
    assert one.status_code == other.status_code
    assert one.headers.keys() == other.headers.keys()
    assert one.headers["content-type"] == other.headers["content-type"]
    assert message_of(one)["error"]["code"] == INVALID_PARAMS


@pytest.mark.parametrize("era", ERAS)
async def test_a_resource_of_a_hidden_tool_does_not_exist(web: Web, era: str) -> None:
    read = request(era, "resources/read", {"uri": "special://jane"})
    async with web.client("admin") as client:
        listed = message_of(await request(era, "resources/list").send(client))["result"]
        assert "special://jane" in [one["uri"] for one in listed["resources"]]
        [content] = message_of(await read.send(client))["result"]["contents"]
        assert "jane@example.com" in content["text"]
    async with web.client("user") as client:
        listed = message_of(await request(era, "resources/list").send(client))["result"]
        assert "special://jane" not in [one["uri"] for one in listed["resources"]]
        error = message_of(await read.send(client))["error"]
        unknown = request(era, "resources/read", {"uri": "special://jone"})
        other = message_of(await unknown.send(client))["error"]
    assert error == {
        "code": other["code"],
        "message": "Resource not found: special://jane",
        "data": {"uri": "special://jane"},
    }
    assert other["message"] == "Resource not found: special://jone"


async def test_a_resource_of_a_hidden_tool_cannot_be_subscribed_to(web: Web) -> None:
    wanted = request(LEGACY, "resources/subscribe", {"uri": "special://jane"})
    async with web.client("admin") as client:
        assert message_of(await wanted.send(client))["result"] == {}
    async with web.client("user") as client:
        error = message_of(await wanted.send(client))["error"]
        assert error["message"] == "Resource not found: special://jane"


# What needs the SDK


@pytest.mark.parametrize("era", ERAS)
async def test_a_tool_that_may_ask_back_goes_to_the_sdk(
    admin: httpx2.AsyncClient, taken: list[bool], era: str
) -> None:
    for name in ("ask.back", "ask_back"):
        answer = await tool_call(era, name, {}).send(admin)
        assert message_of(answer)["result"]["structuredContent"] == {"word": "live"}
    assert taken == []


async def test_an_argument_that_a_header_repeats_must_agree_with_it(
    admin: httpx2.AsyncClient, taken: list[bool]
) -> None:
    wanted = tool_call(MODERN, "in.region", {"region": "north"})
    agreed = await wanted.having(mcp_param_region="north").send(admin)
    assert message_of(agreed)["result"]["structuredContent"] == {"word": "north"}
    for odd in (wanted.having(mcp_param_region="south"), wanted):
        refused = await odd.send(admin)
        assert refused.status_code == 400
        assert message_of(refused)["error"]["code"] == HEADER_MISMATCH
    assert taken == []


CALL = tool_call(MODERN, "list_collections", {})
OLD_CALL = tool_call(LEGACY, "list_collections", {})
NO_CAPABILITIES = {f"{META}protocolVersion": MODERN}
REFUSED: dict[str, tuple[Request, int, int | None]] = {
    "another method": (CALL.having(mcp_method="tools/list"), 400, HEADER_MISMATCH),
    "no method": (CALL.having(mcp_method=None), 400, HEADER_MISMATCH),
    "another name": (CALL.having(mcp_name="get_document"), 400, HEADER_MISMATCH),
    "no name": (CALL.having(mcp_name=None), 400, HEADER_MISMATCH),
    "another version": (CALL.with_params(_meta=envelope(LEGACY)), 400, HEADER_MISMATCH),
    "a version nobody knows": (
        CALL.with_params(_meta=envelope("2099-01-01")).having(mcp_protocol_version="2099-01-01"),
        400,
        UNSUPPORTED_VERSION,
    ),
    "no meta": (CALL.with_params(_meta={}), 400, INVALID_PARAMS),
    "no capabilities": (CALL.with_params(_meta=NO_CAPABILITIES), 400, INVALID_PARAMS),
    "odd capabilities": (
        CALL.with_params(_meta=envelope() | {f"{META}clientCapabilities": []}),
        400,
        INVALID_PARAMS,
    ),
    "an odd client": (
        CALL.with_params(_meta=envelope() | {f"{META}clientInfo": {"name": 5}}),
        400,
        INVALID_PARAMS,
    ),
    "the method twice": (Request(CALL.body, CALL.headers, ("mcp-method",)), 400, HEADER_MISMATCH),
    "the name twice": (Request(CALL.body, CALL.headers, ("mcp-name",)), 400, HEADER_MISMATCH),
    "the version twice": (
        Request(CALL.body, CALL.headers, ("mcp-protocol-version",)),
        400,
        HEADER_MISMATCH,
    ),
    "another media type": (CALL.having(content_type="text/plain"), 415, INVALID_REQUEST),
    "another media type, older era": (
        OLD_CALL.having(content_type="text/plain"),
        415,
        INVALID_REQUEST,
    ),
    "no stream accepted": (CALL.having(accept="application/json"), 406, None),
    "no stream accepted, older era": (
        OLD_CALL.having(accept="application/json"),
        406,
        INVALID_REQUEST,
    ),
    "a list of arguments": (CALL.with_params(arguments=[]), 400, INVALID_PARAMS),
    "a text of arguments": (CALL.with_params(arguments="{}"), 400, INVALID_PARAMS),
    "an unknown method": (request(MODERN, "tools/nope"), 404, NOT_FOUND),
    "a method of the older era": (request(MODERN, "ping"), 404, NOT_FOUND),
    "no JSON": (Request(b"{", CALL.headers), 400, PARSE_ERROR),
    "no JSON, older era": (Request(b"{", OLD_CALL.headers), 400, PARSE_ERROR),
    "not UTF-8": (Request(b'{"a": "\xff"}', CALL.headers), 400, PARSE_ERROR),
    "deep": (Request(b"[" * 100_000, CALL.headers), 400, PARSE_ERROR),
    "a batch": (Request([CALL.body], CALL.headers), 400, INVALID_REQUEST),
    "an id that is true": (CALL.saying(id=True), 400, INVALID_REQUEST),
    "an id that is null": (CALL.saying(id=None), 400, INVALID_REQUEST),
    "another JSON-RPC": (CALL.saying(jsonrpc="1.0"), 400, INVALID_REQUEST),
    "a session nobody has": (OLD_CALL.having(mcp_session_id="nope"), 404, INVALID_REQUEST),
}


@pytest.mark.parametrize("what", REFUSED)
async def test_an_odd_request_gets_the_protocols_error(
    admin: httpx2.AsyncClient, taken: list[bool], what: str
) -> None:
    wanted, status, code = REFUSED[what]
    answer = await wanted.send(admin)
    assert answer.status_code == status, answer.text
    if code is not None:
        assert message_of(answer)["error"]["code"] == code
    assert taken == []


async def test_an_unsupported_version_is_answered_with_the_supported(
    admin: httpx2.AsyncClient,
) -> None:
    error = message_of(await REFUSED["a version nobody knows"][0].send(admin))["error"]
    assert error["data"] == {"supported": [MODERN], "requested": "2099-01-01"}


ODD_BUT_GOOD = {
    "a name in base64": CALL.having(mcp_name="=?base64?bGlzdF9jb2xsZWN0aW9ucw==?="),
    "any media type": CALL.having(accept="*/*"),
    "further params": CALL.with_params(extra=1),
    "an older version": OLD_CALL.having(mcp_protocol_version="2025-03-26"),
    "no version": OLD_CALL.having(mcp_protocol_version=None),
}


@pytest.mark.parametrize("what", ODD_BUT_GOOD)
async def test_an_odd_request_that_is_good_is_answered_by_the_sdk(
    admin: httpx2.AsyncClient, taken: list[bool], what: str
) -> None:
    plain = message_of(await CALL.send(admin))["result"]["structuredContent"]
    assert taken == [True]
    odd = message_of(await ODD_BUT_GOOD[what].send(admin))
    assert odd["result"]["structuredContent"] == plain
    assert taken == [True]


PLAIN_ENOUGH = {
    "space around a header": CALL.having(mcp_name="  list_collections\t"),
    "a character set": CALL.having(content_type="application/json; charset=utf-8"),
    "no client info": CALL.with_params(
        _meta={f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {}}
    ),
    "a progress token": CALL.with_params(_meta=envelope(progressToken="p")),
    "a trace": CALL.with_params(_meta=envelope(traceparent="00-0-0-00")),
}


@pytest.mark.parametrize("what", PLAIN_ENOUGH)
async def test_a_variation_that_changes_nothing_takes_the_short_way(
    admin: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch, taken: list[bool], what: str
) -> None:
    short, long = await both_ways(admin, PLAIN_ENOUGH[what], monkeypatch, taken)
    assert message_of(short) == message_of(long)


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
async def test_the_modern_era_knows_only_post(admin: httpx2.AsyncClient, method: str) -> None:
    answer = await admin.request(method, "/mcp", headers={"mcp-protocol-version": MODERN})
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize("era", ERAS)
async def test_a_notification_is_accepted(admin: httpx2.AsyncClient, era: str) -> None:
    told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    answer = await Request(told, CALL.having(mcp_protocol_version=era).headers).send(admin)
    assert (answer.status_code, answer.content) == (202, b"")


@pytest.mark.parametrize("era", ERAS)
async def test_a_body_over_the_limit_is_too_large(web: Web, era: str) -> None:
    async with web.client() as client:
        long = tool_call(era, "get_document", {"collection": "x" * 4 * 1024 * 1024})
        answer = await long.having(x_request_id=f"long-{era}").send(client)
    assert answer.status_code == 413
    [row] = await web.audit_rows(f"long-{era}")
    assert (row["transport"], row["error_type"]) == ("mcp", "size_limit_exceeded")


async def test_a_failure_of_ours_is_not_told(
    web: Web, admin: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("secret place")

    monkeypatch.setattr(type(web.kit.app.gate.policy), "visible", broken)
    for era in ERAS:
        answer = await request(era, "resources/list").send(admin)
        assert message_of(answer)["error"] == {"code": -32603, "message": "Internal error"}
        assert "secret place" not in answer.text


# Sessions


@pytest.mark.parametrize("capability", ["sampling", "elicitation", "roots"])
async def test_a_client_that_can_be_asked_gets_a_session(
    admin: httpx2.AsyncClient, taken: list[bool], capability: str
) -> None:
    opened = await initialize(capability).send(admin)
    session = opened.headers["mcp-session-id"]
    called = await OLD_CALL.having(mcp_session_id=session).send(admin)
    assert len(message_of(called)["result"]["structuredContent"]["collections"]) == 12
    assert taken == []
    ended = await admin.delete("/mcp", headers={"mcp-session-id": session})
    assert ended.status_code == 200


async def test_a_session_belongs_to_the_key_that_opened_it(
    web: Web, admin: httpx2.AsyncClient
) -> None:
    session = (await initialize("sampling").send(admin)).headers["mcp-session-id"]
    async with web.client("user") as other:
        called = await OLD_CALL.having(mcp_session_id=session).send(other)
        unknown = await OLD_CALL.having(mcp_session_id="0" * 32).send(other)
        ended = await other.delete("/mcp", headers={"mcp-session-id": session})
    assert (called.status_code, ended.status_code) == (404, 404)
    assert called.content == unknown.content
    still = await OLD_CALL.having(mcp_session_id=session).send(admin)
    assert still.status_code == 200


async def test_a_session_ends_when_it_is_deleted(admin: httpx2.AsyncClient) -> None:
    session = (await initialize("elicitation").send(admin)).headers["mcp-session-id"]
    assert (await admin.delete("/mcp", headers={"mcp-session-id": session})).status_code == 200
    assert (await OLD_CALL.having(mcp_session_id=session).send(admin)).status_code == 404


@pytest.mark.parametrize("capabilities", [(), ("experimental",)])
async def test_a_client_that_cannot_be_asked_gets_none(
    admin: httpx2.AsyncClient, capabilities: tuple[str, ...]
) -> None:
    opened = await initialize(*capabilities).send(admin)
    assert "mcp-session-id" not in opened.headers
    result = message_of(opened)["result"]
    assert (result["protocolVersion"], result["serverInfo"]["name"]) == (LEGACY, "toolgate")
    assert (await OLD_CALL.send(admin)).status_code == 200


async def test_an_older_client_works_without_a_session(server: Server) -> None:
    headers = {"Authorization": f"Bearer {server.admin_key}"}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False, timeout=PATIENT) as http,
        mcp.Client(
            streamable_http_client(f"{server.url}/mcp", http_client=http), mode="legacy"
        ) as client,
    ):
        assert client.protocol_version == LEGACY
        assert len((await client.list_tools()).tools) == len(Catalogue(packs.offers()))
        called = await client.call_tool("get_document", JANE)
    assert called.structured_content is not None
    assert called.structured_content["displayName"] == "Jane Doe"

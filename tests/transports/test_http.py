"""Every tool over plain HTTP, on a running server."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from tests.servers import Server
from tests.transports.conftest import opened_web

from toolgate import packs
from toolgate.gate.context import Context
from toolgate.gate.dialects import SENTENCE
from toolgate.gate.offer import AnyOffer, Offer
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, NoArguments, Output, Pack

ADMIN_TOOLS = [tool.name for offer in packs.offers() for tool in offer.tools]
PUBLIC_TOOLS = ["list_collections", "describe_collection", "health_check"]
USER_TOOLS = [
    "list_collections", "describe_collection", "get_user", "get_subscription", "health_check",
]  # fmt: skip
MAX_BYTES = 4 * 1024 * 1024


@pytest.fixture(scope="module")
def admin(server: Server) -> Iterator[httpx2.Client]:
    with server.client() as client:
        yield client


def call(client: httpx2.Client, tool: str, **arguments: Any) -> httpx2.Response:
    return client.post(f"/v1/tools/{tool}", json=arguments)


# Answers and statuses


def test_a_call_answers_the_tools_json(admin: httpx2.Client) -> None:
    answer = call(admin, "get_document", collection="users", document_id="abc123")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert list(answer.json()) == [
        "id", "email", "displayName", "apps", "isAdmin", "createdAt",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("tool", "arguments", "status", "body"),
    [
        (
            "get_document",
            {"collection": "users", "document_id": "nobody"},
            404,
            {"error": "Document nobody not found in users"},
        ),
        (
            "get_document",
            {"collection": "X", "document_id": "abc123"},
            400,
            {"error": "Collection 'X' is not allowed"},
        ),
        (
            "create_document",
            {"collection": "users", "document_id": "abc123", "data": {}},
            409,
            {
                "error": "Document abc123 already exists in users. "
                "Choose another document_id, or leave it out to have one made.",
                "success": False,
            },
        ),
        ("no_such_tool", {}, 404, {"error": "Unknown tool: no_such_tool"}),
    ],
)
def test_a_failure_has_its_status(
    admin: httpx2.Client, tool: str, arguments: dict[str, Any], status: int, body: Any
) -> None:
    answer = call(admin, tool, **arguments)
    assert (answer.status_code, answer.json()) == (status, body)


def test_a_write_is_done_once_and_audited(server: Server, admin: httpx2.Client) -> None:
    answer = admin.post(
        "/v1/tools/create_document",
        json={"collection": "apps", "document_id": "http-app", "data": {"name": "A"}},
        headers={"X-Request-Id": "http-write"},
    )
    assert answer.json() == {"id": "http-app", "success": True}
    [row] = server.audit_rows("http-write")
    assert row["tool_name"] == "create_document"
    assert (row["decision"], row["rule"]) == ("allow", "admin-everything")
    assert (row["status"], row["transport"]) == ("success", "http")
    assert row["subject_id"] == "admin-key"
    stored = call(admin, "get_document", collection="apps", document_id="http-app")
    assert stored.json() == {"id": "http-app", "name": "A"}


def test_a_dry_run_answers_and_stores_nothing(server: Server, admin: httpx2.Client) -> None:
    answer = admin.post(
        "/v1/tools/create_document",
        json={"collection": "apps", "document_id": "dry-app", "data": {}},
        headers={"X-Dry-Run": "true", "X-Request-Id": "dry-run"},
    )
    assert answer.json() == {"id": "dry-app", "success": True}
    missing = call(admin, "get_document", collection="apps", document_id="dry-app")
    assert missing.status_code == 404
    [row] = server.audit_rows("dry-run")
    assert row["error_type"] == "dry_run"


def test_the_audit_holds_no_arguments_and_no_answers(server: Server, admin: httpx2.Client) -> None:
    admin.post(
        "/v1/tools/get_document",
        json={"collection": "users", "document_id": "abc123"},
        headers={"X-Request-Id": "nothing-kept"},
    )
    [row] = server.audit_rows("nothing-kept")
    assert "abc123" not in str(row)
    assert "jane@example.com" not in str(row)


# Routes


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"])
def test_a_tool_is_called_with_post_only(admin: httpx2.Client, method: str) -> None:
    answer = admin.request(method, "/v1/tools/list_collections")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    if method != "HEAD":
        assert answer.json() == {"error": f"{method} is not possible here. Use POST."}


@pytest.mark.parametrize("path", ["/v1/tools", "/v1/tools/"])
def test_the_list_is_read_with_get_only(admin: httpx2.Client, path: str) -> None:
    assert admin.get(path).status_code == 200
    answer = admin.post(path)
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")


@pytest.mark.parametrize("path", ["/v1", "/v1/toolsets", "/v2/tools", "/V1/tools", "/rpc/x"])
def test_nothing_is_at_another_address(admin: httpx2.Client, path: str) -> None:
    answer = admin.get(path)
    assert answer.status_code == 404
    told = "There is nothing at this path. Try GET /v1/tools or GET /openapi.json. MCP is at /mcp."
    assert answer.json() == {"error": told}


@pytest.mark.parametrize(
    "name",
    ["no_such_tool", "get_document/", "get_document/x", "GET_DOCUMENT", "..%2f..%2fetc%2fpasswd",
     "%00", "%ff%fe", "x" * 3000, "get_document%20", "%F0%9F%98%80"],
)  # fmt: skip
def test_an_unknown_name_is_an_unknown_tool(admin: httpx2.Client, name: str) -> None:
    answer = admin.post(f"/v1/tools/{name}", json={})
    assert answer.status_code == 404
    assert answer.json()["error"].startswith("Unknown tool: ")


# Bodies


@pytest.mark.parametrize("body", [b"", b"  \n", b"{}", b" {} ", b"null"])
def test_no_arguments_can_be_said_in_several_ways(admin: httpx2.Client, body: bytes) -> None:
    assert admin.post("/v1/tools/list_collections", content=body).status_code == 200


UNREADABLE = {
    "broken": b'{"collection": ',
    "two values": b"{} {}",
    "a comma too many": b'{"collection": "users",}',
    "single quotes": b"{'collection': 'users'}",
    "NaN": b'{"limit": NaN}',
    "not UTF-8": b'{"collection": "\xff\xfe"}',
    "UTF-16": '{"collection": "users"}'.encode("utf-16"),
    "a lone surrogate": b'{"collection": "\\ud800"}',
    "deep": b'{"data": ' + b"[" * 100_000,
    "deep and closed": b'{"data":' * 5000 + b"1" + b"}" * 5000,
    "binary": bytes(range(256)),
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_a_body_that_is_no_json_is_refused(admin: httpx2.Client, what: str) -> None:
    answer = admin.post("/v1/tools/query_collection", content=UNREADABLE[what])
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("The request body is not valid JSON: ")


@pytest.mark.parametrize("body", [[], [{"collection": "users"}], "users", 5, True])
def test_a_body_that_is_no_object_is_refused(admin: httpx2.Client, body: Any) -> None:
    answer = admin.post("/v1/tools/query_collection", json=body)
    assert answer.status_code == 400
    assert answer.json() == {"error": "arguments must be a JSON object of named values"}


def test_deep_arguments_are_refused(admin: httpx2.Client) -> None:
    body = '{"collection":"apps","data":' + '{"a":' * 50 + "1" + "}" * 50 + "}"
    answer = admin.post("/v1/tools/create_document", content=body)
    assert answer.status_code == 400
    assert answer.json()["error"] == "data must not be nested more than 20 levels deep"


def test_a_body_that_is_nested_very_deep_is_refused(admin: httpx2.Client) -> None:
    body = (
        '{"collection":"apps","filters":[{"field":"a","operator":' + "[" * 900 + "]" * 900 + "}]}"
    )
    answer = admin.post("/v1/tools/query_collection", content=body)
    assert answer.status_code == 400
    assert answer.json()["error"] == "The request body is nested more than 100 levels deep"


def test_an_integer_over_64_bits_is_refused_and_not_rounded(admin: httpx2.Client) -> None:
    body = '{"collection":"apps","data":{"n":' + "9" * 30 + "}}"
    answer = admin.post("/v1/tools/create_document", content=body)
    assert answer.status_code == 400
    assert answer.json()["error"] == "data must hold only integers of at most 64 bits"


def test_an_integer_of_64_bits_without_a_sign_is_refused(admin: httpx2.Client) -> None:
    answer = call(admin, "create_document", collection="apps", data={"n": 2**63})
    assert answer.status_code == 400
    assert answer.json()["error"] == "data must hold only integers of at most 64 bits"


def test_the_longest_body_is_read(admin: httpx2.Client) -> None:
    body = b'{"collection":"apps","document_id":"' + b"x" * (MAX_BYTES - 38) + b'"}'
    assert len(body) == MAX_BYTES
    answer = admin.post("/v1/tools/get_document", content=body)
    assert answer.status_code == 400
    assert answer.json() == {"error": "document_id must have at most 1500 bytes"}


def test_a_longer_body_with_its_length_is_too_large(server: Server, admin: httpx2.Client) -> None:
    answer = admin.post(
        "/v1/tools/get_document",
        content=b"x" * (MAX_BYTES + 1),
        headers={"X-Request-Id": "too-large"},
    )
    assert answer.status_code == 413
    told = f"The request body is over the limit of {MAX_BYTES} bytes (settings limits.body_bytes"
    assert answer.json()["error"].startswith(told)
    [row] = server.audit_rows("too-large")
    assert (row["tool_name"], row["error_type"]) == ("get_document", "size_limit_exceeded")


def test_a_longer_body_in_chunks_is_too_large(admin: httpx2.Client) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(5):
            yield b"x" * 1024 * 1024

    answer = admin.post("/v1/tools/get_document", content=chunks())
    assert answer.status_code == 413


def test_a_body_in_small_chunks_is_put_together(admin: httpx2.Client) -> None:
    body = b'{"collection": "users", "document_id": "abc123"}'
    answer = admin.post("/v1/tools/get_document", content=(bytes([one]) for one in body))
    assert answer.json()["displayName"] == "Jane Doe"


# Who sees what


@pytest.mark.parametrize(
    ("holder", "tools"),
    [
        ("admin", ADMIN_TOOLS),
        ("user", USER_TOOLS),
        ("pm", PUBLIC_TOOLS),
        ("pa", PUBLIC_TOOLS),
        ("worker", PUBLIC_TOOLS),
    ],
)
def test_a_caller_sees_only_its_tools(server: Server, holder: str, tools: list[str]) -> None:
    with server.client(holder) as client:
        listed = client.get("/v1/tools")
        openapi = client.get("/openapi.json").json()
    assert [one["name"] for one in listed.json()["tools"]] == tools
    assert listed.headers["cache-control"] == "private, no-cache"
    described = [path for path in openapi["paths"] if path.startswith("/v1/tools/")]
    assert described == [f"/v1/tools/{name}" for name in tools]


def test_the_list_says_all_there_is_to_say(admin: httpx2.Client) -> None:
    for one in admin.get("/v1/tools").json()["tools"]:
        assert list(one) == [
            "name", "title", "description", "pack", "family", "role", "effect", "route",
            "inputSchema", "outputSchema", "annotations",
        ]  # fmt: skip
        methods = ("GET", "POST", "PUT", "DELETE")
        of_backend = tuple(f"{method} /backend-manager/" for method in methods)
        own = {"content": ("GET /api/",), "backend": of_backend}
        every = (f"POST /v1/tools/{one['name']}",)
        routed = not one["name"].startswith("operator.")
        assert one["route"].startswith(own.get(one["pack"], every) if routed else every)


@pytest.mark.parametrize("holder", ["user", "pm", "pa", "worker"])
@pytest.mark.parametrize("body", [b"{}", b'{"collection": "users"}', b"{broken", b"[]"])
def test_a_hidden_tool_answers_like_no_tool_at_all(
    server: Server, holder: str, body: bytes
) -> None:
    with server.client(holder) as client:
        hidden = client.post("/v1/tools/get_document", content=body)
        unknown = client.post("/v1/tools/got_document", content=body)
    assert hidden.status_code == unknown.status_code == 404
    assert hidden.content == unknown.content.replace(b"got_", b"get_")
    assert hidden.headers.keys() == unknown.headers.keys()


def test_a_hidden_tool_is_audited_as_refused(server: Server) -> None:
    with server.client("user", **{"X-Request-Id": "hidden"}) as client:
        client.post("/v1/tools/create_document", json={"collection": "apps", "data": {}})
    [row] = server.audit_rows("hidden")
    assert row["tool_name"] == "create_document"
    assert (row["decision"], row["rule"]) == ("deny", "no-rule-permits")
    assert (row["subject_type"], row["user_id"]) == ("user", "abc123")
    assert (row["status"], row["error_type"]) == ("error", "not_found")


def test_an_agent_is_audited_with_its_type(server: Server) -> None:
    with server.client("worker", **{"X-Request-Id": "of-a-worker"}) as client:
        assert client.post("/v1/tools/list_collections").status_code == 200
    [row] = server.audit_rows("of-a-worker")
    assert (row["subject_type"], row["agent_type"]) == ("agent", "worker")
    assert (row["rule"], row["role_names"]) == ("public-tools", "")


# Spellings


class Said(Output):
    """What was said."""

    word: str


def dotted() -> AnyOffer:
    family = Family("words", Pack("words", SENTENCE, "Words."))

    @family.tool("say.a.word", role=Role.USER, effect=Effect.READ, title="Say a word")
    async def say(ctx: Context, args: NoArguments) -> Said:
        """Say a word."""
        return Said(word="hello")

    return Offer(pack=family.pack, tools=tuple(family.tools))


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["say.a.word", "say_a_word"])
async def test_a_dotted_name_is_understood_with_underscores(tmp_path: Any, name: str) -> None:
    async with opened_web(tmp_path, [dotted()]) as web, web.client("user") as client:
        answer = await client.post(f"/v1/tools/{name}", headers={"X-Request-Id": "spelled"})
        rpc = await client.post("/rpc", json={"jsonrpc": "2.0", "id": 1, "method": name})
        rows = await web.audit_rows("spelled")
    assert answer.json() == {"word": "hello"}
    assert rpc.json()["result"] == {"word": "hello"}
    assert [row["tool_name"] for row in rows] == ["say.a.word"]


# Limits


@pytest.mark.anyio
async def test_too_many_calls_are_told_when_to_come_back(tmp_path: Any) -> None:
    settings = {"limits__calls_per_minute": 3}
    async with opened_web(tmp_path, **settings) as web, web.client("user") as client:
        answers = [await client.post("/v1/tools/list_collections") for _ in range(4)]
        async with web.client("admin") as other:
            unharmed = await other.post("/v1/tools/list_collections")
    assert [one.status_code for one in answers] == [200, 200, 200, 429]
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 60
    assert answers[-1].json()["error"].startswith("Rate limit exceeded: 3 calls a minute.")
    assert unharmed.status_code == 200


@pytest.mark.anyio
async def test_an_answer_over_the_limit_is_refused(tmp_path: Any) -> None:
    settings = {"limits__result_bytes": 1024}
    async with opened_web(tmp_path, **settings) as web, web.client() as client:
        answer = await client.post("/v1/tools/query_collection", json={"collection": "users"})
    assert answer.status_code == 413
    assert "Ask for fewer items or use a filter." in answer.json()["error"]


@pytest.mark.anyio
async def test_writes_that_are_off_are_forbidden(tmp_path: Any) -> None:
    async with opened_web(tmp_path, writes=False) as web, web.client() as client:
        answer = await client.post(
            "/v1/tools/create_document", content=json.dumps({"collection": "apps", "data": {}})
        )
    assert answer.status_code == 403
    assert answer.json() == {
        "error": "Write operations are disabled. Set MCP_ENABLE_WRITES=true to enable.",
        "success": False,
    }

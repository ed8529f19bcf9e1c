"""JSON-RPC 2.0 at /rpc, on a running server."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from tests.servers import Server

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND = -32700, -32600, -32601
ID_RULE = "id must be a string, a number of at most 64 bits or null."
JANE = {"collection": "users", "document_id": "abc123"}
NOBODY = {"collection": "users", "document_id": "nobody"}


@pytest.fixture(scope="module")
def admin(server: Server) -> Iterator[httpx2.Client]:
    with server.client() as client:
        yield client


def request(method: Any, params: Any = ..., **more: Any) -> dict[str, Any]:
    """A request without an id unless one is given."""
    given = {} if params is ... else {"params": params}
    return {"jsonrpc": "2.0", "method": method, **given, **more}


def rpc(client: httpx2.Client, message: Any, status: int = 200) -> Any:
    answer = client.post("/rpc", json=message)
    assert answer.status_code == status, answer.text
    return answer.json() if answer.content else None


# Single requests


def test_a_call_answers_with_the_tools_result(admin: httpx2.Client) -> None:
    answered = rpc(admin, request("get_document", JANE, id=1))
    assert list(answered) == ["jsonrpc", "id", "result"]
    assert (answered["jsonrpc"], answered["id"]) == ("2.0", 1)
    over_http = admin.post("/v1/tools/get_document", json=JANE).json()
    assert answered["result"] == over_http


def test_a_failure_is_an_error_with_the_tools_body(admin: httpx2.Client) -> None:
    answered = rpc(admin, request("get_document", NOBODY, id="a"))
    told = "Document nobody not found in users"
    assert answered == {
        "jsonrpc": "2.0",
        "id": "a",
        "error": {"code": -32200, "message": told, "data": {"error": told}},
    }


@pytest.mark.parametrize(
    ("method", "params", "code", "message"),
    [
        ("no_such_tool", {}, -32601, "Unknown tool: no_such_tool"),
        ("get_document", {"collection": "users"}, -32301, "document_id is required"),
        (
            "get_document",
            {"collection": "users", "document_id": 5},
            -32302,
            "document_id must be a string",
        ),
        (
            "get_document",
            {"collection": "X", "document_id": "a"},
            -32300,
            "Collection 'X' is not allowed",
        ),
        (
            "create_document",
            {**JANE, "data": {}},
            -32201,
            "Document abc123 already exists in users. "
            "Choose another document_id, or leave it out to have one made.",
        ),
    ],
)
def test_an_error_has_the_code_of_its_kind(
    admin: httpx2.Client, method: str, params: Any, code: int, message: str
) -> None:
    error = rpc(admin, request(method, params, id=1))["error"]
    assert (error["code"], error["message"]) == (code, message)


@pytest.mark.parametrize("id", [0, 1, -1, 2**53, "", "a", "日本", 1.5, None])
def test_the_id_comes_back_as_it_was(admin: httpx2.Client, id: Any) -> None:
    answered = rpc(admin, request("list_collections", id=id))
    assert answered["id"] == id
    assert type(answered["id"]) is type(id)
    assert "result" in answered


@pytest.mark.parametrize("params", [..., {}, None])
def test_params_may_be_left_out(admin: httpx2.Client, params: Any) -> None:
    assert len(rpc(admin, request("list_collections", params, id=1))["result"]["collections"]) == 12


@pytest.mark.parametrize("params", [[], ["users", "abc123"], "users", 5, True])
def test_params_are_named(admin: httpx2.Client, params: Any) -> None:
    error = rpc(admin, request("get_document", params, id=1))["error"]
    assert (error["code"], error["message"]) == (
        -32602,
        "params must be a JSON object of named values",
    )


def test_a_write_is_audited_under_rpc(server: Server, admin: httpx2.Client) -> None:
    message = request(
        "create_document", {"collection": "apps", "document_id": "rpc", "data": {}}, id=1
    )
    answer = admin.post("/rpc", json=message, headers={"X-Request-Id": "rpc-write"})
    assert answer.json()["result"] == {"id": "rpc", "success": True}
    [row] = server.audit_rows("rpc-write")
    assert (row["transport"], row["tool_name"], row["status"]) == (
        "rpc",
        "create_document",
        "success",
    )


# Notifications


def test_a_notification_is_carried_out_and_not_answered(admin: httpx2.Client) -> None:
    made = {"collection": "apps", "document_id": "told", "data": {}}
    answer = admin.post("/rpc", json=request("create_document", made))
    assert (answer.status_code, answer.content) == (204, b"")
    stored = admin.post(
        "/v1/tools/get_document", json={"collection": "apps", "document_id": "told"}
    )
    assert stored.status_code == 200


@pytest.mark.parametrize("method", ["no_such_tool", "get_document"])
def test_a_notification_that_fails_is_not_answered_either(
    server: Server, admin: httpx2.Client, method: str
) -> None:
    headers = {"X-Request-Id": f"told-{method}"}
    answer = admin.post("/rpc", json=request(method, NOBODY), headers=headers)
    assert (answer.status_code, answer.content) == (204, b"")
    [row] = server.audit_rows(f"told-{method}")
    assert (row["status"], row["error_type"]) == ("error", "not_found")


# Batches


def test_a_batch_is_answered_in_order(admin: httpx2.Client) -> None:
    batch = [
        request("list_collections", id=3),
        request("get_document", NOBODY, id="two"),
        request("describe_collection", {"collection_name": "users"}, id=None),
    ]
    answered = rpc(admin, batch)
    assert [one["id"] for one in answered] == [3, "two", None]
    assert ["result" in one for one in answered] == [True, False, True]


def test_a_mixed_batch_answers_requests_and_not_notifications(admin: httpx2.Client) -> None:
    batch = [
        request("list_collections"),
        request("list_collections", id=1),
        5,
        request("no_such_tool"),
        {"jsonrpc": "1.0", "method": "list_collections", "id": 2},
        request("no_such_tool", id=3),
    ]
    answered = rpc(admin, batch)
    assert [one["id"] for one in answered] == [1, None, None, 3]
    assert [one.get("error", {}).get("code") for one in answered] == [
        None,
        INVALID_REQUEST,
        INVALID_REQUEST,
        METHOD_NOT_FOUND,
    ]


def test_a_batch_of_notifications_is_not_answered(admin: httpx2.Client) -> None:
    answer = admin.post("/rpc", json=[request("list_collections")] * 3)
    assert (answer.status_code, answer.content) == (204, b"")


@pytest.mark.parametrize("size", [0, 101, 1000])
def test_a_batch_holds_one_to_a_hundred(admin: httpx2.Client, size: int) -> None:
    answered = rpc(admin, [request("list_collections", id=1)] * size)
    assert answered == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": INVALID_REQUEST, "message": "A batch holds 1 to 100 requests."},
    }


def test_a_batch_of_a_hundred_is_answered(server: Server, admin: httpx2.Client) -> None:
    batch = [request("list_collections", id=number) for number in range(100)]
    answer = admin.post("/rpc", json=batch, headers={"X-Request-Id": "a-hundred"})
    assert [one["id"] for one in answer.json()] == list(range(100))
    assert len(server.audit_rows("a-hundred", count=100)) == 100


def test_a_batch_inside_a_batch_is_no_request(admin: httpx2.Client) -> None:
    [answered] = rpc(admin, [[request("list_collections", id=1)]])
    assert answered["error"]["code"] == INVALID_REQUEST


# What is no request


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (5, "a request is an object."),
        ("list_collections", "a request is an object."),
        (None, "a request is an object."),
        ({}, 'jsonrpc must be "2.0".'),
        ({"jsonrpc": 2.0, "method": "list_collections", "id": 1}, 'jsonrpc must be "2.0".'),
        ({"jsonrpc": "2.0", "id": 1}, "method must be a string."),
        ({"jsonrpc": "2.0", "method": 5, "id": 1}, "method must be a string."),
        ({"jsonrpc": "2.0", "method": None, "id": 1}, "method must be a string."),
        (request("list_collections", id=True), ID_RULE),
        (request("list_collections", id=[1]), ID_RULE),
        (request("list_collections", id={}), ID_RULE),
    ],
)
def test_a_message_that_is_no_request_is_invalid(
    server: Server, admin: httpx2.Client, message: Any, problem: str
) -> None:
    answer = admin.post("/rpc", content=json.dumps(message))
    assert answer.status_code == 200
    assert answer.json() == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": INVALID_REQUEST, "message": f"Invalid Request: {problem}"},
    }
    [row] = server.audit_rows(answer.headers["x-request-id"])
    assert (row["tool_name"], row["rule"]) == ("(unreadable)", "unreadable")


@pytest.mark.parametrize("body", [b"{", b"\xff", b"[1,", b'{"a": NaN}', b"[" * 100_000])
def test_a_body_that_is_no_json_is_a_parse_error(
    server: Server, admin: httpx2.Client, body: bytes
) -> None:
    answer = admin.post("/rpc", content=body)
    assert answer.status_code == 200
    told = answer.json()
    assert (told["jsonrpc"], told["id"], told["error"]["code"]) == ("2.0", None, PARSE_ERROR)
    assert told["error"]["message"].startswith("Parse error: ")
    [row] = server.audit_rows(answer.headers["x-request-id"])
    assert (row["transport"], row["status"]) == ("rpc", "error")


@pytest.mark.parametrize("body", [b"", b"   "])
def test_an_empty_body_is_a_parse_error(admin: httpx2.Client, body: bytes) -> None:
    answer = admin.post("/rpc", content=body)
    assert answer.json()["error"]["code"] == PARSE_ERROR


def test_a_body_over_the_limit_is_too_large(server: Server, admin: httpx2.Client) -> None:
    answer = admin.post("/rpc", content=b"x" * (4 * 1024 * 1024 + 1))
    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == INVALID_REQUEST
    [row] = server.audit_rows(answer.headers["x-request-id"])
    assert row["error_type"] == "size_limit_exceeded"


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS"])
def test_only_post_is_possible(admin: httpx2.Client, method: str) -> None:
    answer = admin.request(method, "/rpc")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert answer.json()["error"]["message"] == "Use POST."


PROJECT = "00000000-0000-4000-a000-000000000001"


@pytest.mark.parametrize(
    ("tool", "params", "code"),
    [
        ("get_entity", {"projectId": PROJECT, "entityId": "x"}, -32302),
        ("get_entity", {"projectId": PROJECT, "entityId": 5}, -32302),
        ("get_entity", {"projectId": PROJECT}, -32301),
        ("list_search_performance", {"projectId": PROJECT, "dateEnd": "2025-02-30"}, -32302),
        ("list_quotable_blocks", {"projectId": PROJECT, "verifiedUntilAfter": "soon"}, -32302),
        ("generate_uuid", {"name": "a", "namespace": "b"}, -32302),
        ("search_entities", {"projectId": PROJECT, "page": 0}, -32300),
        ("search_entities", {"projectId": "x", "page": 0}, -32300),
    ],
)
def test_a_wrong_format_has_a_code_of_its_own(
    server: Server, tool: str, params: dict[str, Any], code: int
) -> None:
    with server.client() as admin:
        told = admin.post("/rpc", json=request(tool, params, id=1)).json()
    assert told["error"]["code"] == code


def test_of_a_name_that_stands_twice_the_last_counts(server: Server) -> None:
    twice = b'{"limit": 1, "limit": 2}'
    with server.client() as admin:
        plain = admin.post("/v1/tools/list_projects", content=twice).json()
        body = b'{"jsonrpc": "2.0", "id": 1, "method": "list_projects", "params": %b}' % twice
        rpc = admin.post("/rpc", content=body).json()["result"]
    assert plain["pagination"]["limit"] == rpc["pagination"]["limit"] == 2


# Who


@pytest.mark.parametrize("holder", ["user", "pm", "pa", "worker"])
def test_a_hidden_tool_answers_like_no_tool_at_all(server: Server, holder: str) -> None:
    with server.client(holder) as client:
        hidden = client.post("/rpc", json=request("get_document", JANE, id=1))
        unknown = client.post("/rpc", json=request("got_document", JANE, id=1))
    assert hidden.content == unknown.content.replace(b"got_", b"get_")
    assert hidden.json()["error"]["code"] == METHOD_NOT_FOUND


def test_in_a_batch_every_call_is_checked_by_itself(server: Server) -> None:
    batch = [request("list_collections", id=1), request("get_document", JANE, id=2)]
    with server.client("user") as client:
        first, second = client.post("/rpc", json=batch).json()
    assert "result" in first
    assert second["error"]["message"] == "Unknown tool: get_document"

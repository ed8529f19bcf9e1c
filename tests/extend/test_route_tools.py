"""Route tools: what the backend is asked, and what becomes of its answer."""

from typing import Any

import pytest
from tests.extend.conftest import Opened
from tests.extend.upstream import Upstream
from tests.gate.tools import PUBLIC, USER

from toolgate.extend.routes import failure_of
from toolgate.gate.principal import Kind, Principal, Role
from toolgate.outbound.responses import FetchedResponse
from toolgate.transports.mcp.listing import listed_tool

pytestmark = pytest.mark.anyio

TOOLS = """
- name: get_sponsorship
  description: Get sponsorship details by ID
  role: user
  path: sponsorship
  annotations: {title: Get sponsorship details, readOnlyHint: true, vendorHint: x}
  input_schema:
    type: object
    properties:
      id: {type: string, description: Sponsorship ID}
      filter: {type: object}
      full: {type: boolean}
      tags: {type: array, items: {type: string}}
    required: [id]
- name: make_item
  description: Make an item
  method: POST
  path: /items/{list}
  input_schema:
    type: object
    properties: {list: {type: string}, name: {type: string}, size: {type: integer}}
    required: [list, name]
- {name: drop_item, description: Drop it, method: DELETE, path: "items/{id}"}
- name: echo
  description: Echo
  path: echo
  role: public
  input_schema: {type: object, additionalProperties: true}
"""


def one(path: str, **more: Any) -> str:
    extra = "".join(f"  {key}: {value}\n" for key, value in more.items())
    return f"- name: it\n  description: It\n  path: {path}\n{extra}"


async def test_a_get_route_is_asked_with_a_query(opened: Opened, upstream: Upstream) -> None:
    async with opened(TOOLS) as kit:
        outcome = await kit.call(
            "get_sponsorship", USER, id="a b&c", filter={"x": [1]}, full=True, tags=["p", "q"]
        )
    query = {"id": "a b&c", "filter": '{"x": [1]}', "full": "true", "tags": '["p", "q"]'}
    assert outcome.status == 200
    assert outcome.body == {
        "method": "GET",
        "path": "/api/sponsorship",
        "query": query,
        "body": None,
    }


async def test_other_methods_send_a_body_without_what_is_in_the_path(opened: Opened) -> None:
    async with opened(TOOLS) as kit:
        outcome = await kit.call("make_item", list="a?b#c é", name="N", size=2**70)
        rows = await kit.audit_rows()
    assert outcome.body["method"] == "POST"
    assert outcome.body["path"] == "/api/items/a?b#c é"
    assert outcome.body["query"] == {}
    assert outcome.body["body"] == {"name": "N", "size": 2**70}
    assert [(row["tool_name"], row["status"]) for row in rows] == [("make_item", "success")]


async def test_delete_takes_its_argument_from_the_path(opened: Opened) -> None:
    async with opened(TOOLS) as kit:
        outcome = await kit.call("drop_item", id="7")
    assert outcome.body == {"method": "DELETE", "path": "/api/items/7", "query": {}, "body": None}


async def test_effects_and_hints_come_from_method_and_annotations(opened: Opened) -> None:
    async with opened(TOOLS) as kit:
        tools = {tool.name: tool for tool in kit.app.gate.catalogue}
    assert [tools[name].effect for name in ("get_sponsorship", "make_item", "drop_item")] == [
        "read",
        "write",
        "destroy",
    ]
    assert tools["make_item"].role is Role.ADMIN
    assert tools["get_sponsorship"].annotations == {
        "title": "Get sponsorship details",
        "readOnlyHint": True,
        "vendorHint": "x",
    }
    assert tools["make_item"].annotations == {"title": tools["make_item"].title}
    assert tools["drop_item"].annotations == {
        "title": tools["drop_item"].title,
        "destructiveHint": True,
    }


async def test_further_fields_of_mcp_are_passed_on(opened: Opened) -> None:
    text = one("echo", _meta="{a.example/x: 1}", icons="[{src: 'https://a.example/i.png'}]")
    async with opened(text) as kit:
        tool = kit.app.gate.catalogue.find("it")
        assert tool is not None
        listed = listed_tool(tool, underscores=False)
    assert listed["_meta"] == {"a.example/x": 1}
    assert listed["icons"] == [{"src": "https://a.example/i.png"}]


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (400, b"Admin required.\n", "Admin required."),
        (400, b'{"error": {"code": 7, "message": "No such plan."}}', "No such plan."),
        (409, b'{"message": "Taken."}', "Taken."),
        (400, b"<html>no</html>", "The route of it refused the call (400)."),
        (400, b"x" * 501, "The route of it refused the call (400)."),
        (500, b"psycopg: password", "The route of it failed (500)."),
    ],
)
def test_the_words_of_a_refusal_are_found(status: int, body: bytes, told: str) -> None:
    assert str(failure_of("it", FetchedResponse("", status, {}, body))) == told


@pytest.mark.parametrize(
    ("hints", "effect"),
    [
        ("{readOnlyHint: true}", "read"),
        ("{destructiveHint: true}", "destroy"),
        ("{readOnlyHint: false}", "write"),
        ("{idempotentHint: true}", "read"),
    ],
)
async def test_a_hint_decides_the_effect(opened: Opened, hints: str, effect: str) -> None:
    async with opened(one("echo", annotations=hints)) as kit:
        tool = kit.app.gate.catalogue.find("it")
        assert tool is not None
        assert tool.effect == effect


async def test_every_problem_of_the_arguments_is_told(opened: Opened, upstream: Upstream) -> None:
    async with opened(TOOLS) as kit:
        outcome = await kit.call("make_item", nam="x", size="big")
    assert outcome.status == 400
    told = outcome.body["error"]
    assert "list is required" in told
    assert "name is required" in told
    assert "size must be an integer" in told
    assert "Unknown argument 'nam'. Did you mean 'name'?" in told
    assert upstream.requests == []


async def test_a_hidden_tool_is_unknown(opened: Opened, upstream: Upstream) -> None:
    async with opened(TOOLS) as kit:
        outcome = await kit.call("get_sponsorship", PUBLIC, id="x")
    assert outcome.body == {"error": "Unknown tool: get_sponsorship"}
    assert upstream.requests == []


@pytest.mark.parametrize(
    ("path", "status", "told"),
    [
        ("status/404", 404, "the backend says 404"),
        ("status/422", 422, "the backend says 422"),
        ("status/401", 403, "The backend refused (401): the backend says 401"),
        ("status/500", 502, "the backend says 500"),
        ("status/503", 503, "the backend says 503"),
        ("status/409/quiet", 409, "The route of it refused the call (409)."),
        ("status/500/quiet", 502, "The route of it failed (500)."),
        ("trace", 502, "The route of it failed (500)."),
        ("moved", 502, "The route of it answered 302, which is not followed."),
        ("text", 502, "The route of it answered something other than JSON."),
        ("zipped", 502, "The route of it answered in an encoding nobody asked for."),
    ],
)
async def test_a_failure_is_told_in_a_sentence(
    opened: Opened, path: str, status: int, told: str
) -> None:
    async with opened(one(path)) as kit:
        outcome = await kit.call("it")
        rows = await kit.audit_rows()
    assert outcome.status == status
    assert outcome.body == {"error": told}
    assert outcome.text == told
    assert rows[0]["error_type"] == "route_failed"


async def test_an_answer_is_bounded(opened: Opened) -> None:
    async with opened(one("huge"), limits__result_bytes=2048) as kit:
        outcome = await kit.call("it")
    assert outcome.status == 413
    assert outcome.body["error"].startswith("The route of it answered more than 2048 bytes.")


async def test_a_route_that_takes_too_long_is_left(opened: Opened) -> None:
    async with opened(one("slow", method="POST"), extend__seconds=0.2) as kit:
        outcome = await kit.call("it")
        rows = await kit.audit_rows()
    assert outcome.status == 504
    told = "The route of it did not answer within 0.2 s. Try again later."
    assert outcome.body == {"error": told}
    assert [(row["status"], row["error_type"]) for row in rows] == [("error", "timeout")]


async def test_answers_of_any_json_pass(opened: Opened) -> None:
    async with opened(one("list")) as kit:
        assert (await kit.call("it")).body == [1, 2]


async def test_no_body_is_an_empty_object(opened: Opened) -> None:
    async with opened(one("empty")) as kit:
        assert (await kit.call("it")).body == {}


async def test_a_route_that_is_not_there_is_unavailable(
    opened: Opened, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(one("http://127.0.0.1:1/x")) as kit:
        outcome = await kit.call("it")
    assert outcome.status == 503
    assert outcome.body == {"error": "The route of it cannot be reached. Try again later."}
    assert "it failed: ConnectError (request id test)" in caplog.text


async def test_an_answer_must_be_what_was_promised(opened: Opened) -> None:
    promise = "{type: object, properties: {method: {type: integer}}, required: [method]}"
    async with opened(one("echo", output_schema=promise)) as kit:
        outcome = await kit.call("it")
        tool = kit.app.gate.catalogue.find("it")
    assert outcome.status == 502
    assert outcome.body["error"] == (
        "it answered what its output_schema does not allow: method must be an integer."
    )
    assert tool is not None
    assert tool.output_schema["required"] == ["method"]


# Identity


PERSON = Principal(kind=Kind.USER, id="k1", roles=frozenset({Role.USER}), user_id="ü%\r\n:x")


async def asked(
    opened: Opened, upstream: Upstream, path: str = "echo", **settings: Any
) -> dict[str, str]:
    async with opened(one(path, role="public"), **settings) as kit:
        assert (await kit.call("it", PERSON)).status == 200
    return upstream.requests[-1]["headers"]


async def test_the_backend_is_told_who_calls(opened: Opened, upstream: Upstream) -> None:
    headers = await asked(opened, upstream)
    assert headers["x-toolgate-user"] == "%C3%BC%25%0D%0A:x"
    assert headers["x-toolgate-roles"] == "user"
    assert headers["x-request-id"] == "test"
    assert "authorization" not in headers


async def test_with_a_key_the_backend_gets_it(opened: Opened, upstream: Upstream) -> None:
    headers = await asked(opened, upstream, extend__identity="key", extend__key="s3cret")
    assert headers["authorization"] == "Bearer s3cret"
    assert headers["x-toolgate-roles"] == "user"


async def test_nothing_is_told_where_nothing_is_wanted(opened: Opened, upstream: Upstream) -> None:
    headers = await asked(opened, upstream, extend__identity="none")
    assert not {"x-toolgate-user", "x-toolgate-roles", "x-request-id"} & headers.keys()


async def test_a_foreign_host_gets_the_request_id_only(opened: Opened, upstream: Upstream) -> None:
    settings = {"extend__identity": "key", "extend__key": "s3cret"}
    foreign = await asked(
        opened, upstream, f"{upstream.url}/echo", extend__base_url="http://localhost:1", **settings
    )
    assert foreign["x-request-id"] == "test"
    assert not {"x-toolgate-user", "x-toolgate-roles", "authorization"} & foreign.keys()
    own = await asked(opened, upstream, f"{upstream.url}/echo", **settings)
    assert own["authorization"] == "Bearer s3cret"


async def test_what_a_route_sets_as_a_cookie_is_kept_for_nobody(
    opened: Opened, upstream: Upstream
) -> None:
    async with opened(one("echo")) as kit:
        await kit.call("it")
        await kit.call("it")
    assert len(upstream.requests) == 2
    assert "cookie" not in upstream.requests[-1]["headers"]


# Writes


async def test_a_dry_run_asks_nobody(opened: Opened, upstream: Upstream) -> None:
    async with opened(TOOLS) as kit:
        outcome = await kit.call("make_item", list="a", name="b", dry_run=True)
    assert outcome.status == 403
    assert "dry run" in outcome.body["error"]
    assert upstream.requests == []


async def test_a_read_only_gate_asks_nobody_to_write(opened: Opened, upstream: Upstream) -> None:
    async with opened(TOOLS, policy__read_only=True) as kit:
        assert (await kit.call("make_item", list="a", name="b")).status == 403
        assert (await kit.call("echo")).status == 200
    assert [one["path"] for one in upstream.requests] == ["/api/echo"]


# Replacing


async def test_a_tool_with_a_built_in_name_replaces_it(opened: Opened) -> None:
    text = one("echo").replace("name: it", "name: get_document")
    async with opened(text) as kit:
        catalogue = kit.app.gate.catalogue
        assert list(catalogue.replaced) == ["get_document"]
        assert catalogue.replaced["get_document"].pack.name == "appdata"
        assert [tool.name for tool in catalogue].count("get_document") == 1
        assert (await kit.call("get_document")).body["path"] == "/api/echo"

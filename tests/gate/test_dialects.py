"""Five dialects: how each words success and failure, through the whole gate."""

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import Field
from tests.gate.tools import PACKS, PUBLIC, Run, Said, a_tool, answering, offer, raising

from toolgate.gate.dialects import RPC_NAMES
from toolgate.gate.errors import (
    Conflict,
    Forbidden,
    ForgeUnavailable,
    GateError,
    Gone,
    Internal,
    InvalidArguments,
    InvalidParams,
    MethodNotAllowed,
    NotFound,
    OutcomeUnknown,
    PolicyViolation,
    Problem,
    QuotaExceeded,
    RateLimited,
    ResultTooLarge,
    RouteFailed,
    StoppedWrite,
    TimedOut,
    TokenExpired,
    TooLarge,
    ToolDisabled,
    Unauthenticated,
    Unavailable,
    UnknownTool,
    UnsupportedMediaType,
    WritesOff,
)
from toolgate.gate.outcomes import Outcome
from toolgate.gate.tool import Effect, Input, Output
from toolgate.ports.documents import StoreUnavailable
from toolgate.testing import opened_kit

pytestmark = pytest.mark.anyio

DIALECTS = list(PACKS)
SECRET = "hunter2-in-the-cause"
WRONG = Problem("size", "type", "size must be an integer", "big", "Write a number.")


@dataclass(frozen=True)
class Expected:
    """What an error is called where."""

    error: GateError
    message: str
    kind: str
    status: int
    code: str
    rpc: int


EVERY_ERROR = [
    Expected(
        InvalidArguments([WRONG]),
        "size must be an integer",
        "invalid_arguments",
        400,
        "BAD_REQUEST",
        -32302,
    ),
    Expected(
        InvalidParams(),
        "params must be a JSON object of named values",
        "invalid_arguments",
        400,
        "BAD_REQUEST",
        -32602,
    ),
    Expected(TooLarge("Too big."), "Too big.", "size_limit_exceeded", 413, "BAD_REQUEST", -32300),
    Expected(
        MethodNotAllowed("PUT", "GET"),
        "PUT is not possible here. Use GET.",
        "method_not_allowed",
        405,
        "BAD_REQUEST",
        -32600,
    ),
    Expected(
        UnsupportedMediaType("Not JSON."),
        "Not JSON.",
        "unsupported_media_type",
        415,
        "BAD_REQUEST",
        -32600,
    ),
    Expected(UnknownTool("x"), "Unknown tool: x", "not_found", 404, "NOT_FOUND", -32601),
    Expected(Unauthenticated("Who?"), "Who?", "unauthenticated", 401, "UNAUTHORIZED", -32100),
    Expected(TokenExpired("Late."), "Late.", "token_expired", 401, "UNAUTHORIZED", -32102),
    Expected(Gone("Deleted."), "Deleted.", "gone", 410, "NOT_FOUND", -32202),
    Expected(QuotaExceeded("Used up."), "Used up.", "quota_exceeded", 409, "CONFLICT", -32401),
    Expected(ForgeUnavailable("Down."), "Down.", "forge_unavailable", 503, "SERVER_ERROR", -32501),
    Expected(
        WritesOff("/page", "read-only-gate"),
        "Nothing is changed at /page now: changes are switched off by an operator. "
        "Try again later.",
        "unavailable",
        503,
        "SERVER_ERROR",
        -32500,
    ),
    Expected(RouteFailed("Bad day."), "Bad day.", "route_failed", 502, "SERVER_ERROR", -32500),
    Expected(Forbidden("Not you."), "Not you.", "access_denied", 403, "FORBIDDEN", -32101),
    Expected(
        ToolDisabled("put"),
        "put is switched off by an operator.",
        "tool_disabled",
        403,
        "FORBIDDEN",
        -32101,
    ),
    Expected(
        PolicyViolation("Not this."), "Not this.", "policy_violation", 400, "BAD_REQUEST", -32101
    ),
    Expected(NotFound("Not there."), "Not there.", "not_found", 404, "NOT_FOUND", -32200),
    Expected(Conflict("Twice."), "Twice.", "conflict", 409, "CONFLICT", -32201),
    Expected(ResultTooLarge("Long."), "Long.", "size_limit_exceeded", 413, "BAD_REQUEST", -32300),
    Expected(RateLimited("Slower.", 7), "Slower.", "rate_limited", 429, "RATE_LIMITED", -32400),
    Expected(TimedOut("Too slow."), "Too slow.", "timeout", 504, "SERVER_ERROR", -32502),
    Expected(
        OutcomeUnknown("put", "r1"),
        "The database did not confirm what put wrote: it may or may not be stored. "
        "Check before retrying. Audit id: r1",
        "outcome_unknown",
        504,
        "SERVER_ERROR",
        -32502,
    ),
    Expected(
        StoppedWrite("mail", "r1"),
        "mail took too long and was stopped: what it does may have been done. "
        "Check before retrying. Audit id: r1",
        "timeout",
        504,
        "SERVER_ERROR",
        -32502,
    ),
    Expected(Unavailable("Gone."), "Gone.", "unavailable", 503, "SERVER_ERROR", -32500),
    Expected(
        Internal("r1"),
        "Something went wrong on our side. Request id: r1",
        "internal_error",
        500,
        "SERVER_ERROR",
        -32603,
    ),
]


def appdata(one: Expected, write: bool) -> dict[str, Any]:
    return {"error": one.message, "success": False} if write else {"error": one.message}


def backend(one: Expected, write: bool) -> dict[str, Any]:
    return {"error": one.message}


def orchestrator(one: Expected, write: bool) -> dict[str, Any]:
    error: dict[str, Any] = {"type": one.kind, "message": one.message}
    if isinstance(one.error, InvalidArguments):
        [problem] = one.error.problems
        error["details"] = {"fields": {problem.field: problem.message}}
    return {"status": "error", "error": error}


def content(one: Expected, write: bool) -> dict[str, Any]:
    return {"error": {"code": one.code, "message": one.message}}


def network(one: Expected, write: bool) -> dict[str, Any]:
    data: dict[str, Any] = {"reason": one.message, "suggestion": one.error.next_step}
    if isinstance(one.error, InvalidParams):
        data = {"field": "params", "value": None, "reason": one.message}
        data["suggestion"] = "Correct params, and call again."
    elif isinstance(one.error, InvalidArguments):
        data = {
            "field": "size",
            "value": "big",
            "reason": "size must be an integer",
            "suggestion": "Write a number.",
        }
    elif isinstance(one.error, RateLimited):
        data |= {"suggestion": "Wait 7 seconds, and call again.", "retryAfter": 7}
    if one.rpc in RPC_NAMES:
        data["name"] = RPC_NAMES[one.rpc]
    return {"code": one.rpc, "message": one.message, "data": data}


WORDING: dict[str, Callable[[Expected, bool], dict[str, Any]]] = {
    "appdata": appdata,
    "backend": backend,
    "orchestrator": orchestrator,
    "content": content,
    "network": network,
}


async def outcome_of(
    folder: Path,
    pack: str,
    run: Run,
    *,
    effect: Effect = Effect.READ,
    gives: type[Output] = Said,
    takes: type[Input] | None = None,
    **arguments: Any,
) -> Outcome:
    """One call of a tool that does this, in a gate of its own."""
    takes = takes or NoArguments
    tool = a_tool(f"{pack}.tried", run, pack=pack, effect=effect, gives=gives, takes=takes)
    async with opened_kit(folder, writes=True, plugins=offer(tool)) as kit:
        return await kit.call(tool.name, **arguments)


class NoArguments(Input):
    """None."""


@pytest.mark.parametrize("write", [False, True], ids=["read", "write"])
@pytest.mark.parametrize("pack", DIALECTS)
async def test_every_error_is_worded_as_its_pack_says(
    tmp_path: Path, pack: str, write: bool
) -> None:
    tools = [
        a_tool(
            f"fails.n{number}",
            raising(one.error),
            pack=pack,
            effect=Effect.WRITE if write else Effect.READ,
        )
        for number, one in enumerate(EVERY_ERROR)
    ]
    async with opened_kit(tmp_path, writes=True, plugins=offer(*tools)) as kit:
        for tool, one in zip(tools, EVERY_ERROR, strict=True):
            outcome = await kit.call(tool.name)
            assert outcome.body == WORDING[pack](one, write)
            assert outcome.status == one.status
            assert json.loads(outcome.raw) == outcome.body
        rows = await kit.audit_rows()
        assert [row["error_type"] for row in rows] == [one.kind for one in EVERY_ERROR]


def test_no_error_class_is_forgotten_here() -> None:
    tried = {type(one.error) for one in EVERY_ERROR}
    direct = set(GateError.__subclasses__())
    every = direct.union(*(one.__subclasses__() for one in direct))
    # Those of a pack are words for its own tools alone.
    assert {one for one in every if one.__module__ == GateError.__module__} == tried


@pytest.mark.parametrize(
    ("pack", "body"),
    [
        ("appdata", {"error": "No.", "available": ["a"], "success": False}),
        ("backend", {"error": "No.", "available": ["a"]}),
        (
            "orchestrator",
            {
                "status": "error",
                "error": {
                    "type": "not_found",
                    "message": "No.",
                    "details": {"available": ["a"]},
                },
            },
        ),
        ("content", {"error": {"code": "NOT_FOUND", "message": "No."}}),
        (
            "network",
            {
                "code": -32200,
                "message": "No.",
                "data": {
                    "reason": "No.",
                    "suggestion": "Check the names and ids in the arguments.",
                    "name": "NOT_FOUND",
                    "available": ["a"],
                },
            },
        ),
    ],
)
async def test_further_keys_of_an_error_go_where_the_pack_puts_them(
    tmp_path: Path, pack: str, body: dict[str, Any]
) -> None:
    failing = raising(NotFound("No.", available=["a"]))
    outcome = await outcome_of(tmp_path, pack, failing, effect=Effect.WRITE)
    assert outcome.body == body


@pytest.mark.parametrize("pack", DIALECTS)
async def test_mcp_text_is_the_body_except_where_the_pack_speaks_in_sentences(
    tmp_path: Path, pack: str
) -> None:
    outcome = await outcome_of(tmp_path, pack, raising(Conflict("It is there already.")))
    plain = pack == "backend"
    assert outcome.text == ("It is there already." if plain else outcome.raw.decode())


class Place(Output):
    """Somewhere."""

    city: str
    zip: int = 0


class Person(Output):
    """Somebody, somewhere."""

    name: str
    lives: Place
    knows: list["Person"] = Field(default=[])


ANN = Person(name="Ann", lives=Place(city="Köln"), knows=[Person(name="Bo", lives=Place(city="x"))])
ANN_JSON = {
    "name": "Ann",
    "lives": {"city": "Köln"},
    "knows": [{"name": "Bo", "lives": {"city": "x"}}],
}


async def ann(ctx: Any, args: Any) -> Person:
    return ANN


@pytest.mark.parametrize(
    ("pack", "body"),
    [
        ("appdata", ANN_JSON),
        ("backend", ANN_JSON),
        ("orchestrator", {"status": "success", "result": ANN_JSON}),
        ("content", {"data": ANN_JSON}),
        ("network", ANN_JSON),
    ],
)
async def test_an_answer_is_wrapped_as_its_pack_says_and_fits_the_tools_schema(
    tmp_path: Path, pack: str, body: dict[str, Any]
) -> None:
    outcome = await outcome_of(tmp_path, pack, ann, gives=Person)
    assert (outcome.status, outcome.body) == (200, body)
    schema = a_tool("x", ann, pack=pack, gives=Person).output_schema
    jsonschema.validators.validator_for(schema).check_schema(schema)
    jsonschema.validate(outcome.body, schema)


HOLED = {**ANN_JSON, "knows": [{"name": "Bo", "lives": {}}]}


@pytest.mark.parametrize(
    ("gives", "holed", "told"),
    [
        (Person, HOLED, "'city' is a required property"),
        (Place, {"city": 5}, "5 is not of type 'string'"),
    ],
)
@pytest.mark.parametrize("pack", DIALECTS)
def test_a_schema_refuses_an_answer_with_a_hole_in_it(
    pack: str, gives: type[Output], holed: dict[str, Any], told: str
) -> None:
    tool = a_tool("x", ann, pack=pack, gives=gives)
    with pytest.raises(jsonschema.ValidationError, match=told):
        jsonschema.validate(tool.pack.dialect.success(holed), tool.output_schema)


@pytest.mark.parametrize("pack", ["orchestrator", "content"])
def test_a_wrapping_schema_refuses_the_bare_answer(pack: str) -> None:
    schema = a_tool("x", ann, pack=pack, gives=Person).output_schema
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(ANN_JSON, schema)


class Pagination(Output):
    """Where in the list."""

    page: int
    limit: int
    total: int
    hasMore: bool


class Page(Output):
    """One page of a list."""

    data: list[Place]
    pagination: Pagination


async def first_page(ctx: Any, args: Any) -> Page:
    return Page(
        data=[Place(city="a"), Place(city="b")],
        pagination=Pagination(page=1, limit=2, total=3, hasMore=True),
    )


async def test_a_page_of_content_keeps_its_own_envelope(tmp_path: Path) -> None:
    outcome = await outcome_of(tmp_path, "content", first_page, gives=Page)
    assert outcome.body == {
        "data": [{"city": "a"}, {"city": "b"}],
        "pagination": {"page": 1, "limit": 2, "total": 3, "hasMore": True},
    }
    jsonschema.validate(outcome.body, a_tool("x", pack="content", gives=Page).output_schema)


class Sized(Input):
    """Something of a size."""

    name: str
    size: int


@pytest.mark.parametrize(
    ("arguments", "code", "data"),
    [
        ({"size": 1}, -32301, {"field": "name", "value": None, "reason": "name is required"}),
        (
            {"name": "n", "size": "big"},
            -32302,
            {"field": "size", "value": "big", "reason": "size must be an integer"},
        ),
        (
            {"name": "n", "size": 2**80 + 0.5},
            -32302,
            {"field": "size", "value": float(2**80), "reason": "size must be an integer"},
        ),
        (
            {"name": "n", "size": 1, "siez": 2},
            -32300,
            {
                "field": "siez",
                "value": None,
                "reason": "Unknown argument 'siez'. Did you mean 'size'? "
                "Valid arguments: name, size.",
                "suggestion": "Did you mean 'size'?",
            },
        ),
    ],
    ids=["missing", "format", "huge", "unknown"],
)
async def test_network_names_the_first_wrong_field_under_the_code_of_its_rule(
    tmp_path: Path, arguments: dict[str, Any], code: int, data: dict[str, Any]
) -> None:
    outcome = await outcome_of(tmp_path, "network", answering(), takes=Sized, **arguments)
    told = {"suggestion": f"Correct {data['field']}, and call again.", **data}
    told["name"] = RPC_NAMES[code]
    assert (outcome.body["code"], outcome.body["data"]) == (code, told)


async def test_network_answers_a_number_too_large_for_json_without_repeating_it(
    tmp_path: Path,
) -> None:
    arguments: dict[str, Any] = {"name": 2**80, "size": 1}
    outcome = await outcome_of(tmp_path, "network", answering(), takes=Sized, **arguments)
    assert outcome.body["data"] == {
        "field": "name",
        "value": None,
        "reason": "name must be a string",
        "suggestion": "Correct name, and call again.",
        "name": "INVALID_FORMAT",
    }


async def test_network_words_a_refusal_without_single_problems(tmp_path: Path) -> None:
    outcome = await outcome_of(tmp_path, "network", raising(InvalidArguments([])))
    assert outcome.body["data"]["suggestion"] == "Correct the arguments, and call again."
    assert outcome.status == 400


async def test_a_failure_that_belongs_to_no_pack_is_a_plain_sentence(tmp_path: Path) -> None:
    async with opened_kit(tmp_path) as kit:
        outcome = await kit.call("no.such.tool", PUBLIC)
    assert outcome.body == {"error": "Unknown tool: no.such.tool"}
    assert (outcome.status, outcome.text) == (404, "Unknown tool: no.such.tool")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (NotFound("Not there."), "not_found"),
        (StoreUnavailable("The store does not answer."), "unavailable"),
        (RuntimeError(f"{SECRET} in the message"), "internal_error"),
        (KeyError(SECRET), "internal_error"),
    ],
    ids=["told", "store", "defect", "key"],
)
@pytest.mark.parametrize("pack", DIALECTS)
async def test_a_cause_goes_to_the_log_and_never_to_the_caller(
    tmp_path: Path, pack: str, error: Exception, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    failing = raising(error, cause=ValueError(SECRET))
    outcome = await outcome_of(tmp_path, pack, failing, effect=Effect.WRITE)
    assert outcome.error_type == kind
    assert SECRET not in outcome.raw.decode() + outcome.text
    assert SECRET in caplog.text
    assert "test: " in caplog.text  # the request id leads from the answer to the log

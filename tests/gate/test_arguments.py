"""From raw arguments to typed ones: every problem at once, in plain words."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import anyio.from_thread
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError
from sqlalchemy import func, select
from tests.effort import effort
from tests.gate.tools import a_tool, offer

from toolgate import packs
from toolgate.db.tables import documents
from toolgate.gate.arguments import MAX_ARGUMENTS, MAX_PROBLEMS, TOLD, parse
from toolgate.gate.catalogue import AnyTool
from toolgate.gate.errors import InvalidArguments, Problem
from toolgate.gate.tool import Input, NoArguments
from toolgate.ports.documents import Operator
from toolgate.testing import Kit, opened_kit

SHIPPED = [tool for pack in packs.offers() for tool in pack.tools]


class Part(Input):
    name: str
    value: int = Field(ge=1, le=9)


class Thing(Input):
    """One field for every rule."""

    title: str = Field(min_length=1, max_length=5)
    code: str = Field(default="abc", min_length=3)
    note: str = Field(default="none", min_length=1)
    count: int = Field(default=1, gt=0, lt=10)
    ratio: float = 0.5
    open: bool = False
    colour: Literal["red", "blue"] = "red"
    size: Literal["s", "m"] = "s"
    parts: list[Part] = Field(default=[], min_length=0, max_length=2)
    tags: list[str] = Field(default=["x"], min_length=1)
    extra: dict[str, Any] = Field(default={})


class Either(Input):
    """A rule about two fields."""

    id: str | None = None
    slug: str | None = None

    @model_validator(mode="after")
    def _one(self) -> "Either":
        if (self.id is None) == (self.slug is None):
            raise PydanticCustomError(TOLD, "exactly one of id and slug must be given")
        if self.slug == "":
            raise ValueError("slug is empty")
        return self


def problems(arguments: Any, takes: type[Input] = Thing) -> tuple[Problem, ...]:
    with pytest.raises(InvalidArguments) as refused:
        parse(a_tool("x", takes=takes), arguments)
    return refused.value.problems


def told(arguments: Any, takes: type[Input] = Thing) -> list[str]:
    return [one.message for one in problems(arguments, takes)]


@pytest.mark.parametrize("arguments", [{}, {"id": "a", "slug": "b"}], ids=["none", "both"])
def test_a_rule_about_several_arguments_is_told_in_its_own_words(arguments: Any) -> None:
    (problem,) = problems(arguments, Either)
    assert (problem.field, problem.rule) == ("arguments", "value")
    assert problem.message == "exactly one of id and slug must be given"


def test_a_plain_error_of_such_a_rule_names_the_arguments() -> None:
    assert told({"slug": ""}, Either) == ["arguments is not valid: slug is empty"]


def test_good_arguments_become_the_tools_input() -> None:
    thing = parse(a_tool("x", takes=Thing), {"title": "t", "parts": [{"name": "n", "value": 1}]})
    assert thing == Thing(title="t", parts=[Part(name="n", value=1)])


@pytest.mark.parametrize("arguments", [None, {}])
def test_no_arguments_at_all_are_an_empty_object(arguments: Any) -> None:
    assert parse(a_tool("x", takes=NoArguments), arguments) == NoArguments()


@pytest.mark.parametrize("arguments", [[], "text", 5, True, ["title"], 1.5])
def test_arguments_that_are_no_object_are_refused(arguments: Any) -> None:
    assert told(arguments) == ["arguments must be a JSON object of named values"]


@pytest.mark.parametrize(
    ("wrong", "message", "rule"),
    [
        ({"title": 5}, "title must be a string", "type"),
        ({"title": None}, "title must be a string", "type"),
        ({"title": ""}, "title is required", "missing"),
        ({"title": "too long"}, "title must have at most 5 characters", "range"),
        ({"code": "a"}, "code must have at least 3 characters", "range"),
        ({"note": ""}, "note must not be empty", "range"),
        ({"count": "3"}, "count must be an integer", "type"),
        ({"count": 1.5}, "count must be an integer", "type"),
        ({"count": True}, "count must be an integer", "type"),
        ({"count": 0}, "count must be greater than 0", "range"),
        ({"count": 10}, "count must be less than 10", "range"),
        ({"ratio": "0.5"}, "ratio must be a number", "type"),
        ({"open": 1}, "open must be true or false", "type"),
        ({"size": "xl"}, "size must be one of: 's' or 'm'", "value"),
        ({"colour": 5}, "colour must be one of: 'red' or 'blue'", "value"),
        ({"parts": {}}, "parts must be a list", "type"),
        ({"parts": [5]}, "parts[0] must be an object", "type"),
        ({"tags": []}, "tags must have at least 1 item", "range"),
        ({"extra": []}, "extra must be an object", "type"),
        ({"parts": [{"name": "n", "value": 0}]}, "parts[0].value must be at least 1", "range"),
        ({"parts": [{"name": "n", "value": 10}]}, "parts[0].value must be at most 9", "range"),
        ({"parts": [{"name": "n"}]}, "parts[0].value is required", "missing"),
        (
            {"parts": [{"name": "n", "value": 1}] * 3},
            "parts must have at most 2 items",
            "range",
        ),
    ],
)
def test_each_rule_has_its_sentence(wrong: dict[str, Any], message: str, rule: str) -> None:
    (problem,) = problems({"title": "t", **wrong})
    assert (problem.message, problem.rule) == (message, rule)
    assert problem.field == message.split()[0]


@pytest.mark.parametrize("name", [name for name in Thing.model_fields if name != "title"])
def test_an_optional_argument_that_is_null_was_not_given(name: str) -> None:
    tool = a_tool("x", takes=Thing)
    assert getattr(parse(tool, {"title": "t", name: None}), name) in (
        getattr(parse(tool, {"title": "t"}), name),
        None,
    )


def test_nulls_beside_what_is_wrong_are_not_reported() -> None:
    assert told({"title": "t", "count": None, "open": 1}) == ["open must be true or false"]


def test_a_missing_argument_is_required() -> None:
    (problem,) = problems({})
    assert problem == Problem("title", "missing", "title is required")


def test_an_unknown_argument_is_told_the_nearest_and_all_valid_ones() -> None:
    (problem,) = problems({"title": "t", "colur": "red"})
    valid = (
        "Valid arguments: title, code, note, count, ratio, open, colour, size, parts, tags, extra."
    )
    assert problem.message == f"Unknown argument 'colur'. Did you mean 'colour'? {valid}"
    assert problem.suggestion == "Did you mean 'colour'?"


def test_an_unknown_argument_without_a_near_one_is_told_all_valid_ones() -> None:
    (message,) = told({"name": "n", "value": 1, "zzzzzz": 1}, Part)
    assert message == "Unknown argument 'zzzzzz'. Valid arguments: name, value."


def test_an_argument_is_called_by_its_alias() -> None:
    class Renamed(Input):
        copy_contact: int = Field(default=1, alias="copy")

    expected = "Unknown argument 'cpy'. Did you mean 'copy'? Valid arguments: copy."
    assert told({"cpy": 1}, Renamed) == [expected]
    parsed = parse(a_tool("x", takes=Renamed), {"copy": None})
    assert isinstance(parsed, Renamed)
    assert parsed.copy_contact == 1


def test_a_tool_without_arguments_says_so() -> None:
    assert told({"x": 1}, NoArguments) == ["Unknown argument 'x'. This tool takes none."]


def test_every_problem_is_told_at_once_with_its_path() -> None:
    wrong = {
        "code": 5,
        "count": "many",
        "parts": [{"name": "n", "value": 1}, {"name": 1, "value": 99, "typo": 1}],
        "colr": "red",
    }
    assert {one.field for one in problems(wrong)} == {
        "title",
        "code",
        "count",
        "parts[1].name",
        "parts[1].value",
        "parts[1].typo",
        "colr",
    }


def test_a_long_value_is_cut_when_it_is_told_back() -> None:
    (problem,) = problems({"title": "t", "count": "9" * 5000})
    assert problem.value == "9" * 100 + "…"


@pytest.mark.parametrize("value", [{"a": 1}, [1], 2**64, -(2**70)])
def test_a_value_that_json_or_a_reader_cannot_bear_is_not_told_back(value: Any) -> None:
    (problem,) = problems({"title": "t", "open": value})
    assert problem.value is None


def test_many_wrong_arguments_are_answered_shortly() -> None:
    wrong = {f"unknown-{number}-{'x' * 300}": 1 for number in range(MAX_ARGUMENTS)}
    found = problems(wrong)
    assert len(found) == MAX_PROBLEMS + 1
    assert found[-1].message == f"and {MAX_ARGUMENTS + 1 - MAX_PROBLEMS} more problems"
    assert len(InvalidArguments(found).message) < 50_000


def test_very_many_arguments_are_not_looked_at_one_by_one() -> None:
    (problem,) = problems({f"unknown-{number}": 1 for number in range(MAX_ARGUMENTS + 1)})
    assert problem.message == "there are 1001 arguments, over the limit of 1000"


@pytest.mark.anyio
async def test_the_gate_names_a_nested_field_by_its_path(tmp_path: Path) -> None:
    filters = [
        {"field": "status", "operator": "==", "value": "active"},
        {"field": "size", "operator": "<", "value": None},
        {"field": "size", "operator": "~", "value": 1},
    ]
    async with opened_kit(tmp_path) as kit:
        refused = await kit.call("query_collection", collection="apps", filters=filters, limit="1")
    assert refused.status == 400
    assert "filters[1].value must not be null for operator '<'" in refused.body["error"]
    assert "Invalid operator: '~'" in refused.body["error"]
    assert "limit must be an integer" in refused.body["error"]


# Anything at all ------------------------------------------------------------------------------

EXPECTED = {None, "invalid_arguments", "not_found", "access_denied", "conflict"}
words = st.text(max_size=20) | st.sampled_from(["apps", "users", "abc123", "==", "in", "access"])
scalars = st.none() | st.booleans() | st.integers() | st.floats() | words
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
    max_leaves=12,
)
names = st.sampled_from(
    [*sorted({name for tool in SHIPPED for name in tool.input.model_fields}), "field", "operator"]
)
near = st.dictionaries(names | words, anything, max_size=6)
collections = st.sampled_from(["apps", "users", "nowhere"])
conditions = st.fixed_dictionaries(
    {"field": words, "operator": st.sampled_from(Operator).map(str), "value": anything}
)
aimed = st.fixed_dictionaries(
    {
        "collection": collections,
        "collection_name": collections,
        "filters": st.lists(conditions, max_size=3),
        "limit": st.integers(-1, 200),
        "document_id": words,
        "data": st.dictionaries(words, anything, max_size=4),
        "user_id": words,
        "app_id": words,
        "permission": words,
    }
)


@dataclass(frozen=True)
class Aimed:
    """Arguments that may well be right: each tool is sent those it knows."""

    values: dict[str, Any]

    def at(self, tool: AnyTool) -> dict[str, Any]:
        known = tool.input.model_fields
        return {name: value for name, value in self.values.items() if name in known}


@pytest.fixture(scope="module", params=[False, True], ids=["writes off", "writes on"])
def gate(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Kit, Any]]:
    """One gate, on an event loop in a thread of its own, for all that is tried on it."""
    with anyio.from_thread.start_blocking_portal() as portal:
        kit_of = opened_kit(
            tmp_path_factory.mktemp("any"),
            writes=request.param,
            plugins=offer(a_tool("x", takes=Thing)),
        )
        with portal.wrap_async_context_manager(kit_of) as kit:
            yield kit, portal


def stored(kit: Kit, portal: Any) -> int:
    many = select(func.count()).where(documents.c.namespace == "appdata")
    return portal.call(kit.app.gate.database.read, lambda c: c.scalar(many))


@pytest.mark.filterwarnings("ignore:Generating overly large repr")  # there are many tools
@settings(max_examples=effort(40, 150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(arguments=anything | near | aimed.map(Aimed))
def test_whatever_is_sent_the_answer_is_json_and_no_defect(
    gate: tuple[Kit, Any], arguments: Any
) -> None:
    kit, portal = gate
    for tool in kit.app.gate.catalogue:
        sent = arguments.at(tool) if isinstance(arguments, Aimed) else arguments
        outcome = portal.call(kit.send, tool.name, sent)
        assert outcome.error_type != "internal_error", (tool.name, arguments)
        assert outcome.error_type in EXPECTED
        json.loads(outcome.raw)
    assert kit.app.settings.appdata.writes or stored(kit, portal) == 0


@settings(max_examples=effort(20, 50), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.text(max_size=200))
def test_whatever_name_is_called_the_answer_is_json_and_is_audited(
    gate: tuple[Kit, Any], name: str
) -> None:
    kit, portal = gate
    outcome = portal.call(kit.send, name, {})
    assert outcome.error_type in {None, "not_found", "invalid_arguments"}
    last = portal.call(kit.audit_rows)[-1]
    assert last["tool_name"].isprintable()
    assert len(last["tool_name"]) <= 128

"""However much of an argument is wrong, few errors are built to say so."""

from collections.abc import Iterator
from typing import Any, cast

import pytest
from pydantic import BaseModel, Field, TypeAdapter, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError
from tests.gate.tools import a_tool

from toolgate.gate import validation_errors
from toolgate.gate.arguments import MAX_PROBLEMS, TOLD, parse, problem_of
from toolgate.gate.catalogue import AnyTool
from toolgate.gate.errors import InvalidArguments, Problem
from toolgate.gate.tool import Input
from toolgate.gate.validation_errors import MAX_BUILT

MANY = 199_000


class Part(Input):
    name: str
    """Where a schema's own words stand for fields."""
    type: list[int] = Field(default=[])
    default: list[int] = Field(default=[])

    @model_validator(mode="after")
    def _named(self) -> "Part":
        if not self.name:
            raise PydanticCustomError(TOLD, "name must not be empty")
        return self


class Things(Input):
    tags: list[str] = Field(default=[])
    parts: list[Part] = Field(default=[])
    counts: dict[str, int] = Field(default={})
    either: list[str | int | Part] = Field(default=[])
    part: Part | None = None
    count: int = 1


THINGS = a_tool("x", takes=Things)


@pytest.fixture(autouse=True)
def built(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many errors are built at a time; never very many."""
    numbers: list[int] = []
    build = validation_errors.errors_of

    def counted(invalid: ValidationError) -> list[ErrorDetails]:
        found = build(invalid)
        numbers.append(len(found))
        return found

    monkeypatch.setattr(validation_errors, "errors_of", counted)
    yield numbers
    assert numbers
    assert max(numbers) <= MAX_BUILT


def problems(arguments: Any, tool: AnyTool = THINGS) -> tuple[Problem, ...]:
    with pytest.raises(InvalidArguments) as refused:
        parse(tool, arguments)
    return refused.value.problems


FIRST: dict[str, tuple[dict[str, Any], str]] = {
    "texts": ({"tags": [1] * MANY}, "tags[0] must be a string"),
    "behind good ones": ({"tags": [*["a"] * 50_000, *[1] * 99_000]}, "tags[50000] must be a"),
    "objects": ({"parts": [5] * MANY}, "parts[0] must be an object"),
    "incomplete objects": ({"parts": [{}] * MANY}, "parts[0].name is required"),
    "a rule of their own": ({"parts": [{"name": ""}] * 90_000}, "name must not be empty"),
    "values": ({"counts": dict.fromkeys(map(str, range(MANY)), "x")}, "counts.0 must be an int"),
    "one of several": ({"either": [[]] * MANY}, "either[0].str must be a string"),
    "within": ({"part": {"name": "a", "type": ["x"] * MANY}}, "part.type[0] must be an integer"),
    "within, too": ({"part": {"name": "a", "default": ["x"] * MANY}}, "part.default[0] must be"),
    "in a list": ({"parts": [{"name": "a", "type": ["x"] * 9}] * 20_000}, "parts[0].type[0] must"),
}


@pytest.mark.parametrize(("arguments", "message"), FIRST.values(), ids=FIRST)
def test_of_very_many_wrong_items_the_first_is_told(
    arguments: dict[str, Any], message: str, built: list[int]
) -> None:
    first, *_, last = problems({"count": "1"} | arguments)
    told = {one.message for one in problems({"count": "1"} | arguments)}
    assert first.message.startswith(message)
    assert "count must be an integer" in told
    assert last.message.startswith("and ")
    assert int(last.message.split()[1]) >= 89_999
    assert max(built) < 10


def test_what_is_wrong_with_an_item_is_told_with_every_problem_beside_it() -> None:
    wrong: dict[str, Any] = {"tags": [1] * MANY, "parts": [{}, 5], "colour": "red", "count": "1"}
    fields = [one.field for one in problems(wrong)]
    assert fields == ["tags[0]", "parts[0].name", "count", "colour", "arguments"]


def test_unknown_names_without_end_are_counted_and_their_place_is_told() -> None:
    (problem,) = problems({"part": {f"name{number}": 1 for number in range(MANY)}, "count": 1})
    assert problem.message == f"there are {MANY + 1} problems in part, too many to name each"


def test_an_optional_null_beside_them_is_no_problem() -> None:
    first, last = problems({"count": None, "tags": [1] * MANY})
    assert (first.field, last.message) == ("tags[0]", f"and {MANY - 1} more problems")


def test_as_many_as_can_be_built_are_told_as_before(built: list[int]) -> None:
    *told, last = problems({"tags": [1] * MAX_BUILT})
    assert [one.field for one in told] == [f"tags[{number}]" for number in range(MAX_PROBLEMS)]
    assert last.message == f"and {MAX_BUILT - MAX_PROBLEMS} more problems"
    assert built == [MAX_BUILT]


class Theirs(BaseModel):
    """Of an own tool: no `Input`."""

    tags: list[int]


def test_a_model_of_another_kind_is_bounded_alike(built: list[int]) -> None:
    first, last = problems({"tags": ["x"] * MANY}, a_tool("x", takes=cast(Any, Theirs)))
    assert first.field == "tags[0]"
    assert last.message == f"and {MANY - 1} more problems"


def test_something_else_than_arguments_is_told_without_building_them(
    built: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolgate.gate.arguments.errors_of", validation_errors.errors_of)
    with pytest.raises(ValidationError) as invalid:
        TypeAdapter(list[int]).validate_python(["x"] * MANY)
    assert problem_of(invalid.value) == f"it has {MANY} problems"
    with pytest.raises(ValidationError) as invalid:
        TypeAdapter(list[int]).validate_python(["x"], strict=True)
    assert problem_of(invalid.value) == "[0] must be an integer"

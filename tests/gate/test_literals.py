"""Literals of arguments: JSON's true is not 1, and 1 is not true."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import BeforeValidator, Field
from tests.gate.tools import a_tool
from typing_extensions import TypeAliasType, TypedDict

from toolgate.gate.arguments import parse
from toolgate.gate.errors import InvalidArguments
from toolgate.gate.tool import Input

Alias = TypeAliasType("Alias", Literal[1, 2])


class Typed(TypedDict):
    """An object without a model."""

    level: Literal[1, 2]


class Inner(Input):
    """A model within a model."""

    level: Literal[0, 1] = 0
    more: list["Inner"] = Field(default_factory=list)


class Levels(Input):
    """Literals in every place."""

    level: Literal[1, 2] = 1
    mixed: Literal[1, "one"] = "one"
    agreed: Literal[True] = True
    many: list[Literal[0, 5]] = Field(default_factory=list)
    by_name: dict[str, Literal[1]] | None = None
    inner: Inner = Field(default_factory=Inner)
    alias: Alias = 1
    typed: Typed | None = None
    metadata: Literal[1, 2] = 1
    type: Annotated[Literal[1], BeforeValidator(lambda value: value)] = 1


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"level": True}, "level"),
        ({"mixed": True}, "mixed"),
        ({"agreed": 1}, "agreed"),
        ({"agreed": False}, "agreed"),
        ({"many": [5, False]}, "many[1]"),
        ({"by_name": {"a": True}}, "by_name.a"),
        ({"inner": {"level": True}}, "inner.level"),
        ({"inner": {"more": [{"level": True}]}}, "inner.more[0].level"),
        ({"alias": True}, "alias"),
        ({"typed": {"level": True}}, "typed.level"),
        ({"metadata": True}, "metadata"),
        ({"type": True}, "type"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_boolean_is_no_number_and_a_number_no_boolean(wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidArguments) as refused:
        parse(a_tool("a", takes=Levels), wrong)
    (problem,) = refused.value.problems
    assert (problem.field, problem.rule) == (field, "value")
    assert problem.message.startswith(f"{field} must be one of: ")


def test_the_values_themselves_are_taken() -> None:
    good = {"level": 2, "mixed": 1, "agreed": True, "many": [0, 5.0], "inner": {"level": 1}}

    parsed = parse(a_tool("a", takes=Levels), good)

    assert parsed.model_dump(exclude_unset=True) == good


def test_the_schema_still_lists_the_values() -> None:
    assert a_tool("a", takes=Levels).input_schema["properties"]["level"]["enum"] == [1, 2]


def test_a_value_that_is_none_of_them_is_told_with_all_of_them() -> None:
    with pytest.raises(InvalidArguments) as refused:
        parse(a_tool("a", takes=Levels), {"level": 3})
    assert refused.value.problems[0].message == "level must be one of: 1 or 2"

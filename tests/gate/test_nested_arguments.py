"""Objects inside the arguments: a name that they do not have is told like one of the tool."""

from typing import Any

import pytest
from pydantic import Field
from tests.gate.tools import a_tool

from toolgate.gate.arguments import parse
from toolgate.gate.errors import InvalidArguments, Problem
from toolgate.gate.tool import Input


class Step(Input):
    command: str = ""
    inner: "Step | None" = None


class Wait(Input):
    seconds: int = 0


class Plan(Input):
    """Objects in every place that they may have."""

    first: Step | None = None
    steps: list[Step | Wait] = Field(default=[], max_length=5)
    named: dict[str, Wait] = Field(default={})


CASES: dict[str, tuple[dict[str, Any], str, str | None, str]] = {
    "object": ({"first": {"comand": 1}}, "first.comand", "first.command", "command, inner"),
    "object-in-object": (
        {"first": {"inner": {"iner": 1}}},
        "first.inner.iner",
        "first.inner.inner",
        "command, inner",
    ),
    "mapping": ({"named": {"a": {"secnds": 1}}}, "named.a.secnds", "named.a.seconds", "seconds"),
    "nothing-near": ({"first": {"zzz": 1}}, "first.zzz", None, "command, inner"),
}


def problems(arguments: Any) -> tuple[Problem, ...]:
    with pytest.raises(InvalidArguments) as refused:
        parse(a_tool("x", takes=Plan), arguments)
    return refused.value.problems


@pytest.mark.parametrize("name", CASES)
def test_an_unknown_name_is_told_with_its_path_and_the_nearest(name: str) -> None:
    given, field, near, valid = CASES[name]
    (problem,) = problems(given)
    hint = f" Did you mean '{near}'?" if near else ""
    all_valid = f"Valid arguments of {field.rpartition('.')[0]}: {valid}."
    assert problem.message == f"Unknown argument '{field}'.{hint} {all_valid}"
    assert (problem.field, problem.rule) == (field, "unknown")
    assert problem.suggestion == (hint.strip() or all_valid)


def test_of_several_forms_each_is_told_with_its_own_names() -> None:
    told = {one.message for one in problems({"steps": [{"secnds": 1}]})}
    assert told == {
        "Unknown argument 'steps[0].secnds'. Valid arguments of steps[0]: command, inner.",
        "Unknown argument 'steps[0].secnds'. Did you mean 'steps[0].seconds'? "
        "Valid arguments of steps[0]: seconds.",
    }


def test_a_very_long_name_is_shortened() -> None:
    (problem,) = problems({"first": {"x" * 10_000: 1}})
    assert len(problem.message) < 400

"""What a user's JSON Schema says of arguments, in the words of the gate."""

from typing import Any

import pytest

from toolgate.extend.schemas import argument_reader, compile_schema, without_unknown_names
from toolgate.gate.errors import InvalidArguments

SCHEMA: dict[str, Any] = {
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 5, "pattern": "^[a-z]*$"},
        "age": {"type": ["integer", "null"], "minimum": 0, "exclusiveMaximum": 150},
        "kind": {"enum": ["a", "b", 3]},
        "pair": {"type": "array", "minItems": 1},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2, "uniqueItems": True},
        "deep": {"$ref": "#/$defs/deep"},
        "either": {"anyOf": [{"type": "string"}, {"type": "boolean"}]},
        "same": {"const": True},
        "not": {"not": {"type": "string"}},
    },
    "$defs": {
        "deep": {
            "type": "object",
            "properties": {"more": {"type": "array", "items": {"$ref": "#/$defs/deep"}}},
            "required": ["more"],
            "additionalProperties": False,
        }
    },
}
READ = argument_reader(compile_schema(without_unknown_names(SCHEMA)))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"name": 5}, "name must be a string"),
        ({"name": ""}, "name is required"),
        ({"name": "abcdef"}, "name must have at most 5 characters"),
        ({"name": "A"}, "name must match ^[a-z]*$"),
        ({"age": "5"}, "age must be an integer or null"),
        ({"age": True}, "age must be an integer or null"),
        ({"age": -1}, "age must be at least 0"),
        ({"age": 150}, "age must be less than 150"),
        ({"kind": "c"}, 'kind must be one of: "a", "b", 3'),
        ({"tags": "a"}, "tags must be a list"),
        ({"tags": ["a", 1]}, "tags[1] must be a string"),
        ({"tags": ["a", "b", "c"]}, "tags must have at most 2 items"),
        ({"pair": []}, "pair must have at least 1 item"),
        ({"tags": ["a", "a"]}, "tags must not hold an item twice"),
        ({"deep": {}}, "deep.more is required"),
        ({"deep": {"more": [{"more": 1}]}}, "deep.more[0].more must be a list"),
        (
            {"deep": {"more": [], "mor": 1}},
            "Unknown argument 'deep.mor'. Did you mean 'deep.more'? Valid arguments of deep: more.",
        ),
        ({"either": 1}, "either fits none of its 2 allowed forms"),
        ({"same": False}, "same must be one of: true"),
        ({"not": "x"}, "not does not fit its schema"),
    ],
)
def test_a_broken_rule_is_named(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidArguments) as refused:
        READ(arguments)
    assert refused.value.message == told


def test_an_unknown_name_is_told_the_nearest() -> None:
    with pytest.raises(InvalidArguments, match="Did you mean 'name'"):
        READ({"nam": "x"})


@pytest.mark.parametrize(
    "says", [{"additionalProperties": True}, {"patternProperties": {"^x": {}}}, {"anyOf": [{}]}]
)
def test_unknown_names_pass_where_the_schema_speaks_of_them(says: dict[str, Any]) -> None:
    assert argument_reader(compile_schema(without_unknown_names(SCHEMA | says)))({"xyz": 1}) == {
        "xyz": 1
    }


def test_good_arguments_come_back_as_they_are() -> None:
    given = {"name": "ab", "age": None, "deep": {"more": [{"more": []}]}, "either": True}
    assert READ(given) is given


def test_problems_have_an_end() -> None:
    schema = {"properties": {"all": {"type": "array", "items": {"type": "string"}}}}
    with pytest.raises(InvalidArguments) as refused:
        argument_reader(compile_schema(without_unknown_names(schema)))({"all": list(range(10_000))})
    assert len(refused.value.problems) == 100


def test_deep_nesting_is_a_problem_and_no_crash() -> None:
    deep: dict[str, Any] = {"more": []}
    for _ in range(5_000):
        deep = {"more": [deep]}
    with pytest.raises(InvalidArguments, match="arguments are nested too deeply"):
        READ({"deep": deep})

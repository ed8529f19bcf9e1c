"""What a client reads in the schemas of every pack: JSON Schema 2020-12, and nothing else."""

from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from jsonschema_specifications import REGISTRY
from tests.catalogue.test_every_tool import subschemas
from tests.needed_packs import needs_pack

from toolgate import packs
from toolgate.gate.arguments import parse
from toolgate.gate.catalogue import AnyTool, Catalogue
from toolgate.gate.errors import InvalidArguments

CATALOGUE = Catalogue(packs.offers(packs.SHIPPED))
TOOLS = list(CATALOGUE)

every_tool = pytest.mark.parametrize("tool", TOOLS, ids=[tool.name for tool in TOOLS])


def keywords() -> set[str]:
    """The keywords of the vocabularies that the meta-schema of 2020-12 is made of."""
    meta: dict[str, Any] = Draft202012Validator.META_SCHEMA
    resolver = REGISTRY.resolver(meta["$id"])
    parts = (resolver.lookup(part["$ref"]).contents for part in meta["allOf"])
    return {keyword for part in parts for keyword in part["properties"]}


KEYWORDS = keywords()


@every_tool
def test_every_keyword_is_one_of_json_schema(tool: AnyTool) -> None:
    for schema, at in ((tool.input_schema, "arguments"), (tool.output_schema, "result")):
        for place, one in subschemas(schema, at):
            assert set(one) <= KEYWORDS, place


def bounds() -> Iterator[tuple[AnyTool, str, str, int]]:
    """Every bound of a whole number among the arguments: tool, field, keyword, value."""
    for tool in TOOLS:
        for name, field in tool.input_schema["properties"].items():
            for one in (field, *field.get("anyOf", ())):
                if one.get("type") == "integer":
                    for keyword in {"minimum", "maximum"} & set(one):
                        yield tool, name, keyword, one[keyword]


BOUNDS = sorted(bounds(), key=lambda one: (one[0].name, *one[1:]))


@pytest.mark.parametrize(
    ("tool", "name", "keyword", "bound"),
    BOUNDS,
    ids=[f"{tool.name}.{name}.{keyword}" for tool, name, keyword, _ in BOUNDS],
)
def test_a_number_is_accepted_up_to_its_bound(
    tool: AnyTool, name: str, keyword: str, bound: int
) -> None:
    beyond = bound + (1 if keyword == "maximum" else -1)
    assert rules_broken(tool, name, bound) == set()
    assert rules_broken(tool, name, float(bound)) == set()
    assert rules_broken(tool, name, beyond) == {"range"}


def rules_broken(tool: AnyTool, name: str, value: float) -> set[str]:
    """The rules that the tool's example breaks with this value in one of its fields."""
    try:
        parse(tool, {**tool.example, name: value})
    except InvalidArguments as invalid:
        return {problem.rule for problem in invalid.problems if problem.field == name}
    return set()


@needs_pack("orchestrator")
def test_the_bounds_of_a_version_are_listed() -> None:
    tool = CATALOGUE.find("db.preference.update")
    assert tool is not None
    version, null = tool.input_schema["properties"]["expected_version"]["anyOf"]
    assert version == {"type": "integer", "minimum": 1, "maximum": 2**53}
    assert null == {"type": "null"}

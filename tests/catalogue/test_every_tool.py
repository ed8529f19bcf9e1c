"""What holds for every tool that ships with toolgate."""

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.catalogue.refresh import PROMISED, place_of, recorded, snapshot

from toolgate import packs
from toolgate.gate.arguments import parse
from toolgate.gate.catalogue import AnyTool, Catalogue, DuplicateTool
from toolgate.gate.outcomes import Outcome
from toolgate.gate.principal import Role, of_role
from toolgate.gate.schema_fields import resolved
from toolgate.gate.tool import Effect
from toolgate.testing import Kit, opened_kit

OFFERS = packs.offers(packs.SHIPPED)
CATALOGUE = Catalogue(OFFERS)
TOOLS = list(CATALOGUE)
INCOMPLETE = {offer.pack.name for offer in OFFERS if not offer.complete}
CONTRACT: list[dict[str, Any]] = [
    one
    for one in json.loads((Path(__file__).parent / "contract.json").read_text(encoding="utf-8"))
    if one["pack"] in packs.SHIPPED
    and (one["pack"] not in INCOMPLETE or CATALOGUE.find(one["name"]) is not None)
]
Schema = dict[str, Any]

every_tool = pytest.mark.parametrize("tool", TOOLS, ids=[tool.name for tool in TOOLS])

MORE_CALLS: dict[str, list[dict[str, Any]]] = {
    "get_document": [
        {"collection": "groups", "document_id": "lake-weekend"},
        {"collection": "userPreferences", "document_id": "abc123"},
    ],
    "query_collection": [
        {"collection": "users", "limit": 100},
        {"collection": "groups"},
        {"collection": "apps", "filters": [{"field": "a", "operator": "==", "value": None}]},
    ],
    "create_document": [{"collection": "notifications", "data": {}}],
    "check_permission": [
        {"user_id": "abc123", "app_id": "justsplit"},
        {"user_id": "abc123", "app_id": "justsplit", "permission": "export"},
        {"user_id": "xyz789", "app_id": "justsplit"},
        {"user_id": "hub-admin", "app_id": "justsplit"},
        {"user_id": "nobody", "app_id": "justsplit"},
    ],
    "list_user_permissions": [{"user_id": "hub-admin"}, {"user_id": "user-8"}],
    "list_collections": [],
    "describe_collection": [
        {"collection_name": name} for name in ("apps", "groups", "dataSyncStatus")
    ],
}
AFTER = {
    "operator.user.delete": "operator.user.create",
    "operator.group.delete": "operator.group.create",
    "operator.project.delete": "operator.project.create",
    "operator.job.finish": "operator.job.lease",
}
"""Tools whose example does not fit the demo data, but what another tool leaves."""
EMPTY = {"firestore_read", "run_hook"}
"""Tools with an answer that may be an empty object."""
CALLER = of_role(Role.ADMIN, "admin", "anna")


@pytest.fixture(scope="module")
async def kit(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Kit]:
    folder = tmp_path_factory.mktemp("catalogue")
    async with opened_kit(
        folder, writes=True, demo_data=True, packs__enabled=packs.SHIPPED
    ) as opened:
        yield opened


def subschemas(schema: Any, at: str) -> Iterator[tuple[str, Schema]]:
    """A schema and every schema inside it, with where it stands."""
    if not isinstance(schema, dict):
        return
    yield at, schema
    for name, inner in schema.items():
        match name, inner:
            case (("properties" | "$defs" | "patternProperties"), dict()):
                for key, one in inner.items():
                    yield from subschemas(one, f"{at}.{key}")
            case (("items" | "additionalProperties" | "not"), dict()):
                yield from subschemas(inner, f"{at}.{name}")
            case (("anyOf" | "oneOf" | "allOf" | "prefixItems"), list()):
                for number, one in enumerate(inner):
                    yield from subschemas(one, f"{at}.{name}[{number}]")


# Names and words


@every_tool
def test_a_name_is_one_that_every_client_takes(tool: AnyTool) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_.]{1,64}", tool.name)


def test_no_two_tools_share_a_name_in_either_spelling() -> None:
    assert max(Counter(tool.alias for tool in TOOLS).values()) == 1
    with pytest.raises(DuplicateTool, match="rename one"):
        Catalogue([*OFFERS, *OFFERS])


@every_tool
def test_a_tool_is_found_in_either_spelling(tool: AnyTool) -> None:
    assert CATALOGUE.find(tool.name) is tool
    assert CATALOGUE.find(tool.alias) is tool


@every_tool
def test_a_title_is_a_few_words(tool: AnyTool) -> None:
    assert 3 <= len(tool.title) <= 60
    assert tool.title[0].isupper()
    assert tool.title.strip() == tool.title
    assert not tool.title.endswith(".")


def test_no_two_tools_share_a_title_or_a_description() -> None:
    assert max(Counter(tool.title for tool in TOOLS).values()) == 1
    assert max(Counter(tool.description for tool in TOOLS).values()) == 1


@every_tool
def test_a_description_begins_with_one_sentence(tool: AnyTool) -> None:
    first, _, rest = tool.description.partition("\n")
    assert first.endswith(".")
    assert len(first) <= 120
    assert not rest or rest.startswith("\n"), "a blank line follows the first"


@every_tool
def test_tools_that_a_description_names_exist(tool: AnyTool) -> None:
    names = set(re.findall(r"`([a-z]+(?:[._][a-z]+)+)`", tool.description))
    assert {name for name in names if CATALOGUE.find(name) is None} == set()
    assert tool.name not in names


@every_tool
def test_role_and_effect_are_declared(tool: AnyTool) -> None:
    assert isinstance(tool.role, Role)
    assert isinstance(tool.effect, Effect)


@every_tool
def test_annotations_follow_from_the_effect(tool: AnyTool) -> None:
    hints = tool.annotations
    assert hints["title"] == tool.title
    assert hints["readOnlyHint"] is (tool.effect is Effect.READ)
    assert hints["destructiveHint"] is (tool.effect is Effect.DESTROY)
    assert hints["openWorldHint"] is tool.open_world
    assert hints["idempotentHint"] is tool.idempotent
    assert tool.idempotent or tool.effect is not Effect.READ


# Schemas


@every_tool
def test_schemas_are_valid_schemas_of_objects(tool: AnyTool) -> None:
    for schema in (tool.input_schema, tool.output_schema):
        Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
        assert not {"anyOf", "oneOf", "allOf", "$ref"} & schema.keys()


@every_tool
def test_unknown_arguments_are_refused(tool: AnyTool) -> None:
    assert tool.input_schema["additionalProperties"] is False
    assert set(tool.input_schema.get("required", ())) <= tool.input_schema["properties"].keys()


@every_tool
def test_every_field_is_described(tool: AnyTool) -> None:
    for side in ("input", "output"):
        schema: Schema = getattr(tool, f"{side}_schema")
        for at, one in subschemas(schema, side):
            for name, field in one.get("properties", {}).items():
                told = field.get("description", "")
                assert told.strip(), f"{at}.{name} has no description"
                assert told.rstrip().endswith("."), f"{at}.{name}: {told!r} is no sentence"


@every_tool
def test_every_reference_stays_inside_the_schema(tool: AnyTool) -> None:
    for schema in (tool.input_schema, tool.output_schema):
        for at, one in subschemas(schema, tool.name):
            if reference := one.get("$ref"):
                name = reference.removeprefix("#/$defs/")
                assert name in schema["$defs"], f"{at}: {reference}"


@every_tool
def test_optional_arguments_show_their_default(tool: AnyTool) -> None:
    required = set(tool.input_schema.get("required", ()))
    for name, field in tool.input_schema["properties"].items():
        assert (name in required) != ("default" in field), name


# Examples and answers


@every_tool
def test_the_example_fits_the_input_schema_and_is_accepted(tool: AnyTool) -> None:
    example = dict(tool.example)
    Draft202012Validator(tool.input_schema).validate(example)
    assert isinstance(parse(tool, example), tool.input)
    assert example or not tool.input_schema.get("required")


def check_answer(tool: AnyTool, outcome: Outcome) -> None:
    assert outcome.error is None, outcome.body
    assert json.loads(outcome.raw) == outcome.body
    body = outcome.attached.body_with("") if outcome.attached else outcome.body
    Draft202012Validator(tool.output_schema).validate(body)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "tool", [one for one in TOOLS if one.name not in AFTER], ids=lambda tool: tool.name
)
async def test_answers_fit_the_output_schema(tool: AnyTool, kit: Kit) -> None:
    # Of a pack whose tools change what the examples of others need, nothing is stored.
    dry_run = bool(tool.writes) and tool.pack.name not in packs.DEFAULT
    for arguments in (dict(tool.example), *MORE_CALLS.get(tool.name, ())):
        check_answer(tool, await kit.send(tool.name, arguments, CALLER, dry_run=dry_run))


@pytest.mark.anyio
@pytest.mark.parametrize("name", [one.name for one in TOOLS if one.name in AFTER])
async def test_answers_after_another_tool_fit_the_output_schema(name: str, tmp_path: Path) -> None:
    tool, first = CATALOGUE.find(name), CATALOGUE.find(AFTER[name])
    assert tool is not None
    assert first is not None
    async with opened_kit(tmp_path, demo_data=True, packs__enabled=[tool.pack.name]) as kit:
        made = (await kit.send(first.name, dict(first.example), CALLER)).body["result"]
        made_id = {"project_id": made["id"]} if "project_id" in tool.example else {}
        check_answer(tool, await kit.send(name, {**tool.example, **made_id}, CALLER))


@every_tool
def test_an_answer_of_another_shape_would_not_fit(tool: AnyTool) -> None:
    validator = Draft202012Validator(tool.output_schema)
    assert validator.is_valid({}) is (tool.name in EMPTY)
    assert not validator.is_valid([])


# Promises to others


@pytest.mark.parametrize("tool", PROMISED, ids=[tool.name for tool in PROMISED])
def test_the_public_description_is_the_one_on_record(tool: AnyTool) -> None:
    on_record = place_of(tool).read_text(encoding="utf-8")
    assert snapshot(tool) == on_record, "if this is meant: python -m tests.catalogue.refresh"


def test_nothing_is_on_record_that_does_not_exist() -> None:
    assert recorded() == {place_of(tool) for tool in PROMISED}


@pytest.mark.parametrize("agreed", CONTRACT, ids=[one["name"] for one in CONTRACT])
def test_names_and_arguments_are_as_agreed(agreed: dict[str, Any]) -> None:
    tool = CATALOGUE.find(agreed["name"])
    assert tool is not None
    assert tool.name == agreed["name"]
    assert tool.pack.name == agreed["pack"]
    assert tool.family == agreed["family"]
    properties: dict[str, Schema] = {
        name: {"anyOf": options(one, tool.input_schema)}
        for name, one in tool.input_schema["properties"].items()
    }
    assert set(tool.input_schema.get("required", ())) == agreed["required"].keys()
    assert agreed["optional"].keys() <= properties.keys() - agreed["required"].keys()
    for name, wanted in (agreed["required"] | agreed["optional"]).items():
        types = wanted.get("type", [])
        assert ({types} if isinstance(types, str) else {*types}) <= types_of(properties[name]), name
        if "default" in wanted:
            assert tool.input_schema["properties"][name]["default"] == wanted["default"]
        choices = [one for option in options(properties[name]) for one in option.get("enum", [])]
        assert choices == wanted.get("enum", choices), name
        if items := wanted.get("items", {}).get("type"):
            listed = [one["items"] for one in options(properties[name]) if "items" in one]
            given = [
                tool.input_schema["$defs"][one["$ref"].rpartition("/")[2]] if "$ref" in one else one
                for one in listed
            ]
            assert [one["type"] for one in given] == [items], name
    if "annotations" in agreed:
        assert tool.annotations == agreed["annotations"]


def options(schema: Schema, root: Schema | None = None) -> list[Schema]:
    """What a property may be; with what it is part of, references resolved."""
    return [resolved(one, root or {}) for one in schema.get("anyOf", [schema])]


def types_of(schema: Schema) -> set[str]:
    """The JSON types a property takes."""
    types = [one["type"] for one in options(schema) if "type" in one]
    return {name for some in types for name in ([some] if isinstance(some, str) else some)}


def test_every_agreed_tool_of_a_complete_pack_is_there() -> None:
    promised = {tool.pack.name for tool in PROMISED}
    agreed = {one["name"] for one in CONTRACT if one["pack"] in promised}
    there = {tool.name for tool in PROMISED if tool.namespace != "operator"}
    assert there == agreed

"""Parameters are sent, and answers promised, as an OpenAPI document says."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.extend.upstream import Upstream

from toolgate.extend.openapi import ImportResult, import_operations
from toolgate.testing import opened_kit

pytestmark = pytest.mark.anyio

LIST = {"type": "array", "items": {"type": "string"}}
OBJECT = {"type": "object", "additionalProperties": True}
LETTERS, COLOUR = ["a b", "c,d", "e|f"], {"R": 100, "G": "x y"}


def document(operation: dict[str, Any], method: str = "get", path: str = "/things") -> Any:
    return {"openapi": "3.1.0", "paths": {path: {method: {"operationId": "it", **operation}}}}


def made_from(
    operation: dict[str, Any], method: str = "get", path: str = "/things"
) -> ImportResult:
    return import_operations(document(operation, method, path), ["GET", "POST"], "admin")


def in_query(schema: Any, **more: Any) -> dict[str, Any]:
    return {"parameters": [{"name": "q", "in": "query", "schema": schema, **more}]}


async def sent(tmp_path: Path, upstream: Upstream, made: ImportResult, **arguments: Any) -> Any:
    """What the backend got from the one tool of a document."""
    assert made.notes == []
    (tmp_path / "tools.yaml").write_text(yaml.safe_dump(made.tools))
    settings = {"extend__tools": tmp_path / "tools.yaml", "extend__base_url": upstream.url}
    async with opened_kit(tmp_path / "data", **settings) as kit:
        outcome = await kit.send("it", arguments)
    assert outcome.error is None, outcome.text
    return upstream.requests[-1]


@pytest.mark.parametrize(
    ("schema", "form", "value", "query"),
    [
        (LIST, {}, LETTERS, "q=a%20b&q=c%2Cd&q=e%7Cf"),
        (LIST, {"style": "form"}, LETTERS, "q=a%20b&q=c%2Cd&q=e%7Cf"),
        (LIST, {"explode": False}, LETTERS, "q=a%20b,c%2Cd,e%7Cf"),
        (LIST, {"style": "spaceDelimited"}, ["a", "b"], "q=a%20b"),
        (LIST, {"style": "pipeDelimited"}, ["a", "b"], "q=a%7Cb"),
        (LIST, {"style": "pipeDelimited", "explode": True}, ["a", "b"], "q=a&q=b"),
        (LIST, {}, ["one"], "q=one"),
        (LIST, {}, [], ""),
        (OBJECT, {}, COLOUR, "R=100&G=x%20y"),
        (OBJECT, {"explode": False}, COLOUR, "q=R,100,G,x%20y"),
        (OBJECT, {"style": "deepObject", "explode": True}, COLOUR, "q%5BR%5D=100&q%5BG%5D=x%20y"),
        (OBJECT, {"style": "deepObject"}, {"a&b": "c=d"}, "q%5Ba%26b%5D=c%3Dd"),
        ({"type": ["array", "null"]}, {}, [1, True, 2.5], "q=1&q=true&q=2.5"),
        ({}, {}, "plain", "q=plain"),
        ({"type": "boolean"}, {}, True, "q=true"),
    ],
)
async def test_a_parameter_is_written_in_its_style(
    tmp_path: Path, upstream: Upstream, schema: Any, form: Any, value: Any, query: str
) -> None:
    asked = await sent(tmp_path, upstream, made_from(in_query(schema, **form)), q=value)
    assert asked["raw_query"] == query


async def test_a_parameter_with_content_is_json(tmp_path: Path, upstream: Upstream) -> None:
    content = {"application/json": {"schema": LIST}}
    made = made_from({"parameters": [{"name": "q", "in": "query", "content": content}]})
    assert "parameters" not in made.tools[0]
    asked = await sent(tmp_path, upstream, made, q=["a"])
    assert asked["query"] == {"q": '["a"]'}


async def test_a_query_parameter_beside_a_body_stays_in_the_query(
    tmp_path: Path, upstream: Upstream
) -> None:
    body = {"content": {"application/json": {"schema": {"properties": {"name": LIST}}}}}
    made = made_from(in_query({"type": "boolean"}) | {"requestBody": body}, "post")
    asked = await sent(tmp_path, upstream, made, q=True, name=["n"])
    assert (asked["raw_query"], asked["body"]) == ("q=true", {"name": ["n"]})


async def test_a_list_in_the_path_has_commas(tmp_path: Path, upstream: Upstream) -> None:
    place = {"name": "ids", "in": "path", "required": True, "schema": LIST}
    made = made_from({"parameters": [place]}, path="/things/{ids}")
    asked = await sent(tmp_path, upstream, made, ids=["a,b", "c"])
    assert asked["raw_path"].endswith("/things/a%2Cb,c")


@pytest.mark.parametrize("items", [["a/b"], ["a", ".."], [""], [], [["a"]], [True]])
async def test_an_item_in_the_path_leads_nowhere_else(
    tmp_path: Path, upstream: Upstream, items: Any
) -> None:
    text = (
        "[{name: it, description: It, path: 'things/{ids}', "
        "input_schema: {properties: {ids: {type: array}}, required: [ids]}}]"
    )
    (tmp_path / "tools.yaml").write_text(text)
    settings = {"extend__tools": tmp_path / "tools.yaml", "extend__base_url": upstream.url}
    async with opened_kit(tmp_path / "data", **settings) as kit:
        outcome = await kit.send("it", {"ids": items})
    if items == ["a", ".."]:
        assert upstream.requests[-1]["raw_path"].endswith("/things/a,..")
    else:
        assert outcome.status == 400
        assert upstream.requests == []


async def test_a_field_of_an_object_is_not_sent_as_another_argument(
    tmp_path: Path, upstream: Upstream
) -> None:
    operation = in_query(OBJECT)
    operation["parameters"].append({"name": "owner", "in": "query", "schema": {"type": "string"}})
    (tmp_path / "tools.yaml").write_text(yaml.safe_dump(made_from(operation).tools))
    settings = {"extend__tools": tmp_path / "tools.yaml", "extend__base_url": upstream.url}
    async with opened_kit(tmp_path / "data", **settings) as kit:
        outcome = await kit.send("it", {"q": {"owner": "eve"}, "owner": "ann"})
    assert outcome.status == 400
    assert "q must not have a field owner" in outcome.text


@pytest.mark.parametrize(
    ("parameter", "told"),
    [
        ({"name": "q", "in": "query", "schema": LIST, "style": "odd"}, "q has the style odd"),
        (
            {"name": "id", "in": "path", "required": True, "schema": LIST, "style": "matrix"},
            "id has the style matrix",
        ),
        ({"name": "id", "in": "path", "required": True, "schema": OBJECT}, "id is an object"),
    ],
)
def test_what_cannot_be_written_is_left_out(parameter: Any, told: str) -> None:
    made = made_from({"parameters": [parameter]}, path="/things/{id}")
    assert made.tools == []
    assert told in made.notes[0]


def answering(*schemas: Any, **more: Any) -> dict[str, Any]:
    numbers = ("200", "201", "202")
    found = {
        number: {"description": "", "content": {"application/json": {"schema": schema}}}
        for number, schema in zip(numbers, schemas, strict=False)
    }
    return {"responses": found | more}


THING = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "secret": {"type": "string", "writeOnly": True}},
    "required": ["path", "secret"],
}


def test_the_answer_s_schema_is_promised() -> None:
    [tool] = made_from(answering(THING, default={"description": "", "content": {}})).tools
    assert tool["output_schema"]["required"] == ["path"]


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        (answering(LIST), "it is not an object"),
        (answering(THING, OBJECT), "it has several forms"),
        (answering(THING, **{"204": {"description": ""}}), "it has several forms"),
        (answering({"$ref": "https://other.example/x"}), "outside the document"),
        (answering(THING | {"minProperties": "x"}), "'x' is not of type 'integer'"),
    ],
)
def test_an_answer_that_cannot_be_promised_is_noted(operation: Any, why: str) -> None:
    made = made_from(operation)
    assert "output_schema" not in made.tools[0]
    assert "nothing is promised of its answer" in made.notes[0]
    assert why in made.notes[0]


@pytest.mark.parametrize("operation", [{}, {"responses": {"204": {"description": "Gone."}}}])
def test_a_document_that_says_nothing_of_answers_promises_nothing(operation: Any) -> None:
    made = made_from(operation)
    assert made.notes == []
    assert "output_schema" not in made.tools[0]


async def test_an_answer_that_breaks_the_document_is_an_error_that_says_so(
    tmp_path: Path, upstream: Upstream
) -> None:
    schema = {"type": "object", "properties": {"path": {"type": "integer"}}}
    (tmp_path / "tools.yaml").write_text(yaml.safe_dump(made_from(answering(schema)).tools))
    settings = {"extend__tools": tmp_path / "tools.yaml", "extend__base_url": upstream.url}
    async with opened_kit(tmp_path / "data", **settings) as kit:
        outcome = await kit.send("it", {})
    assert outcome.status == 502
    told = "it answered what its output_schema does not allow: path must be an integer."
    assert outcome.body == {"error": told}

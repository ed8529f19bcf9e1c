"""`toolgate extend openapi`: from a document to a file that loads."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.conftest import *  # noqa: F403 (its fixtures)
from tests.extend.upstream import Upstream
from tests.identity.publisher import Answer, publishing
from tests.servers import Server

from toolgate.extend.offer import offer_of
from toolgate.sections import ExtendSettings, LimitSettings
from toolgate.testing import opened_kit

FAR = "https://other.example/x.json"
SPEC = """
openapi: 3.0.3
info: {title: Garden, version: "2"}
servers: [{url: "https://garden.example/v1"}]
paths:
  /plants/{plant-id}:
    parameters:
      - {name: plant-id, in: path, required: true, schema: {type: integer}}
    get:
      operationId: Get Plant!
      summary: Get a plant
      description: All that is known of one plant.
      parameters:
        - $ref: "#/components/parameters/Depth"
        - {name: X-Trace, in: header, schema: {type: string}}
    put:
      summary: Change a plant
      requestBody:
        required: true
        content:
          application/json:
            schema:
              allOf:
                - $ref: "#/components/schemas/Plant"
                - {type: object, properties: {note: {type: string}}, required: [note]}
    delete:
      operationId: Get_Plant
  /plants:
    post:
      operationId: plants.photo
      requestBody: {required: true, content: {multipart/form-data: {schema: {type: object}}}}
    get:
      operationId: plants.list
      parameters: [{name: token, in: cookie, required: true, schema: {type: string}}]
    patch:
      operationId: plants.bulk
      requestBody:
        content: {application/json: {schema: {type: array, items: {type: string}}}}
    put:
      operationId: plants.far
      requestBody:
        content: {application/json: {schema: {$ref: "https://other.example/x.json"}}}
components:
  parameters:
    Depth: {name: depth, in: query, description: How deep., schema: {type: integer, minimum: 0,
      exclusiveMinimum: true, nullable: true, example: 3}}
  schemas:
    Plant:
      type: object
      required: [name]
      properties:
        name: {type: string}
        example: {type: string, description: A field of this name.}
        parent: {$ref: "#/components/schemas/Plant"}
"""


def written(file: str = "tools.yaml") -> dict[str, Any]:
    return {one["name"]: one for one in yaml.safe_load(Path(file).read_text())}


def loaded(file: str = "tools.yaml") -> list[str]:
    settings = ExtendSettings(tools=(Path(file),), base_url="http://localhost")
    offer = offer_of([Path(file)], settings, LimitSettings())
    return [tool.name for tool in offer.tools]


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_a_document_of_3_0(cli: Any, form: str) -> None:
    text = SPEC if form == "yaml" else json.dumps(yaml.safe_load(SPEC))
    Path(f"spec.{form}").write_text(text)
    ended = cli("extend", "openapi", f"spec.{form}", "--role", "user")
    assert ended.code == 0, ended.err
    assert ended.out.splitlines() == [
        'Done: 3 tools in tools.yaml. Review it, then set extend.tools = "tools.yaml".',
        "The document names the address https://garden.example/v1 (setting extend.base_url).",
    ]
    cut = "Plant refers to itself and was cut there: anything is allowed"
    assert ended.err.splitlines() == [
        "GET /plants/{plant-id}: the header X-Trace is not sent.",
        f"PUT /plants/{{plant-id}}: {cut}.",
        "GET /plants was left out: it needs the cookie token.",
        "POST /plants was left out: its body is multipart/form-data, not JSON.",
        f"PUT /plants was left out: it refers to {FAR}, outside the document.",
        "PATCH /plants was left out: its body is not an object.",
    ]
    assert loaded() == ["Get_Plant", "put_plants_plant-id", "Get_Plant_2"]
    tools = written()
    assert tools["Get_Plant"] == {
        "title": "Get a plant",
        "name": "Get_Plant",
        "description": "All that is known of one plant.",
        "method": "GET",
        "path": "plants/{plant-id}",
        "input_schema": {
            "type": "object",
            "properties": {
                "plant-id": {"type": "integer"},
                "depth": {
                    "type": ["integer", "null"],
                    "exclusiveMinimum": 0,
                    "description": "How deep.",
                },
            },
            "required": ["plant-id"],
        },
        "role": "user",
    }
    put = tools["put_plants_plant-id"]["input_schema"]
    assert put["required"] == ["plant-id", "name", "note"]
    assert put["properties"]["example"] == {
        "type": "string",
        "description": "A field of this name.",
    }
    head = Path("tools.yaml").read_text().splitlines()[:2]
    assert head == [
        "# Made from Garden 2. Review it before you use it.",
        "# The document's address (setting extend.base_url): https://garden.example/v1",
    ]


@pytest.mark.anyio
async def test_the_written_file_calls_the_routes(
    tmp_path: Path, process: Any, upstream: Upstream
) -> None:
    (tmp_path / "spec.yaml").write_text(SPEC)
    assert process("extend", "openapi", "spec.yaml").code == 0
    settings = {"extend__tools": tmp_path / "tools.yaml", "extend__base_url": upstream.url}
    async with opened_kit(tmp_path / "data", **settings) as kit:
        got = await kit.send("Get_Plant", {"plant-id": 7, "depth": 2})
        put = await kit.send("put_plants_plant-id", {"plant-id": 7, "name": "n", "note": "m"})
    assert got.body["path"] == "/api/plants/7"
    assert got.body["query"] == {"depth": "2"}
    assert put.body["body"] == {"name": "n", "note": "m"}


def test_our_own_document_becomes_tools(cli: Any, server: Server) -> None:
    with server.client() as client:
        Path("openapi.json").write_text(client.get("/openapi.json").text)
        names = {one["name"] for one in client.get("/v1/tools").json()["tools"]}
    ended = cli("extend", "openapi", "openapi.json", "--output", "own.yaml")
    assert ended.code == 0, ended.err
    found = loaded("own.yaml")
    assert {name.replace(".", "_") for name in names} <= set(found)
    assert written("own.yaml")["get_document"]["input_schema"]["required"] == [
        "collection",
        "document_id",
    ]


def test_a_document_from_an_address(
    cli: Any, monkeypatch: pytest.MonkeyPatch, upstream: Upstream
) -> None:
    ended = cli("extend", "openapi", f"{upstream.url}/status/404")
    assert ended.code == 2
    assert ended.err.endswith("/status/404 answered 404. Save the document as a file.\n")
    ended = cli("extend", "openapi", f"{upstream.url}/echo")
    assert ended.err.endswith('It is not OpenAPI 3.0 or 3.1: the key "openapi" must say so.\n')


def test_a_document_that_has_moved(cli: Any) -> None:
    with publishing() as published, publishing() as elsewhere:
        published.answers["/old"] = Answer({}, 301, {"Location": "/new"})
        published.answers["/new"] = Answer(SPEC.encode())
        published.answers["/away"] = Answer({}, 302, {"Location": f"{elsewhere.url}/new"})
        assert cli("extend", "openapi", f"{published.url}/old").code == 0
        ended = cli("extend", "openapi", f"{published.url}/away", "--force")
    assert len(loaded()) == 3
    assert ended.err.endswith(
        "cannot be read: The address must begin with https://. Save the document as a file.\n"
    )
    assert elsewhere.seen == [], "nobody but the operator chooses an address inside"


def test_only_some_methods(cli: Any) -> None:
    Path("spec.yaml").write_text(SPEC)
    assert cli("extend", "openapi", "spec.yaml", "--only", "get, delete").code == 0
    assert loaded() == ["Get_Plant", "Get_Plant_2"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["none.yaml"], "There is no file none.yaml."),
        (["bad.yaml"], "bad.yaml is neither JSON nor YAML:"),
        (["old.json"], "old.json: It is not OpenAPI 3.0 or 3.1:"),
        (["list.json"], "list.json: It is not OpenAPI 3.0 or 3.1:"),
        (["empty.json"], "empty.json has no operation that can become a tool"),
        (["spec.yaml", "--only", "FETCH"], "There is no method 'FETCH'."),
        (["spec.yaml", "--role", "boss"], "There is no role 'boss'."),
        (["spec.yaml", "--output", "x.py"], "x.py must end in .yaml or .yml."),
        (["spec.yaml", "--output", "there.yaml"], "there.yaml already exists. Use --force"),
    ],
)
def test_what_cannot_be_done_is_said(cli: Any, arguments: list[str], told: str) -> None:
    Path("spec.yaml").write_text(SPEC)
    Path("bad.yaml").write_text("a: [")
    Path("old.json").write_text('{"swagger": "2.0"}')
    Path("list.json").write_text("[]")
    Path("empty.json").write_text(
        '{"openapi": "3.1.0", "paths": {"/x": {"get": {"parameters": 5}}}}'
    )
    Path("there.yaml").write_text("kept")
    ended = cli("extend", "openapi", *arguments)
    assert ended.code == 2
    assert f"Error: {told}" in ended.err
    assert Path("there.yaml").read_text() == "kept"


def test_force_writes_over_a_file(cli: Any) -> None:
    Path("spec.yaml").write_text(SPEC)
    Path("tools.yaml").write_text("old")
    assert cli("extend", "openapi", "spec.yaml", "--force").code == 0
    assert len(loaded()) == 3

"""The OpenAPI document is whole, and the server keeps what it says."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, assume, settings
from jsonschema import Draft202012Validator
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)
from tests.needed_packs import needs_pack
from tests.servers import Server, running_server

from toolgate import packs
from toolgate.gate.catalogue import Catalogue
from toolgate.transports.openapi import document

CATALOGUE = Catalogue(packs.offers(packs.SHIPPED))
DOCUMENT = document(list(CATALOGUE))
LONGEST_QUERY = 8000

api = schemathesis.openapi.from_dict(DOCUMENT)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One with every pack that ships."""
    with running_server(tmp_path_factory, packs__enabled=[*packs.SHIPPED]) as running:
        yield running


def nodes(value: Any, at: str = "#") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object of the document, with where it stands."""
    if isinstance(value, dict):
        yield at, value
        for name, inner in value.items():
            yield from nodes(inner, f"{at}/{name}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from nodes(inner, f"{at}/{number}")


def resolved(reference: str) -> Any:
    assert reference.startswith("#/"), f"{reference} leaves the document"
    found: Any = DOCUMENT
    for part in reference.removeprefix("#/").split("/"):
        found = found[part]
    return found


def tool_paths() -> dict[str, Any]:
    return {path: item for path, item in DOCUMENT["paths"].items() if "/tools/" in path}


def test_every_fixed_path_is_there() -> None:
    fixed = {"/v1/tools", "/rpc", "/healthz", "/readyz", "/metrics"}
    own = {tool.route.path for tool in CATALOGUE if tool.route}
    assert own
    assert DOCUMENT["paths"].keys() - tool_paths().keys() == fixed | own


def schemas() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, item in tool_paths().items():
        body = item["post"]["requestBody"]["content"]["application/json"]
        yield f"{path} request", body["schema"]
        for status, response in item["post"]["responses"].items():
            yield f"{path} {status}", response["content"]["application/json"]["schema"]


def test_every_tool_is_one_operation() -> None:
    assert DOCUMENT["openapi"] == "3.1.0"
    assert list(tool_paths()) == [f"/v1/tools/{tool.name}" for tool in CATALOGUE]
    made = [item["post"]["operationId"] for item in tool_paths().values()]
    assert made == [tool.alias for tool in CATALOGUE]


def test_every_reference_resolves_inside_the_document() -> None:
    references = [(at, one["$ref"]) for at, one in nodes(DOCUMENT) if "$ref" in one]
    assert references, "some schemas have definitions"
    for at, reference in references:
        assert isinstance(resolved(reference), dict), f"{at}: {reference}"


def test_no_definitions_stay_where_nothing_finds_them() -> None:
    assert [at for at, one in nodes(DOCUMENT) if "$defs" in one] == []


def test_components_have_names_that_openapi_allows_and_are_all_used() -> None:
    components = DOCUMENT["components"]["schemas"]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+", name) for name in components)
    used = {one["$ref"].rpartition("/")[2] for _, one in nodes(DOCUMENT) if "$ref" in one}
    assert used == components.keys()


def test_every_schema_is_a_valid_schema() -> None:
    found = dict(schemas()) | DOCUMENT["components"]["schemas"]
    assert len(found) > len(list(CATALOGUE))
    for schema in found.values():
        Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("tool", list(CATALOGUE), ids=lambda tool: tool.name)
def test_examples_fit_the_request_schema(tool: Any) -> None:
    body = DOCUMENT["paths"][f"/v1/tools/{tool.name}"]["post"]["requestBody"]
    content = body["content"]["application/json"]
    whole = {**content["schema"], "components": DOCUMENT["components"]}
    Draft202012Validator(whole).validate(content.get("example", {}))
    assert body["required"] is bool(tool.input_schema.get("required"))


@needs_pack("appdata")
def test_a_bad_filter_does_not_fit_the_request_schema() -> None:
    content = DOCUMENT["paths"]["/v1/tools/query_collection"]["post"]["requestBody"]["content"]
    whole = {**content["application/json"]["schema"], "components": DOCUMENT["components"]}
    bad = {"collection": "apps", "filters": [{"field": "a", "operator": "X", "value": 1}]}
    assert not Draft202012Validator(whole).is_valid(bad)


@needs_pack("appdata")
def test_making_the_document_leaves_the_tools_schemas_as_they_were() -> None:
    tool = CATALOGUE.find("query_collection")
    assert tool is not None
    assert tool.input_schema["$defs"].keys() == {"Condition", "Operator"}


def test_the_server_publishes_this_document(server: Server) -> None:
    with server.client() as client:
        answer = client.get("/openapi.json")
    assert answer.status_code == 200
    assert answer.json() == DOCUMENT


@api.parametrize()
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
def test_the_server_keeps_to_its_document(case: Any, server: Server) -> None:
    # An address that HTTP's parser refuses by its length never becomes a request of ours.
    assume(len(str(case.query)) < LONGEST_QUERY)
    case.call_and_validate(
        base_url=server.url,
        headers={"Authorization": f"Bearer {server.admin_key}"},
        checks=[
            not_a_server_error,
            status_code_conformance,
            content_type_conformance,
            response_headers_conformance,
            response_schema_conformance,
            unsupported_method,
        ],
    )

"""OpenAPI 3.1 of what the caller may use."""

from importlib.metadata import version
from typing import Any, cast

from toolgate.gate.attachments import OCTETS
from toolgate.gate.catalogue import AnyTool
from toolgate.gate.outcomes import outcome_of_error
from toolgate.gate.pipeline import Gate
from toolgate.transports.asgi import (
    Receive,
    Scope,
    Send,
    call_of,
    error_headers,
    principal_of,
    send,
    send_json,
)
from toolgate.transports.http import PREFIX
from toolgate.transports.openapi_fixed import PATHS
from toolgate.transports.parameters import parameters_of
from toolgate.transports.refusals import count_list

Schema = dict[str, Any]

DEFINITIONS = "$defs"
WITH_BODY = ("POST", "PUT", "PATCH")
"""Methods whose content has a meaning of its own (RFC 9110, 9.3): DELETE is read, not described."""

FAILURES = {
    "400": "The arguments break a rule; the text names field and rule.",
    "401": "No credentials, or not good ones.",
    "403": "Not allowed now; the text says which switch or rule.",
    "404": "What the arguments name does not exist.",
    "409": "It is already there.",
    "413": "The body is over the limit, or the answer would be.",
    "429": "Too many calls; see Retry-After.",
    "503": "Something this needs does not answer.",
    "504": "It took too long.",
}


class OpenApi:
    """Serves `/openapi.json`."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, to: Send) -> None:
        """The document for this caller."""
        if refused := await count_list(self._gate, call_of(scope, scope["path"])):
            outcome = outcome_of_error(refused, None)
            return await send(to, outcome.status, outcome.raw, error_headers(refused))
        visible = self._gate.visible(principal_of(scope))
        return await send_json(to, 200, document(visible))


def document(tools: list[AnyTool]) -> Schema:
    """The OpenAPI document of these tools."""
    schemas: Schema = {}
    paths = {f"{PREFIX}/{tool.name}": {"post": operation(tool, schemas)} for tool in tools}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "toolgate",
            "version": version("toolgate"),
            "description": "One governed door between AI agents and an application's backend.",
        },
        "security": [{"key": []}],
        "paths": paths | own_routes(tools, schemas) | PATHS,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def own_routes(tools: list[AnyTool], schemas: Schema) -> Schema:
    """The tools that have an address of their own."""
    paths: Schema = {}
    for tool in tools:
        if tool.route:
            method = tool.route.method.lower()
            paths.setdefault(tool.route.path, {})[method] = _route_operation(tool, schemas)
    return paths


def _route_operation(tool: AnyTool, schemas: Schema) -> Schema:
    """A tool's own operation: its arguments are in the path, the query or body, and headers."""
    assert tool.route is not None
    posted = operation(tool, schemas)
    whole = _move_definitions(tool.input_schema, f"{tool.alias}.input", schemas)
    arguments = {name: _described(one) for name, one in whole["properties"].items()}
    in_path = [name for name in arguments if f"{{{name}}}" in tool.route.path]
    header = [tool.from_request.argument] if tool.from_request else []
    in_query = [name for name in arguments if name not in (*in_path, *header)]
    parameters = [_parameter(tool, name, arguments[name], "path") for name in in_path]
    body: Schema = {}
    if tool.route.method in WITH_BODY:
        body = {"requestBody": _body(whole, in_query, tool)} if in_query else {}
    else:
        parameters += [_parameter(tool, name, arguments[name], "query") for name in in_query]
    if tool.from_request:
        parameters += [
            {
                "name": one.name,
                "in": "header",
                "required": False,
                "description": one.description,
                "schema": dict(one.schema),
            }
            for one in tool.from_request.headers
        ]
    kept = {name: part for name, part in posted.items() if name != "requestBody"}
    if tool.route.body:
        answer = kept["responses"]["200"]["content"]["application/json"]
        answer["schema"] = answer["schema"]["properties"][tool.route.body]
    return kept | {"operationId": f"{tool.alias}_route", "parameters": parameters} | body


def _described(schema: Any) -> Schema:
    return cast(Schema, schema) if isinstance(schema, dict) else {}  # `true`: anything


def _parameter(tool: AnyTool, name: str, schema: Schema, place: str) -> Schema:
    """One argument in the path or the query, in the form that the route reads."""
    described = {
        "name": name,
        "in": place,
        "required": place == "path" or name in tool.input_schema.get("required", ()),
        "description": schema.get("description", ""),
    }
    form = parameters_of(tool.input_schema)[name]
    if form.is_json:
        return described | {"content": {"application/json": {"schema": schema}}}
    if form.repeats:
        return described | {"schema": schema, "style": "form", "explode": True}
    return described | {"schema": schema}


def _body(whole: Schema, names: list[str], tool: AnyTool) -> Schema:
    """The body of a request to a tool's own route: the arguments that are nowhere else."""
    required = [name for name in whole.get("required", ()) if name in names]
    properties = {name: whole["properties"][name] for name in names}
    schema = whole | {"properties": properties, "required": required}
    example = {name: value for name, value in tool.example.items() if name in names}
    return {
        "required": bool(required),
        "content": {"application/json": _content(schema, example)},
    }


def operation(tool: AnyTool, schemas: Schema) -> Schema:
    """One tool as an operation; definitions inside its schemas are added to `schemas`."""
    arguments = _move_definitions(tool.input_schema, f"{tool.alias}.input", schemas)
    answer = _move_definitions(tool.output_schema, f"{tool.alias}.output", schemas)
    return {
        "operationId": tool.alias,
        "summary": tool.title,
        "description": tool.description,
        "tags": [tool.pack.name],
        "requestBody": {
            "required": bool(tool.input_schema.get("required")),
            "content": {"application/json": _content(arguments, tool.example)},
        },
        "responses": {
            "200": {
                "description": "The answer.",
                "content": {"application/json": _content(answer, None)}
                | ({OCTETS: {}} if tool.attachment_field else {}),
            },
            **{status: _failure(words) for status, words in FAILURES.items()},
        },
    }


def _content(schema: Schema, example: Any) -> Schema:
    return {"schema": schema} | ({"example": example} if example else {})


def _move_definitions(schema: Schema, owner: str, schemas: Schema) -> Schema:
    """The schema with its definitions moved to where references in the document find them."""
    own = {name: part for name, part in schema.items() if name != DEFINITIONS}
    for name, part in schema.get(DEFINITIONS, {}).items():
        schemas[f"{owner}.{name}"] = _point_references(part, owner)
    return _point_references(own, owner)


def _point_references(node: Any, owner: str) -> Any:
    """The same node with every reference to a definition pointing at its new place."""
    if isinstance(node, list):
        return [_point_references(one, owner) for one in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    pointed = {name: _point_references(one, owner) for name, one in cast(Schema, node).items()}
    reference = pointed.get("$ref")
    if isinstance(reference, str):
        pointed["$ref"] = reference.replace(f"#/{DEFINITIONS}/", f"#/components/schemas/{owner}.")
    return pointed


def _failure(words: str) -> Schema:
    return {"description": words, "content": {"application/json": {"schema": {"type": "object"}}}}

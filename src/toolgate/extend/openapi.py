"""Route tools from an OpenAPI document, for a person to review."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from toolgate.extend.openapi_responses import response_schema
from toolgate.extend.openapi_schemas import OperationSkipped, Resolver
from toolgate.extend.parameters import STYLES
from toolgate.extend.routes import IN_QUERY, PLACE

Json = dict[str, Any]
METHODS = ("get", "post", "put", "patch", "delete")
MAX_NAME = 120
PLAIN = ("string", "integer", "number", "boolean", "null")


class BadDocument(ValueError):
    """This is no OpenAPI document that we read; the sentence says why."""


@dataclass(slots=True)
class ImportResult:
    """The tools that a document gave, and what it did not."""

    tools: list[Json] = field(default_factory=list[Json])
    notes: list[str] = field(default_factory=list[str])
    """What was left out, or cut short, and why."""
    title: str = ""
    base: str | None = None


def import_operations(document: Any, only: Sequence[str], role: str) -> ImportResult:
    """Every operation of these methods as a route tool."""
    content = cast(Json, document) if isinstance(document, dict) else {}
    version = content.get("openapi")
    if not isinstance(version, str) or not version.startswith(("3.0", "3.1")):
        raise BadDocument('It is not OpenAPI 3.0 or 3.1: the key "openapi" must say so.')
    result = ImportResult(title=_title(content), base=_base(content))
    names: set[str] = set()
    for path, method, item in _operations(content):
        if method.upper() not in only:
            continue
        where = f"{method.upper()} {path}"
        resolver = Resolver(content, old=version.startswith("3.0"))
        try:
            entry = _entry(path, method, item, resolver)
        except OperationSkipped as reason:
            result.notes.append(f"{where} was left out: {reason}.")
            continue
        except (AttributeError, LookupError, TypeError, RecursionError, StopIteration):
            result.notes.append(f"{where} was left out: it is not as OpenAPI has it.")
            continue
        entry["name"] = _unique(entry["name"], names)
        result.notes += [f"{where}: {note}." for note in resolver.notes]
        result.tools.append(entry | {"role": role})
    return result


def _title(document: Json) -> str:
    info = document.get("info")
    fields = cast(Json, info) if isinstance(info, dict) else {}
    return " ".join(f"{fields.get('title', '')} {fields.get('version', '')}".split())


def _base(document: Json) -> str | None:
    servers = document.get("servers")
    first = cast("list[Any]", servers)[0] if isinstance(servers, list) and servers else None
    url = cast(Json, first).get("url") if isinstance(first, dict) else None
    return url if isinstance(url, str) and url.isprintable() else None


def _operations(document: Json) -> Iterator[tuple[str, str, Json]]:
    """Path, method, and the operation with what its path says for all of them."""
    paths = document.get("paths")
    for path, item in cast(Json, paths).items() if isinstance(paths, dict) else ():
        if not isinstance(item, dict):
            continue
        operations = cast(Json, item)
        for method in METHODS:
            if isinstance(operation := operations.get(method), dict):
                shared = operations.get("parameters", [])
                yield str(path), method, {"shared": shared, **cast(Json, operation)}


def _entry(path: str, method: str, operation: Json, resolver: Resolver) -> Json:
    schema: Json = {"type": "object", "properties": {}, "required": []}
    styles = _add_parameters(schema, path, method, operation, resolver)
    _add_body(schema, method, operation, resolver)
    if not schema["required"]:
        del schema["required"]
    summary, description = _words(operation, "summary"), _words(operation, "description")
    entry: Json = {
        "name": _name(operation.get("operationId"), method, path),
        "description": description or summary or f"{method.upper()} {path}",
        "method": method.upper(),
        "path": path.lstrip("/"),
        "input_schema": schema,
    }
    if styles:
        entry["parameters"] = styles
    if promise := response_schema(operation, resolver):
        entry["output_schema"] = promise
    return ({"title": summary} if summary and len(summary) <= MAX_NAME else {}) | entry


def _words(operation: Json, key: str) -> str:
    value = operation.get(key)
    return value.strip() if isinstance(value, str) else ""


def _name(operation_id: Any, method: str, path: str) -> str:
    words = operation_id if isinstance(operation_id, str) and operation_id else f"{method} {path}"
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", words).strip("_.-")[:MAX_NAME] or method


def _unique(name: str, names: set[str]) -> str:
    unique, number = name, 1
    while unique.replace(".", "_") in names:
        number += 1
        unique = f"{name}_{number}"
    names.add(unique.replace(".", "_"))
    return unique


def _add_parameters(
    schema: Json, path: str, method: str, operation: Json, resolver: Resolver
) -> Json:
    """Put the parameters into the schema; the answer is how those in the query are written."""
    styles: Json = {}
    for (place, name), parameter in _parameters(operation, resolver).items():
        if place in ("path", "query"):
            part = _parameter(parameter, resolver)
            _add(schema, name, part, bool(parameter.get("required")))
            if place == "path":
                _check_simple(name, parameter, part)
            elif method.upper() not in IN_QUERY or not _is_plain(part):
                styles |= _style(name, parameter)
        elif parameter.get("required"):
            raise OperationSkipped(f"it needs the {place} {name}")
        else:
            resolver.notes.append(f"the {place} {name} is not sent")
    _require_all_of(path, schema)
    return styles


def _parameters(operation: Json, resolver: Resolver) -> dict[tuple[str, str], Json]:
    """By place and name; an operation's own come before those of its path."""
    every = (*operation["shared"], *operation.get("parameters", ()))
    followed = [resolver.follow(one) for one in every]
    return {(str(one.get("in")), str(one.get("name"))): one for one in followed}


def _require_all_of(path: str, schema: Json) -> None:
    for name in PLACE.findall(path):
        if name not in schema["properties"]:
            _add(schema, name, {"type": "string"}, True)
        elif name not in schema["required"]:
            schema["required"].append(name)


def _is_plain(schema: Json) -> bool:
    """Whether a value is one text, number or truth value, which every style writes alike."""
    types = schema.get("type")
    names = [types] if isinstance(types, str) else cast("list[Any]", types or [])
    return bool(names) and all(one in PLAIN for one in names)


def _style(name: str, parameter: Json) -> Json:
    """How the document has a parameter written; with `content` instead of a style it is JSON."""
    if "schema" not in parameter:
        return {}
    style = parameter.get("style", "form")
    if style not in STYLES:
        raise OperationSkipped(f"the parameter {name} has the style {style}")
    return {name: {"in": "query", "style": style, "explode": _explode(parameter, style)}}


def _explode(parameter: Json, style: str) -> bool:
    explode = parameter.get("explode")
    return explode if isinstance(explode, bool) else style == "form"


def _check_simple(name: str, parameter: Json, schema: Json) -> None:
    """A path is written in the style `simple`; there, `explode` makes a difference to objects."""
    if (style := parameter.get("style", "simple")) != "simple":
        raise OperationSkipped(f"the parameter {name} has the style {style}")
    if schema.get("type") == "object":
        raise OperationSkipped(f"the parameter {name} is an object in the path")


def _parameter(parameter: Json, resolver: Resolver) -> Json:
    schema = parameter.get("schema")
    if schema is None:
        content = cast(Json, parameter.get("content") or {})
        schema = cast(Json, next(iter(content.values())))["schema"]
    resolved = resolver.resolve(schema)
    words = _words(parameter, "description")
    return {**resolved, "description": words} if words else resolved


def _add(schema: Json, name: str, part: Json, required: bool) -> None:
    if name in schema["properties"]:
        raise OperationSkipped(f"two of its arguments are called {name}")
    schema["properties"][name] = part
    if required:
        schema["required"].append(name)


def _add_body(schema: Json, method: str, operation: Json, resolver: Resolver) -> None:
    if not operation.get("requestBody"):
        return
    body = resolver.follow(operation["requestBody"])
    content: Json = body.get("content") or {}
    kinds = [kind for kind in content if re.search(r"[/+]json\b", kind)]
    if not kinds:
        if not body.get("required"):
            return resolver.notes.append("its body is not sent")
        raise OperationSkipped(f"its body is {', '.join(content) or 'of no type'}, not JSON")
    if method.upper() in IN_QUERY:
        raise OperationSkipped(f"its body cannot be sent with {method.upper()}")
    merged = resolver.merge(resolver.resolve(content[kinds[0]].get("schema", {})))
    for name, part in merged.get("properties", {}).items():
        _add(schema, name, part, bool(body.get("required")) and name in merged.get("required", ()))
    if "additionalProperties" in merged:
        schema["additionalProperties"] = merged["additionalProperties"]

"""What an OpenAPI document promises of an operation's answer."""

import re
from typing import Any, cast

from toolgate.extend.openapi_schemas import OperationSkipped, Resolver
from toolgate.extend.schemas import BadSchema, compile_schema

Json = dict[str, Any]
JSON_TYPE = re.compile(r"[/+]json\b")
GOOD = re.compile(r"2\d\d|2XX")


def response_schema(operation: Json, resolver: Resolver) -> Json | None:
    """The schema of every good answer, if there is one that is an object; else a note says why."""
    responses = operation.get("responses")
    by_status = cast(Json, responses) if isinstance(responses, dict) else {}
    good = [one for status, one in by_status.items() if GOOD.fullmatch(str(status).upper())]
    answers = resolver.for_responses()
    try:
        schemas = [_schema(answers.follow(one), answers) for one in good]
        return _one_of(schemas) if any(schemas) else None
    except (OperationSkipped, BadSchema) as reason:
        resolver.notes.append(f"nothing is promised of its answer: {reason}")
        return None


def _schema(response: Json, resolver: Resolver) -> Json | None:
    content = response.get("content")
    kinds = cast(Json, content) if isinstance(content, dict) else {}
    kind = next((one for one in kinds if JSON_TYPE.search(one)), None)
    media = cast(Json, kinds[kind]) if kind and isinstance(kinds[kind], dict) else {}
    return resolver.resolve(media["schema"]) if "schema" in media else None


def _one_of(schemas: list[Json | None]) -> Json:
    first = schemas[0]
    if first is None or any(one != first for one in schemas):
        raise OperationSkipped("it has several forms")
    if first.get("type") != "object":
        raise OperationSkipped("it is not an object")
    compile_schema(first)
    return first

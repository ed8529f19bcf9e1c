"""Which documents are records, and what is checked of them before they are stored."""

from typing import Any

from pydantic import ValidationError

from toolgate.gate.arguments import dotted_path, problem_of, shorten_value
from toolgate.gate.errors import InvalidArguments, Problem
from toolgate.gate.validation_errors import errors_of
from toolgate.packs.network.records.models import Agent, Record, Skill, Task
from toolgate.ports.documents import Fields

COLLECTIONS: dict[str, type[Record]] = {"agents": Agent, "tasks": Task, "skills": Skill}
"""The collections of records. What lies below a record is nobody's business but its author's."""
TASK_DEFAULTS: Fields = {"type": "general", "priority": "normal", "status": "pending"}


def is_record(collection: str) -> bool:
    """Whether the documents of a collection are records."""
    return collection in COLLECTIONS


def completed(collection: str, document_id: str, fields: Fields, now: str) -> Fields:
    """A record with what its author may leave out; raises `InvalidArguments` for a wrong one."""
    record = {"id": document_id, **fields}
    if record["id"] != document_id:
        raise _wrong(
            Problem(
                "data.id",
                "value",
                f"data.id must be the last name of the path, {document_id!r}",
                shorten_value(record["id"]),
                "Leave data.id out, or write to another path.",
            )
        )
    if collection == "tasks":
        record |= {k: v for k, v in {**TASK_DEFAULTS, "createdAt": now}.items() if k not in record}
    try:
        COLLECTIONS[collection].model_validate(record)
    except ValidationError as invalid:
        raise _wrong(_problem(invalid, collection)) from None
    return record


def _problem(invalid: ValidationError, collection: str) -> Problem:
    """The first thing that is wrong with a record."""
    first: Any = next(iter(errors_of(invalid)), None)
    place = dotted_path(first["loc"]) if first else ""
    field = f"data.{place}" if place else "data"
    value = shorten_value(first["input"]) if first and first["type"] != "missing" else None
    message = f"data is no record of {collection}: {problem_of(invalid)}"
    return Problem(field, "value", message, value)


def _wrong(problem: Problem) -> InvalidArguments:
    return InvalidArguments([problem])

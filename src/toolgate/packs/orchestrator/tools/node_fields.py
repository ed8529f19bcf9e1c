"""What tools of nodes and of models have in common: slugs, URLs, JSON objects, and a node shown."""

import re
from typing import Annotated, Any

import orjson
from pydantic import AfterValidator, Field, JsonValue, ValidationInfo
from pydantic_core import PydanticCustomError

from toolgate.gate.arguments import TOLD_FORMAT
from toolgate.gate.errors import InvalidArguments, Problem
from toolgate.gate.tool import Output
from toolgate.packs.orchestrator.long_texts import examine
from toolgate.packs.orchestrator.nodes.liveness import Liveness
from toolgate.packs.orchestrator.rows import Row
from toolgate.packs.orchestrator.secret_values import secret_in, texts_in
from toolgate.packs.orchestrator.tools.json_values import size_of
from toolgate.packs.orchestrator.unseen_text import LAYOUT, unseen_in
from toolgate.packs.orchestrator.urls import MAX_CHARACTERS, without_credentials
from toolgate.packs.orchestrator.vocabulary import AckStatus, NodeStatus

NOT_FOUND = "Node not found"
SLUG = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
MAX_METADATA_BYTES = 16 * 1024


def _slug(value: str, info: ValidationInfo) -> str:
    if not SLUG.fullmatch(value):
        raise PydanticCustomError(
            TOLD_FORMAT,
            "{field} must be 1 to 63 of a-z, 0-9 and -, with a letter or digit at both ends, such "
            "as worker-01",
            {"field": info.field_name},
        )
    return value


def _url(value: str, info: ValidationInfo) -> str:
    clean = without_credentials(value)
    if clean is None:
        raise PydanticCustomError(
            TOLD_FORMAT,
            "{field} must be SCHEME://HOST[:PORT][/PATH], such as https://worker-01.example.com; "
            "without query and fragment",
            {"field": info.field_name},
        )
    return clean


def _web_url(value: str, info: ValidationInfo) -> str:
    if not value.startswith(("http://", "https://")):
        told = {"field": info.field_name}
        raise PydanticCustomError(TOLD_FORMAT, "{field} must begin with http:// or https://", told)
    return value


NewSlug = Annotated[str, Field(min_length=1, max_length=63), AfterValidator(_slug)]
Slug = Annotated[str, Field(min_length=1, max_length=256)]
Url = Annotated[str, Field(max_length=MAX_CHARACTERS), AfterValidator(_url)]
WebUrl = Annotated[Url, AfterValidator(_web_url)]
JsonObject = dict[str, JsonValue]


async def check_object(caller: str, field: str, value: JsonObject | None, most: int) -> None:
    """Raise where an object is too large, or has a secret or characters that nobody sees in it."""
    if value is None:
        return
    if (size := size_of(field, value)) > most:
        raise _problem(field, "size", f"{field} has {size} bytes as JSON; at most {most} are kept")
    await examine(caller, size, lambda: _check_content(field, value))


def _check_content(field: str, value: JsonObject) -> None:
    for text in texts_in(value):
        if unseen := unseen_in(text, LAYOUT):
            message = f"{field} holds the character {unseen}, which nobody sees. Leave it out"
            raise _problem(field, "format", message)
    check_secret(field, value)


def check_secret(field: str, value: Any) -> None:
    """Raise where a value holds a secret in plain text."""
    if found := secret_in(field, value):
        raise _problem(
            field,
            "secret",
            f"{field} holds what looks like {found}, and agents read it. Keep it in a secret store "
            "and write a reference such as env:NAME",
        )


def _problem(field: str, rule: str, message: str) -> InvalidArguments:
    return InvalidArguments([Problem(field, rule, message)])


class NodeInfo(Output):
    """A node without what it can do."""

    id: str = Field(description="The node's id.")
    node_slug: str = Field(description="Its name in tools.")
    display_name: str = Field(description="Its name for people.")
    status: NodeStatus = Field(
        description="registered: never seen; active; inactive: not seen for too long; drained: "
        "taken out by an operator."
    )
    worker_api_target_url: str | None = Field(description="Where its own API is, if it has one.")
    config_version: str = Field(description="The version of its configuration, a ULID.")
    refresh_config_requested: bool = Field(
        description="Whether the node has not yet acknowledged this version."
    )
    config_ack_version: str | None = Field(description="The version it acknowledged last.")
    config_ack_at: str | None = Field(description="When it did, ISO 8601.")
    config_ack_status: AckStatus | None = Field(description="What became of that version.")
    config_ack_error: str | None = Field(description="What went wrong, in the node's words.")
    last_seen_at: str | None = Field(description="When it was heard of last, ISO 8601.")
    last_capability_at: str | None = Field(description="When it reported what it has, ISO 8601.")
    metadata: dict[str, Any] = Field(description="Labels and other facts about it.")
    created_at: str = Field(description="When it was created, ISO 8601.")
    updated_at: str = Field(description="When an operator or agent changed it last, ISO 8601.")


def is_refresh_requested(row: Row) -> bool:
    """Whether a node has yet to acknowledge its configuration."""
    return row["config_ack_version"] != row["config_version"]


def node_fields(row: Row, liveness: Liveness) -> dict[str, Any]:
    """The fields of a `NodeInfo`."""
    shown = {name: row[name] for name in NodeInfo.model_fields if name in row}
    return shown | {
        "node_slug": row["slug"],
        "status": liveness.status_of(row),
        "metadata": orjson.loads(row["metadata"]),
        "refresh_config_requested": is_refresh_requested(row),
    }

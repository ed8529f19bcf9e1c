"""The pack's name and dialect, and the arguments its tools share."""

import json
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo
from pydantic_core import PydanticCustomError

from toolgate.gate.arguments import TOLD, TOLD_FORMAT, TOLD_MISSING
from toolgate.gate.dialects import FLAGGED
from toolgate.gate.tool import Pack
from toolgate.packs.appdata.collections import BUILT_IN, Collections
from toolgate.ports.rules import broken_id_rule

APPDATA = Pack(
    "appdata",
    FLAGGED,
    "Documents, permissions and data model of an application.",
)

MAX_SHOWN = 200


def shorten(value: object) -> str:
    """A refused value as an error repeats it: short, and good text whatever it was."""
    text = value if isinstance(value, str) else json.dumps(value)
    text = text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"
    return text.encode(errors="backslashreplace").decode()


def _check_allowed(name: str, info: ValidationInfo) -> str:
    if name not in (info.context.collections if info.context else BUILT_IN).by_name:
        raise PydanticCustomError(
            TOLD, "Collection '{name}' is not allowed", {"name": shorten(name)}
        )
    return name


def _check_writable(name: str, info: ValidationInfo) -> str:
    collections = collections_of(info)
    if not collections.by_name[_check_allowed(name, info)].writable:
        context = {"name": shorten(name), "writable": ", ".join(collections.writable) or "none"}
        raise PydanticCustomError(
            TOLD, "Collection '{name}' is read-only (writable collections: {writable})", context
        )
    return name


def collections_of(info: ValidationInfo) -> Collections:
    """The collections of the tool's world; the built-in ones where it is not bound to any."""
    return info.context.collections if info.context else BUILT_IN


def _id(value: str, info: ValidationInfo) -> str:
    if not value:  # in these words also where it may be left out
        raise PydanticCustomError(TOLD_MISSING, "{field} is required", {"field": info.field_name})
    if problem := broken_id_rule(value):
        context = {"field": info.field_name, "problem": problem}
        raise PydanticCustomError(TOLD_FORMAT, "{field} {problem}", context)
    return value


_NAME = Field(description="The collection's name; `list_collections` lists them.")
CollectionName = Annotated[str, AfterValidator(_check_allowed), _NAME]
WritableName = Annotated[str, AfterValidator(_check_writable), _NAME]
DocumentId = Annotated[str, AfterValidator(_id), Field(json_schema_extra={"minLength": 1})]
Id = Annotated[str, Field(min_length=1, max_length=1500)]

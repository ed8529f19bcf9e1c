"""The pack's name and dialect, and the arguments its tools share."""

import json
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo
from pydantic_core import PydanticCustomError

from toolgate.gate.dialects import FLAGGED
from toolgate.gate.parsing import TOLD
from toolgate.gate.tool import Pack
from toolgate.packs.appdata.collections import BY_NAME
from toolgate.ports.rules import broken_id_rule

APPDATA = Pack(
    "appdata",
    FLAGGED,
    "Documents, permissions and data model of an application.",
)

MOST_SHOWN = 200


def shown(value: object) -> str:
    """A refused value as an error repeats it: short, and good text whatever it was."""
    text = value if isinstance(value, str) else json.dumps(value)
    text = text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 1] + "…"
    return text.encode(errors="backslashreplace").decode()


def _allowed(name: str) -> str:
    if name not in BY_NAME:
        raise PydanticCustomError(TOLD, "Collection '{name}' is not allowed", {"name": shown(name)})
    return name


def _id(value: str, info: ValidationInfo) -> str:
    if problem := broken_id_rule(value):
        told = {"field": info.field_name, "problem": problem}
        raise PydanticCustomError(TOLD, "{field} {problem}", told)
    return value


CollectionName = Annotated[
    str,
    AfterValidator(_allowed),
    Field(description="The collection's name; `list_collections` lists them."),
]
DocumentId = Annotated[str, Field(min_length=1), AfterValidator(_id)]
Id = Annotated[str, Field(min_length=1, max_length=1500)]

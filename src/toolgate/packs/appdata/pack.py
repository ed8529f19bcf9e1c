"""The pack's name and dialect, and the arguments its tools share."""

from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from toolgate.gate.dialects import APPDATA as DIALECT
from toolgate.gate.parsing import TOLD
from toolgate.gate.tool import Pack
from toolgate.packs.appdata.collections import BY_NAME
from toolgate.ports.rules import broken_id_rule

APPDATA = Pack(
    "appdata",
    DIALECT,
    "Documents, permissions and data model of an application.",
)


def _allowed(name: str) -> str:
    if name not in BY_NAME:
        raise PydanticCustomError(TOLD, "Collection '{name}' is not allowed", {"name": name})
    return name


def _id(value: str) -> str:
    if problem := broken_id_rule(value):
        raise PydanticCustomError(TOLD, "document_id {problem}", {"problem": problem})
    return value


CollectionName = Annotated[
    str,
    AfterValidator(_allowed),
    Field(description="The collection's name; `list_collections` tells which there are."),
]
DocumentId = Annotated[str, Field(min_length=1), AfterValidator(_id)]
Id = Annotated[str, Field(min_length=1, max_length=1500)]

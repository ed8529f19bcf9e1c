"""The pack's name and dialect, and the arguments its tools share."""

import re
from typing import Annotated, Any, Literal, LiteralString

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from toolgate.gate.arguments import NAMED, TOLD_FORMAT
from toolgate.gate.dialects import JSON_RPC
from toolgate.gate.tool import Pack

NETWORK = Pack(
    "network", JSON_RPC, "Two databases, their live changes, and the agents that share them."
)

PATTERN = r"^[a-zA-Z0-9/_-]+$"
MAX_PATH = 6144
"""Characters of a path: as many as Firestore takes."""
ANY_JSON: dict[str, Any] = {"type": ["object", "array", "string", "number", "boolean", "null"]}
INVALID_PATH = "INVALID_PATH"
_ONE_PATH = re.compile(r"[a-zA-Z0-9_-]+(/[a-zA-Z0-9_-]+)*", re.ASCII)


def _path(value: str) -> str:
    problem: LiteralString | None = None
    if not _ONE_PATH.fullmatch(value):
        problem = (
            "path must be names of a-z, A-Z, 0-9, _ and -, joined by single slashes, without one "
            "at either end, such as agents/agent-001"
        )
    elif len(value) > MAX_PATH:
        problem = "path must have at most 6144 characters"
    if problem:
        raise PydanticCustomError(TOLD_FORMAT, problem, {NAMED: INVALID_PATH})
    return value


Path = Annotated[str, AfterValidator(_path), Field(json_schema_extra={"pattern": PATTERN})]
Database = Literal["realtime", "firestore"]

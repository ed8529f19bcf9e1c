"""The pack's name and dialect, and the arguments its tools share."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo, WithJsonSchema
from pydantic_core import PydanticCustomError

from toolgate.gate.arguments import TOLD_FORMAT
from toolgate.gate.cursors import MOST_CHARACTERS
from toolgate.gate.dialects import STATUS
from toolgate.gate.fields import Whole
from toolgate.gate.scope import Scoped
from toolgate.gate.tool import Input, Pack

ORCHESTRATOR = Pack(
    "orchestrator", STATUS, "Tasks, projects, preferences and tools of a team of agents."
)

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
MOST_REASON = 1000
MOST_ID = 256


def _uuid(value: str, info: ValidationInfo) -> str:
    if not UUID.fullmatch(value):
        told = {"field": info.field_name}
        raise PydanticCustomError(TOLD_FORMAT, "{field} must be a valid UUID", told)
    return value.lower()


Uuid = Annotated[str, AfterValidator(_uuid), WithJsonSchema({"type": "string", "format": "uuid"})]
TaskId = Annotated[Uuid, Scoped("task")]
JobId = Annotated[Uuid, Scoped("job")]
RunId = Annotated[Uuid, Scoped("run")]
ProjectId = Annotated[Uuid, Scoped("project")]
Reason = Annotated[str, Field(min_length=1, max_length=MOST_REASON)]
Cursor = Annotated[str, Field(min_length=1, max_length=MOST_CHARACTERS)]


class Paged(Input):
    """Which part of a list."""

    limit: Whole = Field(default=50, ge=1, le=200, description="Most items of a page, 1 to 200.")
    cursor: Cursor | None = Field(
        default=None, description="`next_cursor` of the page before; leave it out for the first."
    )

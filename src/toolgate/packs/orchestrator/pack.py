"""The pack's name and dialect, and the arguments its tools share."""

from collections.abc import Set as AbstractSet
from typing import Annotated, ClassVar, LiteralString

from pydantic import AfterValidator, Field, ValidationInfo, WithJsonSchema
from pydantic_core import PydanticCustomError

from toolgate.gate.arguments import TOLD_FORMAT, TOLD_PRIVATE
from toolgate.gate.cursors import MAX_CHARACTERS
from toolgate.gate.dialects import STATUS
from toolgate.gate.fields import UUID, Whole, plain_id
from toolgate.gate.scope import Scoped
from toolgate.gate.tool import Input, Pack
from toolgate.packs.orchestrator.secret_values import secret_in
from toolgate.packs.orchestrator.unseen_text import hidden_characters_in

ORCHESTRATOR = Pack(
    "orchestrator", STATUS, "Tasks, projects, preferences and tools of a team of agents."
)

MAX_REASON = 1000
MAX_ID = 256
MAX_NAME = 200
KEPT_AS_IT_STANDS: LiteralString = (
    "{field} holds what looks like {secret}, and it is kept as it stands. Leave it out, or write a "
    "reference such as env:NAME"
)


def _uuid(value: str, info: ValidationInfo) -> str:
    if not UUID.fullmatch(value):
        told = {"field": info.field_name}
        raise PydanticCustomError(TOLD_FORMAT, "{field} must be a valid UUID", told)
    return plain_id(value)


def _line(value: str, info: ValidationInfo) -> str:
    if not value.isprintable() or value != value.strip():
        told = {"field": info.field_name}
        message = "{field} must be printable characters, without spaces at its ends"
        raise PydanticCustomError(TOLD_FORMAT, message, told)
    return value


def _without_secret(value: str, info: ValidationInfo) -> str:
    if secret := secret_in("", value):
        told = {"field": info.field_name, "secret": secret}
        raise PydanticCustomError(TOLD_PRIVATE, KEPT_AS_IT_STANDS, told)
    return value


def _without_hidden(value: str, info: ValidationInfo) -> str:
    if hidden := hidden_characters_in(value):
        told = {"field": info.field_name, "hidden": hidden}
        message = "{field} holds characters that nobody sees ({hidden}). Leave them out"
        raise PydanticCustomError(TOLD_FORMAT, message, told)
    return value


def secret_message(field: str, secret: str) -> str:
    """What is said of a text that holds a secret."""
    return KEPT_AS_IT_STANDS.format(field=field, secret=secret)


Uuid = Annotated[str, AfterValidator(_uuid), WithJsonSchema({"type": "string", "format": "uuid"})]
TaskId = Annotated[Uuid, Scoped("task")]
JobId = Annotated[Uuid, Scoped("job")]
RunId = Annotated[Uuid, Scoped("run")]
ProjectId = Annotated[Uuid, Scoped("project")]
SomeId = Annotated[str, Field(max_length=MAX_ID), AfterValidator(plain_id)]
"""Of one of several kinds of records, which may have UUIDs or names."""
ScopeId = Annotated[SomeId, Field(min_length=1)]
WithoutSecret = AfterValidator(_without_secret)
"""Of a short text that is kept and that others read; it is searched on the event loop."""
Line = Annotated[str, Field(min_length=1, max_length=MAX_NAME), AfterValidator(_line)]
Reason = Annotated[
    str,
    Field(min_length=1, max_length=MAX_REASON),
    AfterValidator(_without_hidden),
    WithoutSecret,
]
Cursor = Annotated[str, Field(min_length=1, max_length=MAX_CHARACTERS)]
NextCursor = Annotated[str, Field(description="Where the next page begins; absent at the end.")]


class Paged(Input):
    """Which part of a list."""

    filters: ClassVar[AbstractSet[str]] = frozenset()
    """Arguments that narrow the list: without one, it has what any value of it would give."""

    limit: Whole = Field(default=50, ge=1, le=200, description="Most items of a page, 1 to 200.")
    cursor: Cursor | None = Field(
        default=None, description="`next_cursor` of the page before; leave it out for the first."
    )

    def filters_left_out(self) -> AbstractSet[str]:
        """The filters that are not given."""
        return {name for name in self.filters if getattr(self, name) is None}


class ForTaskOwner(Input):
    """For which task; an admin, or who runs the whole system, acts for the user who created it."""

    task_id: TaskId = Field(description="The task that this is for, a UUID.")

"""The first line of a backup: what it must say before anything else of the file is believed."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)

from toolgate.backups.archive import ALTERED, BadBackup

Name = Annotated[str, StringConstraints(min_length=1, max_length=63)]
"""Of a table or a column: no database takes a longer one."""
Revision = Annotated[str, StringConstraints(min_length=1, max_length=63)]
Kind = Literal["text", "integer", "number", "boolean", "json", "bytes", "other"]


def _time(text: str) -> str:
    datetime.fromisoformat(text)  # raises ValueError
    return text


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Moment(_Part):
    time: Annotated[str, StringConstraints(max_length=40), AfterValidator(_time)]
    snapshot: str | None = None


class _Table(_Part):
    name: Name
    columns: Annotated[list[Annotated[tuple[Name, Kind], Field(strict=False)]], Field(min_length=1)]


class _Head(_Part):
    toolgate_backup: int
    made_by: str
    moment: _Moment
    database: Literal["sqlite", "postgresql"]
    revisions: dict[Annotated[str, StringConstraints(max_length=63)], Revision]
    without_documents: str | None
    strangers: list[str]
    tables: list[_Table]


class _End(BaseModel):
    model_config = ConfigDict(strict=True)

    sequences: dict[Name, int]


def checked_head(head: dict[str, Any]) -> None:
    """Raise `BadBackup`, which says what is wrong with a first line."""
    _check(_Head, head, "its first line")
    names = [one["name"] for one in head["tables"]]
    if twice := next((one for one in names if names.count(one) > 1), None):
        raise BadBackup(ALTERED.format(f"its first line: table {twice} stands in it twice"))


def checked_end(end: dict[str, Any]) -> None:
    """Raise `BadBackup`, which says what is wrong with a last line."""
    _check(_End, end, "its last line")


def _check(model: type[BaseModel], line: dict[str, Any], what: str) -> None:
    try:
        model.model_validate(line)
    except ValidationError as invalid:
        first = invalid.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(one) for one in first["loc"])[:100]
        problems = {"missing": "is missing", "extra_forbidden": "does not belong there"}
        problem = problems.get(first["type"], "is not what it must be")
        raise BadBackup(ALTERED.format(f"{what}: {place} {problem}")) from None

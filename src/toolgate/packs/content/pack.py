"""The pack's name and dialect, and the arguments and answers its tools share."""

import re
from datetime import datetime
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, WithJsonSchema
from pydantic_core import PydanticCustomError

from toolgate.gate.arguments import TOLD_FORMAT
from toolgate.gate.dialects import ENVELOPE
from toolgate.gate.errors import NotFound
from toolgate.gate.fields import Whole
from toolgate.gate.tool import Input, Output, Pack, StoredOutput
from toolgate.packs.content.store import Page, RowPage

A = TypeVar("A", bound=StoredOutput)

CONTENT = Pack("content", ENVELOPE, "Published content of projects, to be read only.")

DEFAULT_LIMIT = 20
MAX_LIMIT = 100
MAX_PAGE = 1_000_000_000
MAX_TEXT = 1000
UUID = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.IGNORECASE
)
DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
MOMENT = re.compile(r"(\d{4}-\d{2}-\d{2}T(?:[01]\d|2[0-3]):\d{2}:\d{2})(?:\.(\d{1,3}))?Z", re.ASCII)
DATES = "YYYY-MM-DD, or YYYY-MM-DDTHH:mm:ssZ"
SECONDS, MILLISECONDS = len("2025-02-20T14:30:00Z"), len("2025-02-20T14:30:00.000Z")


def _uuid(value: str, info: ValidationInfo) -> str:
    if not UUID.fullmatch(value):
        context = {"field": info.field_name}
        raise PydanticCustomError(TOLD_FORMAT, "{field} must be a valid UUID", context)
    return value.lower()


def _moment(value: str, info: ValidationInfo) -> str:
    """Take a date or a timestamp as the specification prints them: no fraction, or a full one."""
    moment = as_timestamp(value)
    if moment and (DAY.fullmatch(value) or len(value) in (SECONDS, MILLISECONDS)):
        return moment
    context = {"field": info.field_name}
    raise PydanticCustomError(
        TOLD_FORMAT,
        "{field} must be a real date, YYYY-MM-DD, or a UTC timestamp, YYYY-MM-DDTHH:mm:ss[.sss]Z",
        context,
    )


def as_timestamp(value: str) -> str | None:
    """A date or a UTC timestamp as it is stored, to the millisecond; None for anything else."""
    parts = MOMENT.fullmatch(value)
    if parts is None and DAY.fullmatch(value) is None:
        return None
    second, fraction = (parts[1], parts[2] or "") if parts else (f"{value}T00:00:00", "")
    try:
        datetime.fromisoformat(second)
    except ValueError:
        return None
    return f"{second}.{fraction.ljust(3, '0')}Z"


def _unless_empty(value: object) -> object:
    return None if value == "" else value


Uuid = Annotated[str, AfterValidator(_uuid), WithJsonSchema({"type": "string", "format": "uuid"})]
Moment = Annotated[
    str,
    AfterValidator(_moment),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": r"^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}:\d{2}(\.\d{3})?Z)?$",
        }
    ),
]
Substring = Annotated[
    Annotated[str, Field(max_length=MAX_TEXT)] | None, BeforeValidator(_unless_empty)
]
"""Every text contains the empty one, so an empty substring filters nothing."""


class Paged(Input):
    """Which page of a list."""

    page: Whole = Field(default=1, ge=1, le=MAX_PAGE, description="Page number, starting at 1.")
    limit: Whole = Field(
        default=DEFAULT_LIMIT, ge=1, le=MAX_LIMIT, description="Items per page, 1 to 100."
    )

    @property
    def requested_page(self) -> Page:
        """The page, as the store takes it."""
        return Page(self.page, self.limit)


class InProject(Input):
    """Arguments of everything that belongs to a project."""

    projectId: Uuid = Field(description="The project's id, a UUID.")  # noqa: N815 (the seed's)


class Pagination(Output):
    """Where in the list the page is."""

    page: int = Field(description="The page.")
    limit: int = Field(description="Items per page.")
    total: int = Field(description="Items in the whole list.")
    hasMore: bool = Field(description="Whether pages follow.")  # noqa: N815 (the seed's)


def page_output(envelope: type[A], args: Paged, rows: RowPage) -> A:
    """The page in its envelope."""
    place = {
        "page": args.page,
        "limit": args.limit,
        "total": rows.total,
        "hasMore": args.page * args.limit < rows.total,
    }
    return envelope.model_construct(data=rows.rows, pagination=place)


def require_project(page: RowPage | None) -> RowPage:
    """The page, unless there is no such project."""
    if page is None:
        raise NotFound("Project not found")
    return page

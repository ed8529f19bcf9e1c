"""What is to be imported, and what became of it."""

from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter, ValidationError

from toolgate.packs.content.importing.files import BadFile
from toolgate.packs.content.importing.rows import MAX_KEY, Key, Url
from toolgate.packs.content.pack import as_timestamp
from toolgate.packs.content.sql.upserts import Row

# The fields that an option says for all rows that have none.
OPTIONS = {"query": "--query", "page_url": "--page", "date_start": "--start", "date_end": "--end"}


class UnknownProject(LookupError):
    """There is no project with this slug."""

    def __init__(self, known: list[str]) -> None:
        super().__init__("unknown project")
        self.known = known


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What is to be imported, and where to."""

    project: str
    kind: str | None = None
    create_project: str | None = None
    start: str | None = None
    end: str | None = None
    page: str | None = None
    query: str | None = None
    dry_run: bool = False


@dataclass(slots=True)
class Report:
    """What became of a file; `stored` is 0 once a row was refused, or in a dry run."""

    kind: str = ""
    rows: int = 0
    stored: int = 0
    refused: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    new_project: bool = False
    """Whether the project is made, or would be."""


def option_values(options: ImportOptions) -> Row:
    """The values of the options in `OPTIONS`, by their fields."""
    for date in (options.start, options.end):
        if date is not None and as_timestamp(date) is None:
            raise BadFile(f"{date!r} is no real date. Write --start and --end as YYYY-MM-DD.")
    if options.page is not None and not _fits(Url, options.page):
        raise BadFile(f"{options.page!r} is no page. Write --page as a whole URL, https://…")
    if options.query is not None and not _fits(Key, options.query):
        raise BadFile(f"Write --query as text of 1 to {MAX_KEY} characters.")
    values = {
        "query": options.query and options.query.strip(),
        "page_url": options.page and options.page.strip(),
        "date_start": options.start,
        "date_end": options.end,
    }
    return {name: value for name, value in values.items() if value}


def _fits(form: Any, value: str) -> bool:
    try:
        # A command line may hold bytes that are no text; they cannot be stored.
        value.encode()
        TypeAdapter(form).validate_python(value.strip())
    except (UnicodeEncodeError, ValidationError):
        return False
    return bool(value.strip())

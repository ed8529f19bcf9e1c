"""Reading a file row by row: CSV with a header, or one JSON object a line."""

import csv
import difflib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import orjson

from toolgate.packs.content.importing.rows import MODELS

BOM = b"\xef\xbb\xbf"
FORMS = (".csv", ".jsonl")
MAX_LINE = 1 << 20
MARKS = {
    "relations": {"relation_type"},
    "performance": {"clicks", "impressions"},
    "blocks": {"claim_type", "text"},
    "entities": {"entity_type", "title", "slug"},
}
ALIASES = {
    "top_queries": "query",
    "queries": "query",
    "page": "page_url",
    "pages": "page_url",
    "top_pages": "page_url",
    "position": "avg_position",
    "average_position": "avg_position",
    "entity": "entity_id",
    "from": "from_id",
    "from_entity_id": "from_id",
    "from_entity_type": "from_type",
    "to": "to_id",
    "to_entity_id": "to_id",
    "to_entity_type": "to_type",
}


class BadFile(ValueError):
    """The file as a whole cannot be imported; the sentence says why."""


@dataclass(frozen=True, slots=True)
class Line:
    """A row as the file has it, with the number of the line where it begins."""

    number: int
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    problem: str = ""


def check_file(path: Path) -> None:
    """Raise unless there is such a file, of a form we read."""
    if path.is_dir():
        raise BadFile(f"{path} is a folder, not a file.")
    if not path.exists():
        raise BadFile(f"There is no file {path}.")
    if path.suffix.lower() not in FORMS:
        raise BadFile(f"{path.name} is neither {' nor '.join(FORMS)}.")


def stamp(path: Path) -> tuple[int, int] | None:
    """What changes when a file does: its size, and when it was written; None without a file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_size, status.st_mtime_ns


def read(path: Path, progress: Callable[[int], None]) -> Iterator[Line]:
    """The rows of a file; `progress` takes how many bytes were read."""
    check_file(path)
    texts = _texts(path, progress)
    return _csv_rows(texts) if path.suffix.lower() == ".csv" else _json_rows(texts)


def _texts(path: Path, progress: Callable[[int], None]) -> Iterator[str]:
    with path.open("rb") as file:
        number = 0
        while raw := file.readline(MAX_LINE):
            number += 1
            if len(raw) == MAX_LINE:
                raise BadFile(f"Line {number} is longer than {MAX_LINE:,} bytes.")
            progress(len(raw))
            yield _decode(raw.removeprefix(BOM) if number == 1 else raw, number)


def _decode(raw: bytes, number: int) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise BadFile(f"The file is not UTF-8 (line {number}). Save it as UTF-8.") from None


def _csv_rows(texts: Iterator[str]) -> Iterator[Line]:
    reader = csv.reader(texts, strict=True)
    header: list[str] | None = None
    begins = 1
    try:
        for cells in reader:
            if header is None and any(cells):
                header = _header(cells)
            elif header is not None and cells:
                yield _csv_line(begins, header, cells)
            begins = reader.line_num + 1
    except csv.Error as broken:
        raise BadFile(f"The CSV cannot be read from line {begins} on: {broken}.") from None


def _header(cells: list[str]) -> list[str]:
    names = [cell.strip() for cell in cells]
    if not all(names):
        place = names.index("") + 1
        raise BadFile(f"Column {place} has no name. The first line must be a header.")
    _check_distinct(names)
    return names


def _csv_line(number: int, header: list[str], cells: list[str]) -> Line:
    if len(cells) != len(header):
        return Line(number, problem=f"has {len(cells)} cells, but the header has {len(header)}")
    return Line(number, dict(zip(header, cells, strict=True)))


def _json_rows(texts: Iterator[str]) -> Iterator[Line]:
    for number, text in enumerate(texts, 1):
        if not text.strip():
            continue
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError as broken:
            yield Line(number, problem=f"is no JSON: {broken.msg}, column {broken.colno}")
            continue
        if isinstance(value, dict) and value:
            yield Line(number, cast("dict[str, Any]", value))
        else:
            yield Line(number, problem="must be a JSON object with at least one field")


@lru_cache(1024)
def column(name: str) -> str:
    """A column's name as the tables have it: `Top queries` is `query`, `pageUrl` `page_url`."""
    snake_case = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[\s-]+", "_", name.strip()).lower()
    return ALIASES.get(snake_case, snake_case)


def kind_of(names: Iterable[str]) -> str:
    """The kind of rows that have these columns."""
    columns = {column(name) for name in names}
    for kind, marks in MARKS.items():
        if marks & columns:
            return kind
    column_names = ", ".join(sorted(names)) or "none"
    raise BadFile(
        f"The columns do not say what the rows are ({column_names}). "
        f"Name them as the API does, or say --kind: {', '.join(MODELS)}."
    )


@lru_cache(1024)
def unknown_columns(kind: str, names: tuple[str, ...]) -> str:
    """The names that rows of this kind do not have, each with the nearest one; else nothing."""
    fields = list(MODELS[kind].model_fields)
    hints: list[str] = []
    for name in names:
        if column(name) not in fields:
            near = difflib.get_close_matches(column(name), fields, n=1)
            hints.append(f"{name!r}" + (f" (did you mean {camel(near[0])!r}?)" if near else ""))
    return ", ".join(hints)


def _check_distinct(names: Iterable[str]) -> None:
    first: dict[str, str] = {}
    for name in names:
        if (other := first.setdefault(column(name), name)) is not name:
            raise BadFile(f"Columns {other!r} and {name!r} are the same.")


def camel(name: str) -> str:
    """A column's name as the API has it."""
    first, *more = name.split("_")
    return first + "".join(word.capitalize() for word in more)

"""From a file's rows to the tables, in one transaction."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails
from sqlalchemy import Connection, Table, select

from toolgate.content_import.files import BadFile, Line, camel, column, kind_of, read, unknown
from toolgate.content_import.rows import MODELS
from toolgate.db import content_tables as tables
from toolgate.db.content_loading import KEYS, Row, id_for, store
from toolgate.db.content_words import ENTITY_TYPES
from toolgate.db.engine import Database
from toolgate.gate.parsing import TOLD
from toolgate.packs.content.pack import UUID, as_moment

BATCH = 1000
SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
TABLES: dict[str, Table] = {
    "entities": tables.entities,
    "relations": tables.relations,
    "blocks": tables.blocks,
    "performance": tables.performance,
}
# What makes a block without an id: the same words about the same entity are the same block.
NATURAL = KEYS | {tables.blocks.name: ("project_id", "entity_id", "text")}
# What a stored row must share with one that brings the same id.
SAME = KEYS | {tables.blocks.name: ("project_id",)}


class UnknownProject(LookupError):
    """There is no project with this slug."""

    def __init__(self, known: list[str]) -> None:
        super().__init__("unknown project")
        self.known = known


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be imported, and where to."""

    project: str
    kind: str | None = None
    create_project: str | None = None
    start: str | None = None
    end: str | None = None
    dry_run: bool = False


@dataclass(slots=True)
class Report:
    """What became of a file; `stored` is 0 once a row was refused, or in a dry run."""

    kind: str = ""
    rows: int = 0
    stored: int = 0
    refused: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])


class _Wrong(ValueError):
    """Why a row is refused."""


async def load(
    database: Database, path: Path, wanted: Wanted, seen: Callable[[int], None]
) -> Report:
    """Import a file; `seen` is told how many bytes were read."""
    if wanted.dry_run:
        return await database.read(lambda connection: _Import(connection, wanted).run(path, seen))
    async with database.transaction() as tx:
        report = await tx.run(lambda connection: _Import(connection, wanted).run(path, seen))
        if report.refused:
            tx.abandon()
    return report


class _Import:
    """One file on its way into one project."""

    def __init__(self, connection: Connection, wanted: Wanted) -> None:
        self._connection = connection
        self._wanted = wanted
        self._now = datetime.now(UTC).isoformat(timespec="milliseconds")[:23] + "Z"
        self._report = Report(wanted.kind or "")
        self._batch: list[tuple[int, Row]] = []
        self._lines: dict[tuple[str, ...], int] = {}
        self._defaults = self._period()
        self._project = self._project_id()
        # The project's entities: their types by id, and their ids by `type/slug`.
        self._types: dict[str, str] = {}
        self._names: dict[str, str] = {}

    def _period(self) -> Row:
        given = {"date_start": self._wanted.start, "date_end": self._wanted.end}
        for value in filter(None, given.values()):
            if as_moment(value) is None:
                raise BadFile(f"{value!r} is no real date. Write --start and --end as YYYY-MM-DD.")
        return {name: value for name, value in given.items() if value}

    def _project_id(self) -> str:
        slug, name = self._wanted.project, self._wanted.create_project
        known = dict(
            self._connection.execute(select(tables.projects.c.slug, tables.projects.c.id)).all()
        )
        if slug in known:
            return known[slug]
        if name is None:
            raise UnknownProject(sorted(known))
        if not SLUG.fullmatch(slug) or not name.strip():
            raise BadFile("A project needs a name, and a slug such as my-project.")
        made = {"created_at": self._now, "updated_at": self._now}
        row = {"id": id_for(tables.projects, slug), "slug": slug, "name": name.strip()} | made
        if not self._wanted.dry_run:
            store(self._connection, tables.projects, [row])
        return row["id"]

    def run(self, path: Path, seen: Callable[[int], None]) -> Report:
        """Check all rows, and store them as long as none was refused."""
        begun = False
        for line in read(path, seen):
            self._report.rows += 1
            if not begun and line.values:
                self._begin(path, line.values)
                begun = True
            self._take(line)
        if not begun:
            self._without_rows(path)
        self._flush()
        self._report.refused.sort()
        if self._report.refused or self._wanted.dry_run:
            self._report.stored = 0
        return self._report

    def _without_rows(self, path: Path) -> None:
        if not self._report.refused:
            what = "is empty" if path.stat().st_size == 0 else "has no rows"
            raise BadFile(f"{path.name} {what}.")
        if not self._report.kind:
            line, reason = self._report.refused[0]
            raise BadFile(f"{path.name} has no row that can be read; line {line} {reason}.")

    def _begin(self, path: Path, values: Row) -> None:
        kind = self._report.kind = self._wanted.kind or kind_of(values)
        if path.suffix.lower() == ".csv":
            self._check_columns(kind, values)
        if kind != "performance" and self._defaults:
            raise BadFile(f"--start and --end are for performance; these rows are {kind}.")
        if kind != "entities":
            table = tables.entities
            chosen = select(table.c.id, table.c.entity_type, table.c.slug)
            for row in self._connection.execute(chosen.where(table.c.project_id == self._project)):
                self._types[row.id] = row.entity_type
                self._names[f"{row.entity_type}/{row.slug}"] = row.id

    def _check_columns(self, kind: str, values: Row) -> None:
        if told := unknown(kind, tuple(values)):
            raise BadFile(f"Rows of {kind} have no such columns: {told}.")
        have = {column(name) for name in values} | set(self._defaults)
        fields = MODELS[kind].model_fields.items()
        lacking = [camel(name) for name, one in fields if one.is_required() and name not in have]
        if lacking:
            period = any(name.startswith("date") for name in lacking)
            hint = " Say the period with --start and --end." if period else ""
            raise BadFile(f"Rows of {kind} need also: {', '.join(lacking)}.{hint}")

    def _take(self, line: Line) -> None:
        try:
            if line.problem:
                raise _Wrong(line.problem)
            row = self._row(line.values)
            self._only_once(line.number, row)
        except _Wrong as wrong:
            self._report.refused.append((line.number, str(wrong)))
            return
        self._batch.append((line.number, row))
        if len(self._batch) == BATCH:
            self._flush()

    def _row(self, values: Row) -> Row:
        kind = self._report.kind
        if told := unknown(kind, tuple(values)):
            raise _Wrong(f"unknown: {told}")
        if len({column(name) for name in values}) < len(values):
            raise _Wrong("names a field twice")
        given = {name: _stripped(value) for name, value in values.items()}
        named = {column(name): value for name, value in given.items() if value not in ("", None)}
        try:
            row = MODELS[kind].model_validate(self._defaults | named).model_dump()
        except ValidationError as invalid:
            names = {column(name): name for name in values}
            found = invalid.errors(include_url=False)
            raise _Wrong("; ".join(_reason(one, names) for one in found)) from None
        return self._completed(row)

    def _completed(self, row: Row) -> Row:
        if row["project_id"] not in (None, self._project):
            raise _Wrong("projectId names another project")
        row["project_id"] = self._project
        for name in row.keys() & {"created_at", "updated_at", "captured_at"}:
            row[name] = row[name] or self._now
        if row.get("entity_id"):
            row["entity_id"] = self._entity("entityId", row["entity_id"])
        if self._report.kind == "relations":
            for end in ("from", "to"):
                row[f"{end}_id"] = self._end(end, row[f"{end}_id"], row[f"{end}_type"])
        table = TABLES[self._report.kind]
        row["id"] = row["id"] or id_for(table, *(row[name] for name in NATURAL[table.name]))
        return row

    def _entity(self, name: str, value: str) -> str:
        id = self._names.get(value, value.lower())
        if id not in self._types:
            raise _Wrong(f"{name} names no entity of this project: {value!r}")
        return id

    def _end(self, end: str, value: str, wanted: str) -> str:
        if wanted in ENTITY_TYPES:
            id = self._entity(end, value)
            if self._types[id] != wanted:
                raise _Wrong(f"{end} must be a {wanted}, and {value!r} is a {self._types[id]}")
            return id
        if not UUID.fullmatch(value):
            raise _Wrong(f"{end} must be the UUID of a {wanted}")
        return value.lower()

    def _only_once(self, number: int, row: Row) -> None:
        for names in (KEYS[TABLES[self._report.kind].name], ("id",)):
            first = self._lines.setdefault(tuple(row[name] for name in names), number)
            if first != number:
                told = ", ".join(camel(name) for name in names if name != "project_id")
                raise _Wrong(f"has the same {told} as line {first}")

    def _flush(self) -> None:
        """Check the batch against what is stored, and store it."""
        batch, self._batch = self._batch, []
        if not batch:
            return
        table = TABLES[self._report.kind]
        taken = self._taken(table, [row for _, row in batch])
        for number, row in batch:
            if row["id"] in taken:
                reason = f"id {row['id']} is that of another row already"
                self._report.refused.append((number, reason))
        if not self._report.refused and not self._wanted.dry_run:
            store(self._connection, table, [row for _, row in batch])
            self._report.stored += len(batch)

    def _taken(self, table: Table, rows: list[Row]) -> set[str]:
        by_id = {row["id"]: row for row in rows}
        names = SAME[table.name]
        found: Any = self._connection.execute(select(table).where(table.c.id.in_(by_id)))
        return {
            there["id"]
            for there in found.mappings()
            if any(there[name] != by_id[there["id"]][name] for name in names)
        }


def _stripped(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


def _reason(error: ErrorDetails, names: dict[str, str]) -> str:
    """What is wrong with a field, under the name it has in the file."""
    if not error["loc"]:
        return error["msg"]
    own = str(error["loc"][0])
    name = names.get(own, camel(own))
    if error["type"] == "missing":
        return f"{name} is missing"
    message = error["msg"].replace("Input should", "must").replace("String should", "must")
    if error["type"] == TOLD:
        message = message.removeprefix(f"{own} ")
    return f"{name} {message[:1].lower()}{message[1:]}"

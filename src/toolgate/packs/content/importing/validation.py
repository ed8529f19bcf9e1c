"""The first pass: every row of a file is checked, and those of a good file are kept."""

from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

import orjson
from pydantic import ValidationError
from pydantic_core import ErrorDetails
from sqlalchemy import Connection, select

from toolgate.gate.arguments import RULES
from toolgate.packs.content.importing.existing_rows import TABLES, Batch, PackedBatch, reconcile
from toolgate.packs.content.importing.files import (
    BadFile,
    Line,
    camel,
    column,
    kind_of,
    read,
    unknown_columns,
)
from toolgate.packs.content.importing.options import OPTIONS, ImportOptions, Report, option_values
from toolgate.packs.content.importing.rows import KEPT, MODELS
from toolgate.packs.content.pack import UUID
from toolgate.packs.content.sql import tables
from toolgate.packs.content.sql.upserts import KEYS, Row, id_for
from toolgate.packs.content.vocabulary import ENTITY_TYPES

BATCH = 1000
# What makes a block without an id: the same words about the same entity are the same block.
NATURAL = KEYS | {tables.blocks.name: ("project_id", "entity_id", "text")}


class _RowRefused(ValueError):
    """Why a row is refused."""


class FileValidator:
    """One file on its way into one project."""

    def __init__(
        self, connection: Connection, options: ImportOptions, project: str, now: str
    ) -> None:
        self._connection = connection
        self._options = options
        self._project = project
        self._now = now
        self.report = Report(options.kind or "")
        self.batches: list[PackedBatch] = []
        self._batch: Batch = []
        self._bytes = 0
        self._lines: dict[bytes, int] = {}
        self._defaults = option_values(options)
        # The project's entities: their types by id, and their ids by `type/slug`.
        self._types: dict[str, str] = {}
        self._names: dict[str, str] = {}

    def run(self, path: Path, progress: Callable[[int], None]) -> None:
        """Check all rows, and keep them as long as none was refused."""

        def count_bytes(count: int) -> None:
            self._bytes += count
            progress(count)

        begun = False
        for line in read(path, count_bytes):
            self.report.rows += 1
            if not begun and line.values:
                self._begin(path, line.values)
                begun = True
            self._take(line)
        if not begun:
            self._without_rows(path)
        self._flush()
        self.report.refused.sort()

    def _without_rows(self, path: Path) -> None:
        if not self.report.refused:
            what = "is empty" if path.stat().st_size == 0 else "has no rows"
            raise BadFile(f"{path.name} {what}.")
        if not self.report.kind:
            line, reason = self.report.refused[0]
            raise BadFile(f"{path.name} has no row that can be read; line {line} {reason}.")

    def _begin(self, path: Path, values: Row) -> None:
        kind = self.report.kind = self._options.kind or kind_of(values)
        if path.suffix.lower() == ".csv":
            self._check_columns(kind, values)
        if kind != "performance" and self._defaults:
            options = " and ".join(OPTIONS[name] for name in OPTIONS if name in self._defaults)
            verb = "is" if len(self._defaults) == 1 else "are"
            raise BadFile(f"{options} {verb} for performance; these rows are {kind}.")
        if kind != "entities":
            table = tables.entities
            statement = select(table.c.id, table.c.entity_type, table.c.slug)
            own = statement.where(table.c.project_id == self._project)
            for row in self._connection.execute(own):
                self._types[row.id] = row.entity_type
                self._names[f"{row.entity_type}/{row.slug}"] = row.id

    def _check_columns(self, kind: str, values: Row) -> None:
        if message := unknown_columns(kind, tuple(values)):
            raise BadFile(f"Rows of {kind} have no such columns: {message}.")
        have = {column(name) for name in values} | set(self._defaults)
        fields = MODELS[kind].model_fields.items()
        lacking = [name for name, one in fields if one.is_required() and name not in have]
        if lacking:
            options = " and ".join(OPTIONS[name] for name in OPTIONS if name in lacking)
            hint = f" Say it with {options}." if options and kind == "performance" else ""
            missing = ", ".join(camel(name) for name in lacking)
            raise BadFile(f"Rows of {kind} need also: {missing}.{hint}")

    def _take(self, line: Line) -> None:
        try:
            if line.problem:
                raise _RowRefused(line.problem)
            row, has_id = self._row(line.values)
            self._only_once(line.number, row, has_id=has_id)
        except _RowRefused as refusal:
            self.report.refused.append((line.number, str(refusal)))
            return
        self._batch.append((line.number, row))
        if len(self._batch) == BATCH:
            self._flush()

    def _row(self, values: Row) -> tuple[Row, bool]:
        """The row, and whether the file names its id."""
        kind = self.report.kind
        if message := unknown_columns(kind, tuple(values)):
            raise _RowRefused(f"unknown: {message}")
        names = {column(name): name for name in values}
        if len(names) < len(values):
            raise _RowRefused("names a field twice")
        cells = {own: _strip(values[name]) for own, name in names.items()}
        present = {own: value for own, value in cells.items() if value not in ("", None)}
        try:
            # What the file does not have stays as it is stored: an empty cell clears it.
            absent = KEPT[kind] - names.keys()
            row = MODELS[kind].model_validate(self._defaults | present).model_dump(exclude=absent)
        except ValidationError as invalid:
            errors = invalid.errors(include_url=False)
            raise _RowRefused("; ".join(_reason(one, names) for one in errors)) from None
        has_id = bool(row["id"])
        return self._complete(row), has_id

    def _complete(self, row: Row) -> Row:
        if row["project_id"] not in (None, self._project):
            raise _RowRefused("projectId names another project")
        row["project_id"] = self._project
        for name in row.keys() & {"created_at", "updated_at", "captured_at"}:
            row[name] = row[name] or self._now
        if row.get("entity_id"):
            row["entity_id"] = self._entity("entityId", row["entity_id"])
        if self.report.kind == "relations":
            for end in ("from", "to"):
                row[f"{end}_id"] = self._end(end, row[f"{end}_id"], row[f"{end}_type"])
        table = TABLES[self.report.kind]
        row["id"] = row["id"] or id_for(table, *(row[name] for name in NATURAL[table.name]))
        return row

    def _entity(self, name: str, value: str) -> str:
        id = self._names.get(value, value.lower())
        if id not in self._types:
            raise _RowRefused(f"{name} names no entity of this project: {value!r}")
        return id

    def _end(self, end: str, value: str, kind: str) -> str:
        if kind in ENTITY_TYPES:
            id = self._entity(end, value)
            if self._types[id] != kind:
                raise _RowRefused(f"{end} must be a {kind}, and {value!r} is a {self._types[id]}")
            return id
        if not UUID.fullmatch(value):
            raise _RowRefused(f"{end} must be the UUID of a {kind}")
        return value.lower()

    def _only_once(self, number: int, row: Row, *, has_id: bool) -> None:
        table = TABLES[self.report.kind].name
        for names in (KEYS[table], ("id",)):
            # A digest, as millions of keys would not fit in memory.
            key = blake2b(orjson.dumps([row[name] for name in names]), digest_size=16).digest()
            first = self._lines.setdefault(key, number)
            if first != number:
                # An id that the file does not name was made from these.
                same = names if has_id or names != ("id",) else NATURAL[table]
                columns = ", ".join(camel(name) for name in same if name != "project_id")
                raise _RowRefused(f"has the same {columns} as line {first}")

    def _flush(self) -> None:
        """Check the batch against what is stored, and keep it."""
        batch, self._batch = self._batch, []
        size, self._bytes = self._bytes, 0
        if batch:
            reconciled = reconcile(self._connection, self.report.kind, self._project, batch)
            self.report.refused.extend(reconciled.refused)
        if self.report.refused or self._options.dry_run:
            self.batches.clear()
        else:
            self.batches.append(PackedBatch.of(batch, size))


def _strip(value: object) -> object:
    return value.strip() if isinstance(value, str) else value


def _reason(error: ErrorDetails, names: dict[str, str]) -> str:
    """What is wrong with a field, under the name it has in the file."""
    if not error["loc"]:
        return error["msg"]
    own = str(error["loc"][0])
    name = names.get(own, camel(own))
    if error["type"] == "missing":
        option = OPTIONS.get(own) if own not in names else None
        return f"{name} is missing" + (f" ({option} says it for all rows)" if option else "")
    message = error["msg"].replace("Input should", "must").replace("String should", "must")
    if error["type"] in RULES:
        message = message.removeprefix(f"{own} ")
    return f"{name} {message[:1].lower()}{message[1:]}"

"""From a file to the tables: all rows are checked first, then stored in one transaction."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Connection, select

from toolgate.db.engine import Database
from toolgate.gate.operators import note_operator
from toolgate.packs.content.importing.existing_rows import TABLES, PackedBatch, reconcile
from toolgate.packs.content.importing.files import BadFile, stamp
from toolgate.packs.content.importing.options import ImportOptions, Report, UnknownProject
from toolgate.packs.content.importing.validation import FileValidator
from toolgate.packs.content.sql import tables
from toolgate.packs.content.sql.upserts import id_for, store

SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


async def import_file(
    database: Database, path: Path, options: ImportOptions, progress: Callable[[int], None]
) -> Report:
    """Import a file; `progress` takes how many bytes were checked, and then how many stored."""
    # Only read as yet: a large file takes long to check, and others want to write meanwhile.
    checked = await database.read(lambda connection: _check(connection, path, options, progress))
    report = checked.report
    if report.refused or options.dry_run:
        return report
    async with database.transaction() as tx:
        await tx.run(lambda connection: _store(connection, path, options, checked, progress))
        if report.refused:
            report.stored = 0
            tx.abandon()
    return report


@dataclass(frozen=True, slots=True)
class _Checked:
    """What the first pass found."""

    stamp: tuple[int, int] | None
    project: str
    batches: list[PackedBatch]
    report: Report


def _check(
    connection: Connection,
    path: Path,
    options: ImportOptions,
    progress: Callable[[int], None],
) -> _Checked:
    before = stamp(path)
    project, there = _project(connection, options)
    checking = FileValidator(connection, options, project, _now())
    checking.run(path, progress)
    checking.report.new_project = not there
    return _Checked(before, project, checking.batches, checking.report)


def _store(
    connection: Connection,
    path: Path,
    options: ImportOptions,
    checked: _Checked,
    progress: Callable[[int], None],
) -> None:
    """Store what was checked, unless something changed since that forbids it."""
    if stamp(path) != checked.stamp:
        raise BadFile(f"{path.name} changed while it was imported. Import it again.")
    project, there = _project(connection, options)
    if project != checked.project:
        raise BadFile(f"Project {options.project} was made anew meanwhile. Import again.")
    if not there:
        times = dict.fromkeys(("created_at", "updated_at"), _now())
        names = {"slug": options.project, "name": (options.create_project or "").strip()}
        store(connection, tables.projects, [{"id": project} | names | times])
    report = checked.report
    report.new_project = not there
    for packed in checked.batches:
        reconciled = reconcile(connection, report.kind, project, packed.batch())
        report.refused.extend(reconciled.refused)
        if not report.refused and reconciled.rows:
            store(connection, TABLES[report.kind], reconciled.rows)
            report.stored += len(reconciled.rows)
        progress(packed.size)
    if not report.refused:
        note_operator(connection, "content.import", project_id=project)


def _project(connection: Connection, options: ImportOptions) -> tuple[str, bool]:
    """The project's id, and whether it is there already."""
    slug, name = options.project, options.create_project
    projects = dict(connection.execute(select(tables.projects.c.slug, tables.projects.c.id)).all())
    if slug in projects:
        return projects[slug], True
    if name is None:
        raise UnknownProject(sorted(projects))
    if not SLUG.fullmatch(slug) or not name.strip():
        raise BadFile("A project needs a name, and a slug such as my-project.")
    return id_for(tables.projects, slug), False


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")[:23] + "Z"

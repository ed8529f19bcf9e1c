"""Reading a backup into an empty database: all of it in one transaction, or nothing."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, inspect, text, update

from toolgate.backups.archive import ALTERED, ArchiveReader, BadBackup
from toolgate.backups.emptying import drop_tables, filled_table
from toolgate.backups.head import checked_end, checked_head
from toolgate.backups.layout import (
    Column,
    Table,
    layout_of,
    owner_of,
    quoted,
    sequence_names,
    table_of,
)
from toolgate.backups.triggers import triggers_off
from toolgate.backups.values import decode, decoders
from toolgate.db.credential_changes import note_all_changed
from toolgate.db.engine import Database
from toolgate.db.schemas import GATE, Schema
from toolgate.db.upgrades import make_at, upgrade_within
from toolgate.db.workflow_holds import hold_schedules
from toolgate.db.workflow_tables import workflow_runs

BATCH = 500
AUDIT = "audit"
UNDER_WAY = (
    "It had not ended when the backup was made that this database is restored from. It may have "
    "ended since, or the original still does it: look there, then retry what is needed."
)
PATIENT = (
    "SET LOCAL statement_timeout = 0",
    "SET LOCAL idle_in_transaction_session_timeout = 0",
)
OWN_TRANSACTION = text(
    "UPDATE changes SET transaction_id = CAST(CAST(pg_current_xact_id() AS text) AS bigint)"
)
Progress = Callable[[int], None]
"""Told how many rows are stored, in the thread that stores them."""


class NotEmpty(Exception):
    """The database holds something already; the message says what to do."""


class Restore(NamedTuple):
    """How a backup is read into a database."""

    schemas: Sequence[Schema]
    """Of every pack that can be had, enabled or not."""
    enabled: Sequence[Schema]
    """Of the packs whose tables are made in any case."""
    without: Sequence[str] = ()
    """Packs whose rows are left out."""
    replace: bool = False
    """Whether what is there goes."""
    finish: Callable[[Connection], None] = lambda _: None
    """What else is stored in the same transaction."""
    progress: Progress = lambda _: None


class Restored(NamedTuple):
    """What was read."""

    head: dict[str, Any]
    rows: dict[str, int]
    """By table."""


async def read_backup(database: Database, archive: ArchiveReader, restore: Restore) -> Restored:
    """Read a backup into a database, in a thread; whatever fails, nothing is changed."""
    checked_head(archive.head)
    chosen = chosen_schemas(archive.head, restore)
    return await database.write(lambda connection: _load(connection, archive, chosen, restore))


def chosen_schemas(head: dict[str, Any], restore: Restore) -> list[tuple[Schema, str]]:
    """Whose tables are to be made, and at which revision."""
    known = {one.pack or "": one for one in (GATE, *restore.schemas)}
    chosen: list[tuple[Schema, str]] = []
    for pack, revision in head["revisions"].items():
        if pack in restore.without:
            continue
        schema = known.get(pack)
        if schema is None:
            raise BadBackup(
                f"The backup holds records of pack {pack!r}, which is not installed. Install it, "
                f"or leave them out with --without {pack}."
            )
        if revision not in schema.revisions:
            raise BadBackup(
                f"The backup has {schema.describe(revision)}, which this version does not know "
                f"(its newest is {schema.newest}). Use the version of toolgate that made the "
                "backup, or a newer one."
            )
        chosen.append((schema, revision))
    if not chosen or chosen[0][0] is not GATE:
        raise BadBackup(ALTERED.format("it names no schema"))
    return chosen


def _load(
    connection: Connection,
    archive: ArchiveReader,
    chosen: list[tuple[Schema, str]],
    restore: Restore,
) -> Restored:
    if connection.dialect.name == "postgresql":
        for statement in PATIENT:
            connection.exec_driver_sql(statement)
    else:
        connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
    known = [one.pack for one in (*restore.schemas, *restore.enabled) if one.pack]
    packs = list(dict.fromkeys([*known, *layout_of(connection).packs]))
    if not restore.replace and (table := filled_table(connection, packs)):
        raise NotEmpty(f"The database is not empty: {table} has rows.")
    drop_tables(connection, packs)
    for schema, revision in chosen:
        make_at(connection, schema, revision)
    counts = _load_tables(connection, archive, restore)
    _continue_numbers(connection, archive, counts)
    if connection.dialect.name == "postgresql":
        # Numbers of transactions are those of the server that the backup was made on.
        connection.execute(OWN_TRANSACTION)
    upgrade_within(connection, _upgraded(chosen, restore))
    connection.exec_driver_sql("DELETE FROM document_index_state")  # so that it is made anew
    _rest(connection)
    note_all_changed(connection)
    restore.finish(connection)
    return Restored(archive.head, counts)


def _rest(connection: Connection) -> None:
    """End background work that had not ended, and hold what starts by itself.

    Since the backup it may have been done, or the original is about to do it.
    """
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    ended = {"status": "failed", "error": UNDER_WAY, "ended_at": now, "updated_at": now}
    nobody = dict.fromkeys(["due_at", "lease", "alone"])
    not_ended = workflow_runs.c.ended_at.is_(None)
    connection.execute(update(workflow_runs).where(not_ended).values(ended | nobody))
    hold_schedules(connection, now)


def _upgraded(chosen: list[tuple[Schema, str]], restore: Restore) -> list[Schema]:
    packs = [schema for schema, _ in chosen if schema is not GATE]
    return packs + [one for one in restore.enabled if one not in packs]


def _load_tables(
    connection: Connection, archive: ArchiveReader, restore: Restore
) -> dict[str, int]:
    told = {
        one["name"]: [Column(*pair) for pair in one["columns"]] for one in archive.head["tables"]
    }
    packs = [name for name in archive.head["revisions"] if name]
    left_out = tuple(f"{name}_" for name in restore.without if name in packs)
    database = inspect(connection)
    counts: dict[str, int] = {}
    if strange := next((name for name in told if owner_of(name, packs) is None), None):
        raise BadBackup(ALTERED.format(f"table {strange} is none of toolgate's"))
    with triggers_off(connection, [name for name in told if not name.startswith(left_out or "\0")]):
        for name in archive.tables():
            if name not in told or name in counts:
                where = "twice in it" if name in told else "not in its first line"
                raise BadBackup(ALTERED.format(f"table {name[:63]} is {where}"))
            columns = told[name]
            skipped = bool(left_out) and name.startswith(left_out)
            table = None if skipped else _target(database.has_table(name), name, columns, database)
            with _told(connection, name):
                for done in _load_rows(connection, archive, name, columns, table):
                    counts[name] = done
                    restore.progress(sum(counts.values()))
    return {name: count for name, count in counts.items() if not name.startswith(left_out or "\0")}


@contextmanager
def _told(connection: Connection, table: str) -> Generator[None]:
    """Say in which table the database refuses a row; its values are nobody's business."""
    driver: Any = connection.dialect.loaded_dbapi
    refused = (driver.IntegrityError, driver.DataError, driver.InterfaceError)
    try:
        yield
    except (*refused, driver.ProgrammingError, OverflowError, UnicodeError) as problem:
        why = str(problem).partition("\n")[0].rstrip(".")
        raise BadBackup(
            f"The database refuses a row of {table} ({why}): the backup was altered, or holds what "
            "this kind of database does not store."
        ) from None


def _target(there: bool, name: str, columns: list[Column], database: Any) -> Table:
    """The table that rows go into, with its own columns in the file's order."""
    own = {one.name: one for one in table_of(database, name).columns} if there else {}
    if set(own) != {one.name for one in columns}:
        raise BadBackup(ALTERED.format(f"table {name} has other columns than its schema"))
    return Table(name, [own[one.name] for one in columns])


def _load_rows(
    connection: Connection,
    archive: ArchiveReader,
    name: str,
    columns: list[Column],
    table: Table | None,
) -> Iterator[int]:
    """Store the rows of a table; yields how many are stored so far."""
    done = 0
    batches = archive.rows(name, len(columns), BATCH)
    if table is None:
        for _ in batches:
            yield 0
        return
    empty = f"DELETE FROM {quoted(name)}"  # noqa: S608 (a table's own name)
    connection.exec_driver_sql(empty)  # of what migrations have put there
    driver: Any = connection.connection.dbapi_connection
    sqlite = connection.dialect.name == "sqlite"
    places = decoders(table.columns, as_text=not sqlite)
    if sqlite:
        marks = ", ".join("?" * len(columns))
        statement = f"INSERT INTO {quoted(name)} ({table.listed}) VALUES ({marks})"  # noqa: S608 (ours)
        for rows in batches:
            decode(rows, places)
            driver.executemany(statement, rows)
            done += len(rows)
            yield done
        return
    with driver.cursor().copy(f"COPY {quoted(name)} ({table.listed}) FROM STDIN") as copy:
        for rows in batches:
            decode(rows, places)
            for row in rows:
                copy.write_row(row)
            done += len(rows)
            yield done


def _continue_numbers(
    connection: Connection, archive: ArchiveReader, counts: dict[str, int]
) -> None:
    """New rows get numbers behind every one that was ever given.

    Of the audit, PostgreSQL remembers numbers that no row has, and where SQLite does, rows were
    removed: there the last row's own counts.
    """
    checked_end(archive.end)
    last: dict[str, int] = dict(archive.end["sequences"])
    from_server = archive.head["database"] == "postgresql"
    database = inspect(connection)
    for name in counts:
        table = table_of(database, name)
        given = 0 if name == AUDIT and from_server else last.get(name, 0)
        if connection.dialect.name == "sqlite":
            if name in last:
                _set_in_sqlite(connection, name, given)
            continue
        for column, sequence in sequence_names(connection, table).items():
            most = f"SELECT greatest(max({quoted(column)}), :given) FROM {quoted(name)}"  # noqa: S608 (ours)
            number = connection.scalar(text(most), {"given": given}) or 0
            told = {"sequence": sequence, "number": max(number, 1), "called": number > 0}
            connection.execute(
                text("SELECT setval(CAST(:sequence AS regclass), :number, :called)"), told
            )


def _set_in_sqlite(connection: Connection, table: str, given: int) -> None:
    """SQLite noted the largest number of a row that it was given itself."""
    noted = connection.scalar(
        text("SELECT seq FROM sqlite_sequence WHERE name = :name"), {"name": table}
    )
    change = (
        "INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :seq)"
        if noted is None
        else "UPDATE sqlite_sequence SET seq = :seq WHERE name = :name"
    )
    if given > (noted or 0):
        connection.execute(text(change), {"name": table, "seq": given})

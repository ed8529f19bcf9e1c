"""Writing a backup: every row of one moment, a few hundred at a time, while others write."""

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from toolgate.backups.archive import ArchiveWriter, Sink
from toolgate.backups.layout import Layout, Table, layout_of, quoted, sequences_of
from toolgate.db.engine import Database
from toolgate.db.threads import JobStopped, current_job

BATCH, BATCH_BYTES = 500, 1024**2
"""Rows at a time, and about how many bytes of them."""
BEGIN = {
    "sqlite": ["BEGIN"],
    "postgresql": [
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        # The store of the backup may be slow, and a snapshot is no more once its session ends.
        "SET LOCAL idle_in_transaction_session_timeout = 0",
        "SET LOCAL statement_timeout = 0",
    ],
}
MAX_STRANGERS = 100
"""Tables that are named though they are left out: the first line is short."""
DOCUMENTS, CHANGES = "documents", "changes"
Row = Sequence[Any]
Progress = Callable[[int, int], None]
"""Told how many rows of about how many are written, in the thread that writes them."""


class Request(NamedTuple):
    """What is asked of a backup."""

    left_out: Callable[[str], bool] | None = None
    """Whether the document at this path, `collection/id`, is left out."""
    note: str | None = None
    """What was asked for, as the file tells it."""
    progress: Progress = lambda _done, _total: None


async def write_backup(database: Database, sink: Sink, request: Request) -> dict[str, Any]:
    """Write a backup in a thread; what its first and its last line say."""
    return await database.read(lambda connection: _write(connection, sink, request))


def _write(connection: Connection, sink: Sink, request: Request) -> dict[str, Any]:
    for statement in BEGIN[connection.dialect.name]:
        connection.exec_driver_sql(statement)
    try:
        return _dump(connection, sink, request)
    finally:
        # Not by SQLAlchemy: it did not begin it.
        driver: Any = connection.connection.dbapi_connection
        if not connection.invalidated:
            driver.execute("ROLLBACK")


def _dump(connection: Connection, sink: Sink, request: Request) -> dict[str, Any]:
    moment = _moment(connection)  # the first look: from here on nothing changes for us
    layout = layout_of(connection)
    head = _head(connection, layout, moment, request)
    archive = ArchiveWriter(sink, head)
    total, done, omitted = _estimate(connection, layout.tables), 0, 0
    for table in layout.tables:
        archive.begin(table.name)
        is_kept = _choice(table, request)
        for rows in _batches(connection, table):
            kept = rows if is_kept is None else [row for row in rows if is_kept(row)]
            omitted += len(rows) - len(kept)
            archive.rows(kept)
            done += len(rows)
            request.progress(done, max(done, total))
            _stop_if_unwanted()
        archive.end()
    end = archive.close(sequences=sequences_of(connection, layout.tables), omitted=omitted)
    return head | end


def _moment(connection: Connection) -> dict[str, Any]:
    """When this is, in words of the clock and of the database."""
    moment: dict[str, Any] = {}
    if connection.dialect.name == "postgresql":
        asked = text("SELECT CAST(pg_current_snapshot() AS text)")
        moment["snapshot"] = connection.scalar(asked)
    else:
        connection.exec_driver_sql("SELECT 1 FROM sqlite_master LIMIT 1").all()
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return {"time": now} | moment


def _head(
    connection: Connection, layout: Layout, moment: dict[str, Any], request: Request
) -> dict[str, Any]:
    return {
        "made_by": f"toolgate {version('toolgate')}",
        "moment": moment,
        "database": connection.dialect.name,
        "revisions": layout.revisions,
        "without_documents": request.note,
        "strangers": layout.strangers[:MAX_STRANGERS],
        "tables": [
            {"name": one.name, "columns": [list(column) for column in one.columns]}
            for one in layout.tables
        ],
    }


def _estimate(connection: Connection, tables: Sequence[Table]) -> int:
    """About how many rows there are: counting them would take as long as reading them."""
    if connection.dialect.name == "postgresql":
        asked = text(
            "SELECT greatest(reltuples, 0) FROM pg_class WHERE oid = CAST(:name AS regclass)"
        )
        counts = [connection.scalar(asked, {"name": quoted(one.name)}) for one in tables]
    else:
        counts = [
            connection.scalar(text(f"SELECT count(*) FROM {quoted(one.name)}"))  # noqa: S608 (a table's own name)
            for one in tables
        ]
    return int(sum(one or 0 for one in counts))


def _batches(connection: Connection, table: Table) -> Iterator[list[Row]]:
    """The rows of a table, some at a time.

    As the driver hands them over: SQLAlchemy's work on each would double the time.
    """
    listed = ", ".join(_selected(one.name, one.kind) for one in table.columns)
    query = f"SELECT {listed} FROM {quoted(table.name)}"  # noqa: S608 (names of the database itself)
    driver: Any = connection.connection.dbapi_connection
    numbers = [place for place, one in enumerate(table.columns) if one.kind == "number"]
    # PostgreSQL's driver would fetch all of them at once.
    sqlite = connection.dialect.name == "sqlite"
    rows = driver.execute(query) if sqlite else driver.cursor().stream(query)
    batch: list[Row] = []
    size = 0
    for row in rows:
        batch.append(_told(row, numbers) if numbers else row)
        size += sum(len(one) for one in row if isinstance(one, str | bytes))
        if len(batch) == BATCH or size > BATCH_BYTES:
            yield batch
            batch, size = [], 0
    yield batch


def _selected(name: str, kind: str) -> str:
    """JSON as the text it was stored as, and so all that this program has no type for."""
    as_text = kind in {"json", "other"}
    return f"CAST({quoted(name)} AS TEXT)" if as_text else quoted(name)


def _told(row: Row, numbers: Sequence[int]) -> Row:
    """A row whose numbers JSON can tell: it has no infinity."""
    if all(row[one] is None or math.isfinite(row[one]) for one in numbers):
        return row
    told = list(row)
    for one in numbers:
        if told[one] is not None and not math.isfinite(told[one]):
            told[one] = {"number": str(told[one])}
    return told


def _choice(table: Table, request: Request) -> Callable[[Row], bool] | None:
    """Whether a row is kept; None where all are."""
    left_out = request.left_out
    if left_out is None or table.name not in {DOCUMENTS, CHANGES}:
        return None
    place = {column.name: number for number, column in enumerate(table.columns)}
    if table.name == DOCUMENTS:
        collection, id_ = place["collection"], place["id"]
        return lambda row: not left_out(f"{row[collection]}/{row[id_]}")
    store, path = place["store"], place["path"]
    return lambda row: row[store] != DOCUMENTS or not left_out(row[path])


def _stop_if_unwanted() -> None:
    job = current_job()
    if job and job.stopped:
        raise JobStopped

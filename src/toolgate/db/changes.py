"""The change log, as it is written: before and after of every record, in the write's commit.

`gate/changes.py` reads it.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import JSON, Connection, bindparam, text

from toolgate.db.prepared import PreparedWrite
from toolgate.db.row_writes import RowWrite, insertion
from toolgate.db.tables import changes as table

DOCUMENTS, TREE, RECORDS = "documents", "tree", "records"


class Change(NamedTuple):
    """What a write has made of one record."""

    store: str
    """Which kind of store it is in."""
    namespace: str
    """The pack whose record it is."""
    path: str
    """Of a document: its collection and its id; in a tree, the keys from the root;
    of a record in a table of a pack, the table and the primary key."""
    before: Any
    """None where there was nothing."""
    after: Any
    created_at: str


WORDS = (
    "INSERT INTO changes (call, store, namespace, path, before, after, created_at{}) "
    "VALUES (:call, :store, :namespace, :path, :before, :after, :created_at{})"
)
IMAGES = [bindparam(name, type_=JSON(none_as_null=True)) for name in ("before", "after")]
TRANSACTION_ID = "CAST(CAST(pg_current_xact_id() AS text) AS bigint)"
INSERT = {
    "sqlite": PreparedWrite(text(WORDS.format("", "")).bindparams(*IMAGES)),
    "postgresql": PreparedWrite(
        text(WORDS.format(", transaction_id", f", {TRANSACTION_ID}")).bindparams(*IMAGES)
    ),
}
PART = insertion(table, ("call", *Change._fields), computed=f"transaction_id {TRANSACTION_ID}")


def rows_of_changes(call: str | None, changes: Sequence[Change]) -> RowWrite:
    """The same rows as `store_changes` stores."""
    return RowWrite(PART, [(call, *one) for one in changes])


def store_changes(connection: Connection, call: str | None, changes: Sequence[Change]) -> None:
    """Store a row for each; `call` is the id of the audit row that they belong to."""
    rows = [one._asdict() | {"call": call} for one in changes]
    INSERT[connection.dialect.name].run(connection, rows)

"""What a write of one document does to rows: the same as `writing.py` does, in one statement.

What was read before is told, with its version: where the document is another one by then, nothing
is stored this way.
"""

from typing import NamedTuple

from sqlalchemy import Text, bindparam, cast, literal_column, select

from toolgate.adapters.sql.documents.index import CollectionIndex
from toolgate.db.changes import DOCUMENTS, Change, rows_of_changes
from toolgate.db.prepared import PreparedStatement
from toolgate.db.row_writes import Part, RowWrite, columns_of, insertion
from toolgate.db.tables import document_index, documents
from toolgate.ports.documents import Fields, Write
from toolgate.ports.transforms import fields_after, now

PLACE = ("namespace", "collection", "id")
VERSIONED = PreparedStatement(
    select(documents.c.fields, cast(literal_column("xmin"), Text).label("version")).where(
        *(documents.c[name] == bindparam(name) for name in PLACE)
    )
)
"""A document and PostgreSQL's number for its version."""
INSERT = insertion(
    documents,
    (*PLACE, "fields"),
    rest="ON CONFLICT (namespace, collection, id) DO NOTHING RETURNING namespace, collection, id",
)._replace(
    guard="SELECT number FROM {rows} JOIN {done} USING (namespace, collection, id)",
    record=len(PLACE),
)
UPDATE = Part(
    (*columns_of(documents, PLACE), ("version", "text"), ("fields", "json")),
    "UPDATE documents SET fields = given.fields FROM {rows} AS given "
    "WHERE (documents.namespace, documents.collection, documents.id) "
    "= (given.namespace, given.collection, given.id) "
    "AND documents.xmin = CAST(given.version AS xid) RETURNING number",
    guard="SELECT number FROM {done}",
    record=len(PLACE),
)
DELETE = Part(
    (*columns_of(documents, PLACE), ("version", "text")),
    "DELETE FROM documents USING {rows} AS given "
    "WHERE (documents.namespace, documents.collection, documents.id) "
    "= (given.namespace, given.collection, given.id) "
    "AND documents.xmin = CAST(given.version AS xid) RETURNING number",
    guard="SELECT number FROM {done}",
    record=len(PLACE),
)
ENTRY = ("field", "key", "id")
ADD_ENTRIES = insertion(document_index, ENTRY, rest="ON CONFLICT (field, key, id) DO NOTHING")
REMOVE_ENTRIES = Part(
    columns_of(document_index, ENTRY),
    "DELETE FROM document_index USING {rows} "
    "WHERE (document_index.field, document_index.key, document_index.id) "
    "= (those.field, those.key, those.id)",
)


class Version(NamedTuple):
    """A document as it was read."""

    fields: Fields
    version: str


def rows_of_write(
    write: Write,
    place: tuple[str, str, str],
    read: Version | None,
    index: CollectionIndex,
    call: str | None,
) -> list[RowWrite]:
    """The parts of a write, given what was read; None for no document."""
    time = now()
    before = read.fields if read else None
    after = fields_after(write, before, time)
    if before is None and after is None:
        return []
    old, new = index.entries(before), index.entries(after)
    id = place[2]
    namespace, path = place[0], "/".join(place[1:])
    return [
        _record(place, read, after),
        RowWrite(REMOVE_ENTRIES, [(*one, id) for one in sorted(old - new)]),
        RowWrite(ADD_ENTRIES, [(*one, id) for one in sorted(new - old)]),
        rows_of_changes(call, [Change(DOCUMENTS, namespace, path, before, after, time)]),
    ]


def _record(place: tuple[str, str, str], read: Version | None, after: Fields | None) -> RowWrite:
    if read is None:
        return RowWrite(INSERT, [(*place, after)])
    if after is None:
        return RowWrite(DELETE, [(*place, read.version)])
    return RowWrite(UPDATE, [(*place, read.version, after)])

"""Many documents written at once: one statement for what is done to each table.

What is stored is the same as `writing.py` stores one by one. Where something is not as it should
be, such as a document that somebody else has just made, that is what finds out.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from sqlalchemy import Connection

from toolgate.adapters.sql.documents.index import CollectionIndex, is_large
from toolgate.adapters.sql.documents.reading import fields_of
from toolgate.adapters.sql.documents.rows import ADD_ENTRIES, ENTRY, INSERT, PLACE, REMOVE_ENTRIES
from toolgate.adapters.sql.documents.statements_of_one import (
    ADD_ENTRY,
    DELETE_ONE,
    INSERT_ONE,
    REMOVE_ENTRY,
    UPDATE_ONE,
)
from toolgate.db.changes import DOCUMENTS, Change
from toolgate.db.many_rows import ManyRows
from toolgate.db.row_writes import Part, columns_of
from toolgate.db.tables import documents
from toolgate.ports.documents import Create, Fields, Reference, Write
from toolgate.ports.transforms import fields_after

MOST_ENTRIES = 20_000
"""So many are stored before more are made."""
MOST_DOCUMENTS = 200
OF_PLACE = tuple(f"of_{name}" for name in PLACE)
_same = (
    "WHERE (documents.namespace, documents.collection, documents.id) "
    "= (those.namespace, those.collection, those.id)"
)
INSERT_ALL = ManyRows(INSERT, INSERT_ONE, (*PLACE, "fields"))
UPDATE_ALL = ManyRows(
    Part(
        columns_of(documents, (*PLACE, "fields")),
        f"UPDATE documents SET fields = those.fields FROM {{rows}} {_same}",  # noqa: S608
    ),
    UPDATE_ONE,
    (*OF_PLACE, "fields"),
)
DELETE_ALL = ManyRows(
    Part(columns_of(documents, PLACE), f"DELETE FROM documents USING {{rows}} {_same}"),  # noqa: S608
    DELETE_ONE,
    OF_PLACE,
)
ADD_ALL = ManyRows(ADD_ENTRIES, ADD_ENTRY, ENTRY)
REMOVE_ALL = ManyRows(REMOVE_ENTRIES, REMOVE_ENTRY, tuple(f"of_{name}" for name in ENTRY))

Row = tuple[Any, ...]


class Taken(Exception):
    """A document that is to be made is there already."""


class ManyDocuments:
    """Writes of different documents of one namespace, all of one time."""

    def __init__(
        self,
        connection: Connection,
        namespace: str,
        index_of: Callable[[str], CollectionIndex],
        time: str,
    ) -> None:
        self._connection = connection
        self._namespace = namespace
        self._index_of = index_of
        self._time = time
        self._changes: list[Change] = []
        self._clear()

    def _clear(self) -> None:
        self._made: list[Row] = []
        self._changed: list[Row] = []
        self._deleted: list[Row] = []
        self._old_entries: list[Row] = []
        self._new_entries: list[Row] = []

    def store(self, writes: Sequence[Write], absent: Collection[Reference]) -> list[Change]:
        """Do them, in parts that are not too large; what has changed, in the order of the writes.

        Raises `Taken` for a document that is there, of those to create and of `absent`.
        """
        for first in range(0, len(writes), MOST_DOCUMENTS):
            some = writes[first : first + MOST_DOCUMENTS]
            there = [_reference(one) for one in some if not isinstance(one, Create)]
            there = [one for one in there if one not in absent]
            found = fields_of(self._connection, self._namespace, there, for_update=True)
            for one in some:
                self._add(one, found.pop(_reference(one), None))
            self._store()
        return self._changes

    def _add(self, write: Write, before: Fields | None) -> None:
        after = fields_after(write, before, self._time)
        place = (self._namespace, write.collection, write.document_id)
        if before is None and after is None:
            return
        if before is None:
            self._made.append((*place, after))
        elif after is None:
            self._deleted.append(place)
        else:
            self._changed.append((*place, after))
        index = self._index_of(write.collection)
        old, new = index.entries(before), index.entries(after)
        self._old_entries += [(*one, write.document_id) for one in old - new]
        self._new_entries += [(*one, write.document_id) for one in new - old]
        path = f"{write.collection}/{write.document_id}"
        self._changes.append(Change(DOCUMENTS, self._namespace, path, before, after, self._time))
        entries = len(self._old_entries) + len(self._new_entries)
        if entries > MOST_ENTRIES or is_large(after):
            self._store()

    def _store(self) -> None:
        if INSERT_ALL.run(self._connection, self._made) != len(self._made):
            raise Taken
        UPDATE_ALL.run(self._connection, self._changed)
        DELETE_ALL.run(self._connection, self._deleted)
        # In the order in which the database keeps them.
        REMOVE_ALL.run(self._connection, sorted(self._old_entries))
        ADD_ALL.run(self._connection, sorted(self._new_entries))
        self._clear()


def _reference(write: Write) -> Reference:
    return (write.collection, write.document_id)

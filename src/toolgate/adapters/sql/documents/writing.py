"""Writing documents, each together with its entries in the index."""

from collections.abc import Callable, Collection, Sequence

from sqlalchemy import Connection

from toolgate.adapters.sql.documents.index import CollectionIndex, Entry, is_large, rows_of
from toolgate.adapters.sql.documents.many import ManyDocuments, Taken
from toolgate.adapters.sql.documents.reading import fields_of
from toolgate.adapters.sql.documents.statements_of_one import (
    ADD_ENTRY,
    DELETE_ONE,
    INSERT_ONE,
    REMOVE_ENTRY,
    UPDATE_ONE,
)
from toolgate.db.changes import DOCUMENTS, Change
from toolgate.db.grouped_writes import NotShared
from toolgate.db.transactions import Transaction
from toolgate.ports.documents import (
    Create,
    DocumentExists,
    DocumentNotFound,
    DocumentRefused,
    Fields,
    Reference,
    Write,
)
from toolgate.ports.transforms import fields_after, now

IndexOf = Callable[[str], CollectionIndex]
MANY = 8
"""From so many on, it pays to write documents at once."""


class AlreadyThere(Exception):
    """A document exists that must not, as somebody decided something on its absence."""


class Writing:
    """Writes to one namespace in one transaction; all of one time."""

    def __init__(
        self, tx: Transaction, connection: Connection, namespace: str, index_of: IndexOf
    ) -> None:
        self._tx = tx
        self._connection = connection
        self._namespace = namespace
        self._index_of = index_of
        self._now = now()
        self._changes: list[Change] = []

    def store(self, writes: Sequence[Write], absent: Collection[Reference] = ()) -> None:
        """Do writes in order, and log them; all of them or, where one raises, none.

        Raises `AlreadyThere` where one of `absent` is there before a write makes it.
        """
        left = set(absent)
        if len(writes) == 1:  # it raises before it changes anything
            self._store(writes[0], left)
        else:
            with self._connection.begin_nested():
                if not self._store_at_once(writes, left):
                    for one in writes:
                        self._store(one, left)
        self._tx.changed(self._connection, self._changes)

    def _store_at_once(self, writes: Sequence[Write], absent: Collection[Reference]) -> bool:
        """Whether they could be; if not, nothing is stored."""
        different = {(one.collection, one.document_id) for one in writes}
        if self._tx.in_group or len(writes) < MANY or len(different) < len(writes):
            return False
        many = ManyDocuments(self._connection, self._namespace, self._index_of, self._now)
        try:
            with self._connection.begin_nested():
                self._changes += many.store(writes, absent)
        except (Taken, DocumentNotFound, DocumentRefused):
            return False  # one by one, the first that cannot be is found
        return True

    def _store(self, write: Write, absent: set[Reference]) -> None:
        reference = (write.collection, write.document_id)
        if reference in absent:
            absent.remove(reference)
            self._make(write, AlreadyThere)
        elif isinstance(write, Create):
            self._make(write, DocumentExists)
        else:
            self._change(write, reference)

    def _make(self, write: Write, taken: type[Exception]) -> None:
        after = fields_after(write, None, self._now)
        if after is not None and not self._insert(write, after):
            raise taken(write.document_id)

    def _change(self, write: Write, reference: Reference) -> None:
        while True:
            locked = fields_of(self._connection, self._namespace, [reference], for_update=True)
            before = locked.get(reference)
            if self._tx.in_group and is_large(before):
                raise NotShared
            after = fields_after(write, before, self._now)
            if before is not None:
                return self._replace(write, before, after)
            # Somebody else may make it at this very moment: then it is there at the next look.
            if after is None or self._insert(write, after):
                return None

    def _insert(self, write: Write, fields: Fields) -> bool:
        """Store a new document; False, and nothing is stored, where it is there already."""
        entries = self._index_of(write.collection).entries(fields)
        place = {"namespace": self._namespace, "collection": write.collection}
        row = {**place, "id": write.document_id, "fields": fields}
        if INSERT_ONE.run(self._connection, [row]) == 0:
            return False
        self._change_entries(write.document_id, set(), entries)
        self._note(write, None, fields)
        return True

    def _replace(self, write: Write, before: Fields, after: Fields | None) -> None:
        """Store another state of a document that is there and locked; None for no document."""
        index = self._index_of(write.collection)
        entries = index.entries(after)
        place = {"of_namespace": self._namespace, "of_collection": write.collection}
        row = {**place, "of_id": write.document_id}
        if after is None:
            DELETE_ONE.run(self._connection, [row])
        else:
            UPDATE_ONE.run(self._connection, [{**row, "fields": after}])
        self._change_entries(write.document_id, index.entries(before), entries)
        self._note(write, before, after)

    def _note(self, write: Write, before: Fields | None, after: Fields | None) -> None:
        path = f"{write.collection}/{write.document_id}"
        self._changes.append(Change(DOCUMENTS, self._namespace, path, before, after, self._now))

    def _change_entries(self, id: str, before: set[Entry], after: set[Entry]) -> None:
        if gone := before - after:
            rows = [{"of_field": field, "of_key": key, "of_id": id} for field, key in sorted(gone)]
            REMOVE_ENTRY.run(self._connection, rows)
        if new := after - before:
            ADD_ENTRY.run(self._connection, rows_of(new, id))

"""Documents in collections, with the filter rules of Firestore on every adapter.

A document is a JSON object with an id of its own. A collection is a name, or a path
with an odd number of segments (`users/abc123/permissions`) for documents that belong
to another document. Each pack has documents of its own, in the namespace of its name.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

from toolgate.db.transactions import Transaction

Json: TypeAlias = Any
Fields: TypeAlias = dict[str, Json]

MAX_IN_VALUES = 30
MAX_ID_BYTES = 1500
MAX_FIELD_BYTES = 1500


class Operator(StrEnum):
    """The comparisons a filter may use."""

    EQUAL = "=="
    NOT_EQUAL = "!="
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="
    IN = "in"
    ARRAY_CONTAINS = "array-contains"


@dataclass(frozen=True, slots=True)
class Filter:
    """One condition on one field; `field` is a dotted path into the document."""

    field: str
    operator: Operator
    value: Json

    @property
    def path(self) -> list[str]:
        """The segments of the dotted path."""
        return self.field.split(".")


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document as it lies in the store."""

    id: str
    fields: Fields


class DocumentExists(Exception):
    """A document with this id is already in the collection; nothing was written."""


class StoreUnavailable(Exception):
    """The store cannot be reached or refuses the credentials.

    The message is fit for a caller; the cause is for the log.
    """


class DocumentStore(Protocol):
    """Reads and creates documents.

    Every method raises `StoreUnavailable` when the store does not answer.
    """

    joins_transaction: bool
    """Whether a write becomes visible only when the gate's transaction commits."""

    async def get(self, collection: str, document_id: str) -> Fields | None:
        """Return the fields of one document, or None."""
        ...

    async def query(
        self, collection: str, filters: Sequence[Filter], limit: int
    ) -> Sequence[StoredDocument]:
        """Return at most `limit` documents that pass every filter.

        The order is total and the same for the same data: embedded stores answer in the order
        of creation, Firestore in the order of document ids (of the compared field first, where
        a range filter is used).
        """
        ...

    async def collections(self) -> Sequence[str]:
        """Return the names of the collections, sorted; none that belongs to a document."""
        ...

    async def create(
        self, tx: Transaction, collection: str, fields: Fields, document_id: str | None
    ) -> str:
        """Store a new document and return its id, made up when none is given.

        Atomic: of two creations of one id exactly one succeeds, the other raises
        `DocumentExists` and changes nothing.
        """
        ...

    async def check(self) -> None:
        """Raise `StoreUnavailable` unless the store answers."""
        ...

    async def close(self) -> None:
        """Give connections back."""
        ...

"""Documents in collections, with the filter rules of Firestore on every adapter.

A document is a JSON object with an id of its own. A collection is a name, or a path
with an odd number of segments (`users/abc123/permissions`) for documents that belong
to another document. Each pack has documents of its own, in the namespace of its name.
"""

import secrets
import string
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, TypeAlias, TypeVar

from toolgate.db.transactions import Transaction

Json: TypeAlias = Any
Fields: TypeAlias = dict[str, Json]
Reference: TypeAlias = tuple[str, str]
"""The collection and the id of a document."""
T = TypeVar("T")

MAX_IN_VALUES = 30
MAX_ID_BYTES = 1500
MAX_FIELD_BYTES = 1500
DOCUMENT_ID = "__name__"
"""Where an order names a field: the document's id."""
LETTERS = string.ascii_letters + string.digits
LETTER_OF_BYTE = bytes(ord(LETTERS[byte % len(LETTERS)]) for byte in range(256))
UNEVEN_BYTES = bytes(range(256 - 256 % len(LETTERS), 256))
"""Left out, so that every letter is as likely as the others."""
ID_LENGTH = 20


class Operator(StrEnum):
    """The comparisons a filter may use."""

    EQUAL = "=="
    NOT_EQUAL = "!="
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="
    IN = "in"
    NOT_IN = "not-in"
    ARRAY_CONTAINS = "array-contains"
    ARRAY_CONTAINS_ANY = "array-contains-any"


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
class Order:
    """One field by which documents are ordered: a dotted path, or `DOCUMENT_ID`."""

    field: str
    descending: bool = False

    @property
    def path(self) -> list[str]:
        """The segments of the dotted path."""
        return self.field.split(".")


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in the order: values of its first fields, one or more."""

    values: tuple[Json, ...]
    inclusive: bool
    """Whether documents exactly there are among the results."""


@dataclass(frozen=True, slots=True)
class Query:
    """Which documents of a collection, in which order.

    Documents that lack a field of the order are left out. `ports.ordering` completes the order,
    so it is total: two documents never share a place.
    """

    collection: str
    filters: Sequence[Filter] = ()
    order: Sequence[Order] = ()
    limit: int | None = None
    start: Cursor | None = None
    end: Cursor | None = None


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document as it lies in the store."""

    id: str
    fields: Fields
    number: int | None = field(default=None, compare=False)
    """More than that of every document created before; None where the store has no such number."""


@dataclass(frozen=True, slots=True)
class Create:
    """A new document; raises `DocumentExists` where its id is taken."""

    collection: str
    document_id: str
    fields: Fields


@dataclass(frozen=True, slots=True)
class Set:
    """The whole document, whatever was there before."""

    collection: str
    document_id: str
    fields: Fields


@dataclass(frozen=True, slots=True)
class Merge:
    """These fields over those that are there, maps into maps; where none are, a new document."""

    collection: str
    document_id: str
    fields: Fields


@dataclass(frozen=True, slots=True)
class Update:
    """New values for some fields by their dotted paths; the document must exist.

    A map replaces the map that is there, as every value does. `DocumentNotFound` otherwise.
    """

    collection: str
    document_id: str
    changes: Fields


@dataclass(frozen=True, slots=True)
class Delete:
    """No such document any more, if there was one. Documents below it stay."""

    collection: str
    document_id: str
    fields: Fields = field(default_factory=dict[str, Json], init=False)


Write: TypeAlias = Create | Set | Merge | Update | Delete


class DocumentExists(Exception):
    """A document with this id is already in the collection; nothing was written."""


class DocumentNotFound(Exception):
    """There is no document to update; nothing was written."""


class DocumentRefused(Exception):
    """The store cannot hold this document. The message is fit for a caller."""


class StoreUnavailable(Exception):
    """The store cannot be reached or refuses the credentials.

    The message is fit for a caller; the cause is for the log.
    """


class StoreDenied(StoreUnavailable):
    """The store does not let us read or write."""


class StoreExhausted(StoreUnavailable):
    """What the store allows us, in requests or in bytes, is used up."""


class StoreContended(StoreUnavailable):
    """Others changed the same documents again and again; nothing was written."""


class DocumentReader(Protocol):
    """Reads documents.

    Every method raises `StoreUnavailable` when the store does not answer.
    """

    async def get(self, collection: str, document_id: str) -> Fields | None:
        """Return the fields of one document, or None."""
        ...

    async def get_many(self, references: Sequence[Reference]) -> Sequence[Fields | None]:
        """Return the fields of each document, or None, in the order asked for."""
        ...

    async def query(self, query: Query) -> Sequence[StoredDocument]:
        """Return the documents that pass every filter, in the query's order."""
        ...


class DocumentTransaction(DocumentReader, Protocol):
    """Reads and writes that happen as one: nothing that was read changes before they are done.

    What is read is the state before the writes of this transaction.
    """

    def write(self, *writes: Write) -> None:
        """Store these, in order, when the work is done."""
        ...


class DocumentStore(DocumentReader, Protocol):
    """Reads and writes documents."""

    joins_transaction: bool
    """Whether a write becomes visible only when the gate's transaction commits."""

    async def collections(self, parent: Reference | None = None) -> Sequence[str]:
        """Return the names of the collections, sorted: of the store, or of one document."""
        ...

    async def write(
        self, tx: Transaction, *writes: Write, conflict: Exception | None = None
    ) -> None:
        """Store these, in order; all of them or, where one raises, none.

        Values may be transforms (`ports.transforms`), which the store works out as it writes.
        Given a `conflict`, that is raised instead of `DocumentExists` and `DocumentNotFound`, at
        the latest where the transaction ends: so the write and its commit go one way together.
        What was given to such a write stays as it is until then.
        """
        ...

    async def transact(
        self, tx: Transaction, work: Callable[[DocumentTransaction], Awaitable[T]]
    ) -> T:
        """Do work that reads, decides and writes, as one.

        It may be begun anew where others change what it read, so it changes nothing else itself.
        Raises `StoreContended` where that happens too often.
        """
        ...

    async def check(self) -> None:
        """Raise `StoreUnavailable` unless the store answers."""
        ...

    async def close(self) -> None:
        """Give connections back."""
        ...


def new_id() -> str:
    """An id for a document whose author gives none, as Firestore makes them."""
    # All random bytes at once: to ask the system for each letter took a tenth of a write.
    letters = b""
    while len(letters) < ID_LENGTH:
        letters += secrets.token_bytes(2 * ID_LENGTH).translate(LETTER_OF_BYTE, UNEVEN_BYTES)
    return letters[:ID_LENGTH].decode()


@contextmanager
def as_conflict(conflict: Exception | None) -> Generator[None]:
    """Raise another error, if one is given, where a document is there or is not."""
    try:
        yield
    except (DocumentExists, DocumentNotFound):
        if conflict is None:
            raise
        raise conflict from None

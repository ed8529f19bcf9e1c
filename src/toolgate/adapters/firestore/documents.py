"""Documents in Google Cloud Firestore, or in its emulator.

Importing this module imports the Google libraries; do so only when a setting asks for them.
"""

import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeVar, Unpack

import anyio

from toolgate.adapters.firestore.client import Connection, Place, refusals
from toolgate.adapters.firestore.errors import CONTENDED, as_store_errors
from toolgate.adapters.firestore.messages import requests
from toolgate.adapters.firestore.names import document_name, parent_name
from toolgate.adapters.firestore.reading import FirestoreReader
from toolgate.adapters.firestore.writes import write_message
from toolgate.db.transactions import Transaction
from toolgate.ports.documents import (
    Create,
    DocumentExists,
    DocumentNotFound,
    DocumentTransaction,
    Reference,
    StoreContended,
    StoreUnavailable,
    Update,
    Write,
    as_conflict,
)

T = TypeVar("T")

NOT_THERE = ("No document to update", "no entity to update")
"""How the message of Firestore, or of its emulator, begins where a document is missing."""
ATTEMPTS = 10
"""How often the work of a transaction is begun."""
PAUSE_SECONDS = 0.02
"""At most so long before it is begun anew, and so much longer each time."""


class FirestoreDocuments(FirestoreReader):
    """A document store in one Firestore database.

    A write is on its way at once: it cannot wait for the gate's transaction, nor be rolled
    back with it. The client is made at the first use.
    """

    joins_transaction: bool = False

    def __init__(self, **place: Unpack[Place]) -> None:
        super().__init__(Connection(**place))

    async def collections(self, parent: Reference | None = None) -> Sequence[str]:
        """Return the names of the collections of the store, or of one document."""
        connection = self._connection

        async def read() -> list[str]:
            request = requests.ListCollectionIdsRequest(parent=parent_name(connection.root, parent))
            return [one async for one in await connection.call("list_collection_ids", request)]

        with as_store_errors():
            return sorted(await connection.repeat(read))

    async def write(
        self, tx: Transaction, *writes: Write, conflict: Exception | None = None
    ) -> None:
        """Store these at once, whatever becomes of the transaction."""
        if writes:
            with as_conflict(conflict):
                await self._commit(writes)

    async def transact(
        self, tx: Transaction, work: Callable[[DocumentTransaction], Awaitable[T]]
    ) -> T:
        """Do work in a transaction of Firestore's, whatever becomes of the gate's."""
        begun = b""
        for attempt in range(ATTEMPTS):
            await anyio.sleep(random.uniform(0, attempt * PAUSE_SECONDS))  # noqa: S311
            begun = await self._begin(begun)
            transaction = _FirestoreTransaction(self._connection, begun)
            try:
                result = await work(transaction)
                await self._commit(transaction.writes, begun)
            except StoreContended:
                continue  # Firestore has ended this one; the next takes its place in the queue
            except BaseException:
                await self._roll_back(begun)
                raise
            return result
        raise StoreContended(CONTENDED)

    async def check(self) -> None:
        """Raise `StoreUnavailable` unless Firestore answers a read."""
        await self.get("toolgate", "check")

    async def close(self) -> None:
        """Close the channel, if one was opened."""
        await self._connection.close()

    async def _begin(self, before: bytes) -> bytes:
        with as_store_errors():
            options = {"read_write": {"retry_transaction": before}}
            request = {"database": self._connection.database, "options": options}
            begun = await self._connection.repeat(
                lambda: self._connection.call("begin_transaction", request)
            )
            return begun.transaction

    async def _roll_back(self, transaction: bytes) -> None:
        """Let go of what was read; if that fails, Firestore does so after a while."""
        request = {"database": self._connection.database, "transaction": transaction}
        with (
            anyio.move_on_after(self._connection.timeout, shield=True),
            suppress(StoreUnavailable),
            as_store_errors(),
        ):
            await self._connection.call("rollback", request)

    async def _commit(self, writes: Sequence[Write], transaction: bytes | None = None) -> None:
        with as_store_errors():
            root = self._connection.root
            names = [document_name(root, one.collection, one.document_id) for one in writes]
            request = requests.CommitRequest(
                database=self._connection.database,
                writes=[write_message(one, name) for one, name in zip(writes, names, strict=True)],
                transaction=transaction,
            )
            try:
                # Never retried: when only the answer was lost, a second attempt would find the
                # document of the first and report it as somebody else's, or add twice.
                await self._connection.call("commit", request)
            except refusals.AlreadyExists as exc:
                taken = _named(Create, writes, f"{exc.message}")
                raise DocumentExists(f"Document exists already: {taken}") from exc
            except refusals.NotFound as exc:
                if not f"{exc.message}".startswith(NOT_THERE):
                    raise  # the database is not there
                absent = _named(Update, writes, f"{exc.message}")
                raise DocumentNotFound(f"Document to update is not there: {absent}") from exc


def _named(kind: type[Write], writes: Sequence[Write], message: str) -> str:
    """The documents of the writes that a message may be about: those that it names, if any."""
    paths = [f"{one.collection}/{one.document_id}" for one in writes if isinstance(one, kind)]
    return ", ".join([one for one in paths if message.endswith(f"/{one}")] or paths)


class _FirestoreTransaction(FirestoreReader):
    def __init__(self, connection: Connection, transaction: bytes) -> None:
        super().__init__(connection, transaction)
        self.writes: list[Write] = []

    def write(self, *writes: Write) -> None:
        """Keep these until the work is done."""
        self.writes += writes

"""Transactions of Firestore: begun anew, given up, and never left open."""

import anyio
import grpc
import pytest
from tests.firestore.wire_server import Refusal, WireServer

from toolgate.adapters.firestore import FirestoreDocuments
from toolgate.adapters.firestore.documents import ATTEMPTS
from toolgate.db.transactions import Transaction
from toolgate.ports.documents import (
    Create,
    DocumentNotFound,
    DocumentTransaction,
    Query,
    Set,
    StoreContended,
    StoreUnavailable,
    Update,
)

pytestmark = pytest.mark.anyio

BEGIN, READ, COMMIT, ROLL_BACK = (
    "BeginTransactionRequest",
    "BatchGetDocumentsRequest",
    "CommitRequest",
    "RollbackRequest",
)
ABORTED = Refusal(grpc.StatusCode.ABORTED, "Aborted due to cross-transaction contention.")
BUSY = Refusal(grpc.StatusCode.UNAVAILABLE, "busy")


class Broken(Exception):
    """What a work raises that goes wrong."""


async def count(transaction: DocumentTransaction) -> int:
    """Add one to a number, by reading and writing it."""
    found = await transaction.get("c", "count") or {"n": 0}
    transaction.write(Set("c", "count", {"n": found["n"] + 1}))
    return found["n"] + 1


async def test_work_is_one_transaction(
    server: WireServer, store: FirestoreDocuments, tx: Transaction
) -> None:
    assert await store.transact(tx, count) == 1
    assert server.calls == [BEGIN, READ, COMMIT]
    assert len(server.transactions) == 0


async def test_work_is_begun_anew_when_somebody_changes_what_it_read(
    server: WireServer, store: FirestoreDocuments, tx: Transaction
) -> None:
    changed_by_others = iter([10, 20])

    async def work(transaction: DocumentTransaction) -> int:
        counted = await count(transaction)
        if (number := next(changed_by_others, None)) is not None:
            await store.write(tx, Set("c", "count", {"n": number}))
        return counted

    assert await store.transact(tx, work) == 21
    assert await store.get("c", "count") == {"n": 21}
    assert server.calls.count(BEGIN) == 3
    assert server.transactions.begun_anew == [b"transaction-1", b"transaction-2"]
    assert ROLL_BACK not in server.calls
    assert len(server.transactions) == 0


async def test_work_is_begun_anew_when_a_query_would_find_something_else(
    store: FirestoreDocuments, tx: Transaction
) -> None:
    names = iter(["d0"])

    async def work(transaction: DocumentTransaction) -> None:
        found = await transaction.query(Query("c"))
        if name := next(names, None):
            await store.write(tx, Create("c", name, {}))
        transaction.write(Create("c", f"d{len(found)}", {}))

    await store.transact(tx, work)
    assert [one.id for one in await store.query(Query("c"))] == ["d0", "d1"]


async def test_a_read_that_is_aborted_begins_the_work_anew(
    server: WireServer, store: FirestoreDocuments, tx: Transaction
) -> None:
    server.next_refusals = {READ: [ABORTED]}
    assert await store.transact(tx, count) == 1
    assert server.calls == [BEGIN, READ, BEGIN, READ, COMMIT]


async def test_work_is_given_up_after_so_many_attempts(
    server: WireServer, store: FirestoreDocuments, tx: Transaction
) -> None:
    server.next_refusals = {COMMIT: [ABORTED] * ATTEMPTS}
    with pytest.raises(StoreContended, match="Others change the same documents"):
        await store.transact(tx, count)
    assert server.calls.count(COMMIT) == ATTEMPTS
    assert server.documents == {}


async def test_a_failed_work_is_rolled_back(
    server: WireServer, store: FirestoreDocuments, tx: Transaction
) -> None:
    async def work(transaction: DocumentTransaction) -> None:
        await count(transaction)
        raise Broken

    with pytest.raises(Broken):
        await store.transact(tx, work)
    assert server.calls == [BEGIN, READ, ROLL_BACK]
    assert len(server.transactions) == 0
    server.next_refusals = {ROLL_BACK: [BUSY]}
    with pytest.raises(Broken):
        await store.transact(tx, work)
    assert server.documents == {}


async def test_a_cancelled_work_is_rolled_back(
    server: WireServer, store: FirestoreDocuments, tx: Transaction
) -> None:
    with anyio.CancelScope() as scope:

        async def work(transaction: DocumentTransaction) -> None:
            await count(transaction)
            scope.cancel()
            await anyio.sleep_forever()

        await store.transact(tx, work)
    assert scope.cancelled_caught
    assert server.calls == [BEGIN, READ, ROLL_BACK]
    assert len(server.transactions) == 0


async def test_a_refused_write_ends_the_work_at_once(
    server: WireServer, store: FirestoreDocuments, tx: Transaction
) -> None:
    async def work(transaction: DocumentTransaction) -> None:
        transaction.write(Create("c", "one", {}), Update("c", "absent", {"n": 1}))

    with pytest.raises(DocumentNotFound, match="c/absent"):
        await store.transact(tx, work)
    assert server.calls.count(COMMIT) == 1
    assert server.documents == {}


async def test_reads_and_beginnings_are_tried_again_but_no_commit(
    server: WireServer, store: FirestoreDocuments, tx: Transaction
) -> None:
    server.next_refusals = {BEGIN: [BUSY], READ: [BUSY], COMMIT: [BUSY]}
    with pytest.raises(StoreUnavailable, match="does not answer"):
        await store.transact(tx, count)
    assert server.calls == [BEGIN, BEGIN, READ, READ, COMMIT, ROLL_BACK]
    assert server.documents == {}

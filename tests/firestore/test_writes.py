"""Writes as Firestore takes them: one request each time, never sent twice."""

import grpc
import pytest
from tests.firestore.wire_server import Refusal, WireServer

from toolgate.adapters.firestore import FirestoreDocuments
from toolgate.db.transactions import Transaction
from toolgate.ports.documents import (
    Create,
    Delete,
    DocumentExists,
    DocumentNotFound,
    Merge,
    Set,
    StoreContended,
    StoreUnavailable,
    Update,
    Write,
)
from toolgate.ports.transforms import Increment, ServerTimestamp

pytestmark = pytest.mark.anyio

EACH = [
    Create("c", "new", {"n": 1}),
    Set("c", "one", {"n": Increment(1)}),
    Merge("c", "one", {"n": Increment(1)}),
    Update("c", "one", {"n": Increment(1)}),
    Delete("c", "one"),
]


async def test_several_writes_are_one_request(
    server: WireServer, store: FirestoreDocuments, tx: Transaction
) -> None:
    await store.write(tx, Set("c", "one", {}), *EACH)
    assert server.calls == ["CommitRequest"]
    await store.write(tx)
    assert server.calls == ["CommitRequest"]


async def test_many_documents_are_read_in_one_request(
    server: WireServer, store: FirestoreDocuments, tx: Transaction
) -> None:
    await store.write(tx, Create("c", "a", {"n": 1}), Create("c/a/d", "b", {"n": 2}))
    server.calls.clear()
    asked = [("c/a/d", "b"), ("c", "absent"), ("c", "a"), ("c", "a")]
    assert list(await store.get_many(asked)) == [{"n": 2}, None, {"n": 1}, {"n": 1}]
    assert server.calls == ["BatchGetDocumentsRequest"]


@pytest.mark.parametrize("write", EACH, ids=lambda one: type(one).__name__)
async def test_no_write_is_tried_again(
    server: WireServer, store: FirestoreDocuments, tx: Transaction, write: Write
) -> None:
    await store.write(tx, Set("c", "one", {}))
    server.calls.clear()
    server.refusal = Refusal(grpc.StatusCode.UNAVAILABLE, "down")
    with pytest.raises(StoreUnavailable, match="does not answer"):
        await store.write(tx, write)
    assert server.calls == ["CommitRequest"]


async def test_of_several_writes_the_refused_one_is_named(
    store: FirestoreDocuments, tx: Transaction
) -> None:
    await store.write(tx, Create("c", "taken", {}))
    new = [Create("c", "a", {}), Create("c/a/d", "taken", {}), Create("c", "b", {})]
    with pytest.raises(DocumentExists) as exists:
        await store.write(tx, *new, Create("c", "taken", {}), Update("c", "absent", {}))
    assert str(exists.value) == "Document exists already: c/taken"
    with pytest.raises(DocumentNotFound) as absent:
        await store.write(tx, *new, Update("c", "b", {}), Update("c", "absent", {"n": 1}))
    assert str(absent.value) == "Document to update is not there: c/absent"


async def test_a_missing_database_is_no_missing_document(
    server: WireServer, store: FirestoreDocuments, tx: Transaction
) -> None:
    told = "The database (default) does not exist for project demo-toolgate."
    server.refusal = Refusal(grpc.StatusCode.NOT_FOUND, told)
    with pytest.raises(StoreUnavailable, match="does not exist for project"):
        await store.write(tx, Update("c", "one", {"n": 1}))


async def test_what_others_write_at_the_same_time_is_told(
    server: WireServer, store: FirestoreDocuments, tx: Transaction
) -> None:
    server.refusal = Refusal(grpc.StatusCode.ABORTED, "Too much contention on these documents.")
    with pytest.raises(StoreContended, match="Others change the same documents"):
        await store.write(tx, Update("c", "one", {"n": 1}))


async def test_an_update_of_a_field_and_of_what_is_inside_is_refused(
    server: WireServer, store: FirestoreDocuments, tx: Transaction
) -> None:
    await store.write(tx, Create("c", "one", {}))
    for changes in ({"a": 1, "a.b": 2}, {"a.b.c": 1, "a": {}}):
        with pytest.raises(StoreUnavailable, match=r"is inside of a, so one update"):
            await store.write(tx, Update("c", "one", changes))
    assert await store.get("c", "one") == {}
    await store.write(tx, Update("c", "one", {"a": 1, "ab": 2}))
    assert await store.get("c", "one") == {"a": 1, "ab": 2}


async def test_a_time_is_stored_as_a_time(
    server: WireServer, store: FirestoreDocuments, tx: Transaction
) -> None:
    """Other programs of the application find it as they expect it."""
    await store.write(tx, Create("c", "one", {"at": ServerTimestamp()}))
    [document] = server.documents.values()
    assert document.fields["at"].WhichOneof("value_type") == "timestamp_value"
    found = await store.get("c", "one")
    assert found is not None
    assert isinstance(found["at"], str)

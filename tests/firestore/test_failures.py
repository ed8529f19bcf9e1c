"""What is told when Firestore fails or refuses."""

import socket
from collections.abc import Iterator

import grpc
import pytest
from tests.firestore.wire_server import Refusal, WireServer

from toolgate.adapters.firestore import FirestoreDocuments
from toolgate.db.transactions import Transaction
from toolgate.ports.documents import (
    Create,
    DocumentTransaction,
    Fields,
    Filter,
    Operator,
    Query,
    StoreUnavailable,
)

NO_ANSWER = "Firestore does not answer. Try again later."
LINK = "https://console.firebase.google.com/v1/r/project/demo/firestore/indexes?create_composite=Cg"


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that is taken but refuses connections."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


async def untouched(_: DocumentTransaction) -> None:
    """Work that does nothing."""


@pytest.mark.anyio
async def test_a_dead_server_is_reported_in_time(closed_port: int, tx: Transaction) -> None:
    store = FirestoreDocuments(emulator_host=f"127.0.0.1:{closed_port}", timeout_seconds=0.5)
    calls = [
        store.check,
        lambda: store.get("c", "one"),
        lambda: store.query(Query("c")),
        lambda: store.write(tx, Create("c", "one", {})),
        lambda: store.transact(tx, untouched),
    ]
    for call in calls:
        with pytest.raises(StoreUnavailable) as refused:
            await call()
        assert str(refused.value) == NO_ANSWER
    await store.close()


@pytest.mark.anyio
async def test_a_server_that_never_answers_is_reported_in_time() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        host = f"127.0.0.1:{silent.getsockname()[1]}"
        store = FirestoreDocuments(emulator_host=host, timeout_seconds=0.5)
        with pytest.raises(StoreUnavailable, match="does not answer"):
            await store.get("c", "one")
        await store.close()


@pytest.mark.anyio
async def test_a_store_that_was_dead_answers_when_the_server_is_back(
    server: WireServer, store: FirestoreDocuments
) -> None:
    server.refusal = Refusal(grpc.StatusCode.UNAVAILABLE, "down")
    with pytest.raises(StoreUnavailable, match="does not answer"):
        await store.get("c", "one")
    assert len(server.calls) > 1, "a read is tried again"
    server.refusal = None
    assert await store.get("c", "one") is None


@pytest.mark.anyio
async def test_a_creation_is_not_tried_again(
    server: WireServer, store: FirestoreDocuments, tx: Transaction
) -> None:
    server.refusal = Refusal(grpc.StatusCode.UNAVAILABLE, "down")
    with pytest.raises(StoreUnavailable, match="does not answer"):
        await store.write(tx, Create("c", "one", {}))
    assert server.calls == ["CommitRequest"]


EMPTY: Fields = {}
INDEX = "Firestore needs an index for this query"
DENIED = "Firestore denies permission"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("status", "text", "expected"),
    [
        (
            grpc.StatusCode.FAILED_PRECONDITION,
            f"The query requires an index. You can create it here: {LINK}",
            f"{INDEX}: {LINK}",
        ),
        (grpc.StatusCode.FAILED_PRECONDITION, "no matching index found", f"{INDEX}."),
        (
            grpc.StatusCode.FAILED_PRECONDITION,
            "The database is in Datastore Mode.",
            "Firestore refused the request: The database is in Datastore Mode.",
        ),
        (grpc.StatusCode.PERMISSION_DENIED, "Missing or insufficient permissions.", DENIED),
        (grpc.StatusCode.UNAUTHENTICATED, "Request had invalid credentials.", DENIED),
        (
            grpc.StatusCode.INVALID_ARGUMENT,
            "Too many disjunctions.",
            "Firestore refused the request: Too many disjunctions.",
        ),
        (
            grpc.StatusCode.NOT_FOUND,
            "The database (default) does not exist.",
            "Firestore refused the request: The database (default) does not exist.",
        ),
        (grpc.StatusCode.INTERNAL, "stack trace", NO_ANSWER),
        (grpc.StatusCode.UNKNOWN, "stack trace", NO_ANSWER),
        (grpc.StatusCode.ABORTED, "contention", "Others change the same documents"),
    ],
)
async def test_a_refusal_of_the_server_is_explained(
    server: WireServer,
    store: FirestoreDocuments,
    status: grpc.StatusCode,
    text: str,
    expected: str,
) -> None:
    server.refusal = Refusal(status, text)
    with pytest.raises(StoreUnavailable) as refused:
        await store.query(Query("c", [Filter("n", Operator.GREATER, 1)]))
    assert str(refused.value).startswith(expected)
    assert refused.value.__cause__ is not None


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("what", "expected"),
    [
        (({"n": [[1]]}, "one"), "invalid nested entity"),
        (({"__x__": 1}, "one"), "Field name '__x__' is invalid"),
        (({"": 1}, "one"), "Field name '' is invalid"),
        (({"n": "x" * 1024 * 1024}, "one"), "exceeds"),
        (({"n": 2**63}, "one"), "Firestore cannot take this request"),
        (({"n": "\ud800"}, "one"), "Firestore cannot take this request"),
        ((EMPTY, "a/b"), "has no slash"),
        ((EMPTY, "a/b/c"), "has no slash"),
        ((EMPTY, ""), "is not empty"),
        ((EMPTY, ".."), "Resource id '..' is invalid"),
        ((EMPTY, "__x__"), "Resource id '__x__' is invalid"),
    ],
)
async def test_what_firestore_cannot_store_is_refused_and_not_stored(
    server: WireServer,
    store: FirestoreDocuments,
    tx: Transaction,
    what: tuple[Fields, str],
    expected: str,
) -> None:
    fields, document_id = what
    with pytest.raises(StoreUnavailable, match=expected):
        await store.write(tx, Create("c", document_id, fields))
    assert server.documents == {}


@pytest.mark.anyio
async def test_a_collection_path_with_an_even_number_of_segments_is_refused(
    store: FirestoreDocuments,
) -> None:
    with pytest.raises(StoreUnavailable, match="odd number of path elements"):
        await store.query(Query("users/abc123"))

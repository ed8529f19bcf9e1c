"""Firestore where it differs from other stores: credentials, failures, values."""

import importlib
import json
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.api_core.datetime_helpers import DatetimeWithNanoseconds
from google.auth.credentials import AnonymousCredentials
from google.cloud.firestore import AsyncClient, GeoPoint
from google.cloud.firestore_v1 import _helpers
from google.cloud.firestore_v1.types import Document
from google.cloud.firestore_v1.vector import Vector
from hypothesis import example, given
from hypothesis import strategies as st
from tests.firestore import wire_server
from tests.firestore.wire_server import Refusal, WireServer

from toolgate.adapters.firestore import FirestoreDocuments
from toolgate.adapters.firestore.queries import filter_message, passes_nothing
from toolgate.adapters.firestore.values import to_fields, to_json, to_message
from toolgate.db.engine import Database
from toolgate.db.transactions import Transaction
from toolgate.ports.documents import (
    Create,
    DocumentStore,
    DocumentTransaction,
    Fields,
    Filter,
    Operator,
    Query,
    StoreUnavailable,
)
from toolgate.ports.filters import matches

google_helpers: Any = _helpers

NO_CREDENTIALS = (
    "Failed to initialize Firestore. "
    "Set GOOGLE_APPLICATION_CREDENTIALS or FIREBASE_SERVICE_ACCOUNT_KEY."
)
NO_ANSWER = "Firestore does not answer. Try again later."
LINK = "https://console.firebase.google.com/v1/r/project/demo/firestore/indexes?create_composite=Cg"


@pytest.fixture
async def server() -> AsyncIterator[WireServer]:
    async with WireServer() as running:
        yield running


@pytest.fixture
async def store(server: WireServer) -> AsyncIterator[FirestoreDocuments]:
    documents = FirestoreDocuments(emulator_host=server.host, timeout_seconds=2)
    yield documents
    await documents.close()


@pytest.fixture
def tx() -> Transaction:
    """Never begins: Firestore joins no transaction."""
    return Database("sqlite://").transaction()


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that is taken but refuses connections."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture(scope="module")
def service_account() -> dict[str, str]:
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return {
        "type": "service_account",
        "project_id": "from-the-account",
        "private_key_id": "1",
        "private_key": pem.decode(),
        "client_email": "gate@from-the-account.example",
        "token_uri": "https://127.0.0.1:1/token",
    }


def client_of(store: Any) -> Any:
    """The Google client inside, to see what it was made of."""
    return store._connection.client


async def untouched(_: DocumentTransaction) -> None:
    """Work that does nothing."""


def test_firestore_is_a_document_store() -> None:
    store: DocumentStore = FirestoreDocuments(emulator_host="127.0.0.1:1")
    assert store.joins_transaction is False


def test_a_missing_package_is_named_by_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.cloud.firestore", None)
    for name in [name for name in sys.modules if name.startswith("toolgate.adapters.firestore.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ImportError, match=r"Install toolgate\[firestore\]"):
        importlib.import_module("toolgate.adapters.firestore.documents")


# Credentials


def nothing(_: Path) -> dict[str, Any]:
    return {}


def a_project(_: Path) -> dict[str, Any]:
    return {"project": "p"}


def no_file(folder: Path) -> dict[str, Any]:
    return {"credentials_file": folder / "absent.json"}


def a_folder(folder: Path) -> dict[str, Any]:
    return {"credentials_file": folder}


def a_file(text: str) -> Callable[[Path], dict[str, Any]]:
    def written(folder: Path) -> dict[str, Any]:
        file = folder / "account.json"
        file.write_text(text, encoding="utf-8")
        return {"credentials_file": file}

    return written


def inline(text: str) -> Callable[[Path], dict[str, Any]]:
    return lambda _: {"service_account_json": text}


WITHOUT_KEY = json.dumps(
    {"type": "service_account", "project_id": "p", "client_email": "a@b", "token_uri": "https://x"}
)
BAD_KEY = json.dumps(json.loads(WITHOUT_KEY) | {"private_key": "secret-that-is-no-key"})


@pytest.mark.anyio
@pytest.mark.parametrize(
    "given_by",
    [
        pytest.param(nothing, id="nothing"),
        pytest.param(a_project, id="project only"),
        pytest.param(no_file, id="file that is absent"),
        pytest.param(a_folder, id="folder"),
        pytest.param(a_file("{"), id="file that is not JSON"),
        pytest.param(a_file("[]"), id="file that is no object"),
        pytest.param(a_file(WITHOUT_KEY), id="file without key"),
        pytest.param(inline(""), id="empty text"),
        pytest.param(inline("secret-that-is-no-json"), id="text that is not JSON"),
        pytest.param(inline("{}"), id="empty object"),
        pytest.param(inline(WITHOUT_KEY), id="object without key"),
        pytest.param(inline(BAD_KEY), id="object with a bad key"),
    ],
)
async def test_bad_credentials_are_told_apart_from_nothing_but_their_names(
    given_by: Callable[[Path], dict[str, Any]], tmp_path: Path, tx: Transaction
) -> None:
    store = FirestoreDocuments(**given_by(tmp_path))
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
        assert str(refused.value) == NO_CREDENTIALS
        assert refused.value.__cause__ is not None
        assert "secret" not in str(refused.value.__cause__)


@pytest.mark.anyio
@pytest.mark.parametrize("by_file", [True, False], ids=["file", "text"])
@pytest.mark.parametrize("project", [None, "given"])
async def test_the_project_comes_from_the_account_unless_given(
    service_account: dict[str, str], tmp_path: Path, project: str | None, by_file: bool
) -> None:
    text = json.dumps(service_account)
    how = a_file(text) if by_file else inline(text)
    store = FirestoreDocuments(project=project, **how(tmp_path))
    client = client_of(store)
    assert client.project == (project or "from-the-account")
    assert client._credentials.service_account_email == service_account["client_email"]
    await store.close()


@pytest.mark.anyio
async def test_what_is_configured_counts_and_not_the_environment(
    service_account: dict[str, str], server: WireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", "127.0.0.1:1")
    emulated = FirestoreDocuments(emulator_host=server.host, timeout_seconds=2)
    assert await emulated.get("c", "absent") is None
    await emulated.close()
    real = FirestoreDocuments(service_account_json=json.dumps(service_account))
    assert client_of(real)._target == "firestore.googleapis.com"
    await real.close()


@pytest.mark.anyio
async def test_nothing_is_opened_before_the_first_use(server: WireServer) -> None:
    store = FirestoreDocuments(emulator_host=server.host)
    await store.close()
    assert server.calls == []
    assert await store.get("c", "absent") is None
    await store.close()
    assert server.calls == ["BatchGetDocumentsRequest"]


# Failures


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


# Queries


@pytest.mark.anyio
async def test_a_filter_nothing_can_pass_is_not_even_asked(
    server: WireServer, store: FirestoreDocuments
) -> None:
    for operator in ("<", "<=", ">", ">=", "array-contains"):
        assert await store.query(Query("c", [Filter("n", Operator(operator), None)])) == []
    lists = [("in", [None]), ("in", []), ("array-contains-any", [None]), ("not-in", [1, None])]
    for operator, values in lists:
        assert await store.query(Query("c", [Filter("n", Operator(operator), values)])) == []
    assert server.calls == []


@pytest.mark.anyio
async def test_the_order_is_by_id_and_by_the_compared_field_first(
    store: FirestoreDocuments, tx: Transaction
) -> None:
    for document_id, n in [("c", 1), ("a", 2), ("b", 1), ("d", "text")]:
        await store.write(tx, Create("c", document_id, {"n": n}))

    async def ids(*filters: Filter) -> str:
        return " ".join(one.id for one in await store.query(Query("c", filters)))

    assert await ids() == "a b c d"
    assert await ids(Filter("n", Operator.IN, [1, 2])) == "a b c"
    assert await ids(Filter("n", Operator.GREATER, 0)) == "b c a"
    assert await ids(Filter("n", Operator.NOT_EQUAL, 2)) == "b c d"


plain = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 1.0, "", "1", "é"])
deep = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=4,
)
conditions = st.one_of(
    st.builds(
        Filter,
        st.sampled_from(["a", "a.b"]),
        st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "array-contains"]),
        deep,
    ),
    st.builds(
        Filter,
        st.just("a"),
        st.sampled_from(["in", "not-in", "array-contains-any"]),
        st.lists(deep, max_size=4),
    ),
)


@given(st.dictionaries(st.sampled_from("ab"), deep), conditions)
@example({"a": "abc"}, Filter("a", Operator.NOT_EQUAL, 5))
@example({"a": None}, Filter("a", Operator.NOT_EQUAL, 5))
@example({"a": 1}, Filter("a", Operator.EQUAL, True))
def test_filters_mean_the_same_in_firestore_and_in_python(fields: Fields, loose: Filter) -> None:
    one = Filter(loose.field, Operator(loose.operator), loose.value)
    if passes_nothing(one):
        assert not matches(fields, [one])
        return
    document: Any = Document.pb()(fields=to_fields(fields))
    condition = filter_message(one)
    message = getattr(condition, condition.WhichOneof("filter_type"))
    assert wire_server.passes(document.fields, message) == matches(fields, [one])


# Values


def test_values_json_lacks_become_text() -> None:
    client = AsyncClient(project="p", credentials=AnonymousCredentials())
    values = {
        "time": datetime(2025, 1, 15, 10, 30, tzinfo=UTC),
        "micro": datetime(2025, 1, 15, 10, 30, 0, 120_000, tzinfo=UTC),
        "nano": DatetimeWithNanoseconds(2025, 1, 15, 10, 30, nanosecond=1, tzinfo=UTC),
        "early": datetime(1, 1, 1, tzinfo=UTC),
        "bytes": b"\x00\xff",
        "place": GeoPoint(59.5, -18.25),
        "vector": Vector([1.0, 2.0]),
        "reference": client.document("users/abc123"),
        "floats": [float("nan"), float("inf"), float("-inf"), 1.5],
        "nested": [{"deep": [b"x"]}],
    }
    assert to_json(google_helpers.encode_value(values)._pb) == {
        "time": "2025-01-15T10:30:00Z",
        "micro": "2025-01-15T10:30:00.12Z",
        "nano": "2025-01-15T10:30:00.000000001Z",
        "early": "0001-01-01T00:00:00Z",
        "bytes": "AP8=",
        "place": {"latitude": 59.5, "longitude": -18.25},
        "vector": [1.0, 2.0],
        "reference": "users/abc123",
        "floats": ["NaN", "Infinity", "-Infinity", 1.5],
        "nested": [{"deep": ["eA=="]}],
    }


@given(deep)
def test_json_comes_back_as_it_was(value: Any) -> None:
    found = to_json(to_message(value))
    assert json.dumps(found, sort_keys=True) == json.dumps(value, sort_keys=True)


def test_what_is_not_json_is_refused() -> None:
    with pytest.raises(ValueError, match="Decimal is not JSON"):
        to_message({"n": [Decimal("1.50")]})


@pytest.mark.anyio
async def test_values_others_stored_come_back_as_json(store: FirestoreDocuments) -> None:
    """Documents written by the application itself hold what JSON cannot say."""
    client = client_of(store)
    await client.document("c/one").create(
        {
            "at": datetime(2025, 1, 15, 10, 30, 0, 123_456, tzinfo=UTC),
            "where": GeoPoint(1, 2),
            "owner": client.document("users/abc123"),
            "raw": [b"\x00"],
            "deep": {"nan": float("nan"), "vector": Vector([1, 2])},
        }
    )
    expected = {
        "at": "2025-01-15T10:30:00.123456Z",
        "where": {"latitude": 1.0, "longitude": 2.0},
        "owner": "users/abc123",
        "raw": ["AA=="],
        "deep": {"nan": "NaN", "vector": [1.0, 2.0]},
    }
    found = await store.get("c", "one")
    assert found == expected
    assert json.loads(json.dumps(found, allow_nan=False)) == expected
    assert [one.fields for one in await store.query(Query("c"))] == [expected]

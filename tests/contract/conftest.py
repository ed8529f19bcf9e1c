"""The stores the contract runs over: one parameter each."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.databases import STARTS_A_SERVER
from tests.firestore import emulator
from tests.firestore.wire_server import WireServer
from tests.loops import one_loop

from toolgate.adapters.firestore import FirestoreDocuments
from toolgate.adapters.sql.documents import SqlDocuments
from toolgate.db.engine import Database
from toolgate.db.tables import metadata
from toolgate.db.transactions import Transaction
from toolgate.ports.documents import DocumentStore
from toolgate.testing.documents import MemoryDocuments

__all__ = ["one_loop"]

pytest.register_assert_rewrite("tests.contract.documents")

STORES = [
    "memory",
    "sqlite",
    pytest.param("postgres", marks=STARTS_A_SERVER),
    pytest.param("firestore", marks=STARTS_A_SERVER),
    "firestore-wire",
]


@pytest.fixture(scope="session")
def emulator_host() -> Iterator[str]:
    with emulator.running() as host:
        yield host


@pytest.fixture(scope="session")
def postgres_url(postgres_server: str) -> str:
    return postgres_server


@pytest.fixture(params=STORES)
def store_kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
async def database(
    store_kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[Database | None]:
    """The database of a store that lies in one."""
    match store_kind:
        case "sqlite":
            url = f"sqlite:///{tmp_path / 'documents.db'}"
        case "postgres":
            url = request.getfixturevalue("postgres_url")
        case _:
            yield None
            return
    opened = Database(url)
    await opened.write(metadata.create_all)
    yield opened
    await opened.close()


@pytest.fixture
async def store(
    store_kind: str, database: Database | None, request: pytest.FixtureRequest
) -> AsyncIterator[DocumentStore]:
    match store_kind:
        case "memory":
            yield MemoryDocuments()
        case "firestore":
            async with firestore_at(request.getfixturevalue("emulator_host")) as documents:
                yield documents
        case "firestore-wire":
            async with WireServer() as server, firestore_at(server.host) as documents:
                yield documents
        case _:
            assert database is not None
            yield SqlDocuments(database, "tests")


@asynccontextmanager
async def firestore_at(host: str) -> AsyncGenerator[FirestoreDocuments]:
    documents = FirestoreDocuments(emulator_host=host)
    yield documents
    await documents.close()


@pytest.fixture
def tx_factory(database: Database | None) -> Callable[[], Transaction]:
    """Transactions for the store; one that joins none gets transactions that never begin."""
    if database is not None:
        return database.transaction
    return Database("sqlite://").transaction

"""The stores that documents can be in, opened for a test."""

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import pytest
from tests.databases import STARTS_A_SERVER
from tests.firestore import emulator
from tests.firestore.wire_server import WireServer

from toolgate.adapters.firestore import FirestoreDocuments
from toolgate.adapters.sql.documents import SqlDocuments
from toolgate.db.engine import Database
from toolgate.db.tables import metadata
from toolgate.db.transactions import Transaction
from toolgate.ports.documents import DocumentStore
from toolgate.testing.documents import MemoryDocuments

Opened: TypeAlias = tuple[DocumentStore, Callable[[], Transaction]]
"""A store, and transactions for it; one that joins none gets some that never begin."""

OWN = [
    "memory",
    "sqlite",
    pytest.param("postgres", marks=STARTS_A_SERVER),
    "firestore-wire",
]
KINDS = [*OWN, pytest.param("firestore", marks=STARTS_A_SERVER)]


@pytest.fixture(scope="session")
def emulator_host() -> Iterator[str]:
    with emulator.running() as host:
        yield host


@asynccontextmanager
async def opened_documents(
    kind: str, request: pytest.FixtureRequest, folder: Path
) -> AsyncGenerator[Opened]:
    """A store of that kind."""
    apart = Database("sqlite://").transaction
    match kind:
        case "memory":
            yield MemoryDocuments(), apart
        case "firestore":
            async with _firestore_at(request.getfixturevalue("emulator_host")) as documents:
                yield documents, apart
        case "firestore-wire":
            async with WireServer() as server, _firestore_at(server.host) as documents:
                yield documents, apart
        case _:
            address = f"sqlite:///{folder / 'documents.db'}"
            if kind == "postgres":
                address = request.getfixturevalue("postgres_server")
            async with _database_at(address) as database:
                yield SqlDocuments(database, "tests"), database.transaction


@asynccontextmanager
async def _firestore_at(host: str) -> AsyncGenerator[FirestoreDocuments]:
    documents = FirestoreDocuments(emulator_host=host)
    yield documents
    await documents.close()


@asynccontextmanager
async def _database_at(address: str) -> AsyncGenerator[Database]:
    database = Database(address)
    await database.write(metadata.create_all)
    yield database
    await database.close()

"""What every test with gRPC shares."""

from collections.abc import AsyncIterator

import pytest
from tests.firestore.wire_server import WireServer
from tests.loops import one_loop

from toolgate.adapters.firestore import FirestoreDocuments
from toolgate.db.engine import Database
from toolgate.db.transactions import Transaction

__all__ = ["one_loop"]


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

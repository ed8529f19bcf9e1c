"""A Realtime Database to ask, and a store in it."""

from collections.abc import AsyncIterator, Iterator

import pytest
from tests.patience import PATIENT
from tests.rtdb.wire_server import WireServer, running_rtdb

from toolgate.adapters.rtdb import RealtimeDatabase
from toolgate.db.engine import Database
from toolgate.db.transactions import Transaction
from toolgate.outbound.client import Outbound


@pytest.fixture
def rtdb() -> Iterator[WireServer]:
    with running_rtdb() as server:
        yield server


@pytest.fixture
async def outbound() -> AsyncIterator[Outbound]:
    async with Outbound() as opened:
        yield opened


@pytest.fixture
def store(rtdb: WireServer, outbound: Outbound) -> RealtimeDatabase:
    return RealtimeDatabase(outbound, rtdb.url, timeout_seconds=PATIENT)


@pytest.fixture
def tx() -> Transaction:
    """A transaction that never begins."""
    return Database("sqlite://").transaction()

"""Gates with pack network: in each database, and with both stores at (imitated) Firebase."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.databases import STARTS_A_SERVER, Room
from tests.firestore.wire_server import WireServer as Firestore
from tests.loops import one_loop
from tests.rtdb.wire_server import WireServer as Realtime
from tests.rtdb.wire_server import running_rtdb

from toolgate.gate.outcomes import Outcome
from toolgate.testing import Kit, opened_kit

__all__ = ["one_loop"]

PLACES = ["sqlite", pytest.param("postgresql", marks=STARTS_A_SERVER), "firebase"]


@dataclass(frozen=True, slots=True)
class Network:
    """A gate and short ways to use its two databases."""

    kit: Kit
    firestore: Firestore | None = None
    realtime: Realtime | None = None

    async def call(self, tool: str, **arguments: Any) -> Outcome:
        """One call as an admin."""
        return await self.kit.call(tool, **arguments)

    async def read(self, database: str, path: str, **more: Any) -> Any:
        """What is read; it must be there."""
        outcome = await self.call("firebase.read", database=database, path=path, **more)
        assert outcome.error is None, outcome.body
        return outcome.body["data"]

    async def write(self, database: str, path: str, data: Any, **more: Any) -> dict[str, Any]:
        """What is answered to a write, which must succeed."""
        outcome = await self.call("firebase.write", database=database, path=path, data=data, **more)
        assert outcome.error is None, outcome.body
        return outcome.body

    async def refused(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The error that a call ends with."""
        outcome = await self.call(tool, **arguments)
        assert outcome.error is not None, outcome.body
        body: dict[str, Any] = outcome.body
        return body


@asynccontextmanager
async def opened_at_firebase(folder: Path) -> AsyncGenerator[Network]:
    """A gate whose two databases are at Firebase, imitated."""
    async with Firestore() as firestore:
        with running_rtdb() as realtime:
            settings = {
                "documents__network": "firestore://demo-network",
                "google__emulator_host": firestore.host,
                "tree__url": f"{realtime.url}?ns=demo-network",
            }
            async with opened_kit(folder, packs__enabled=["network"], **settings) as kit:
                yield Network(kit, firestore, realtime)


@pytest.fixture
async def at_firebase(tmp_path: Path) -> AsyncIterator[Network]:
    """The same."""
    async with opened_at_firebase(tmp_path) as opened:
        yield opened


@pytest.fixture(params=PLACES)
async def network(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Network]:
    """A gate without data, once in each place."""
    if request.param == "firebase":
        async with opened_at_firebase(tmp_path) as opened:
            yield opened
        return
    settings: dict[str, Any] = {}
    if request.param == "postgresql":
        room: Room = request.getfixturevalue("room")
        room.empty(keeping=True)
        settings = {"database__url": room.url}
    async with opened_kit(tmp_path, packs__enabled=["network"], **settings) as kit:
        yield Network(kit)


@pytest.fixture
async def demo(tmp_path: Path) -> AsyncIterator[Network]:
    """A gate with demo data."""
    async with opened_kit(tmp_path, demo_data=True, packs__enabled=["network"]) as kit:
        yield Network(kit)

"""A gate with the demo content, and a client of a running server."""

from collections.abc import AsyncIterator, Iterator

import httpx2
import pytest
from tests.cli.conftest import cli
from tests.servers import Server
from tests.transports.conftest import web

from toolgate.testing import Kit, opened_kit

__all__ = ["cli", "web"]


@pytest.fixture(scope="module")
async def kit(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Kit]:
    """A gate with demo data, for all tests of a module: nothing here writes."""
    async with opened_kit(tmp_path_factory.mktemp("content"), demo_data=True) as opened:
        yield opened


@pytest.fixture(scope="module")
def admin(server: Server) -> Iterator[httpx2.Client]:
    """A client with the admin key."""
    with server.client() as client:
        yield client

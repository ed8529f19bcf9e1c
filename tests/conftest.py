"""What every test shares."""

import pytest
from tests.databases import database_url, postgres_database, postgres_room, postgres_server
from tests.servers import server

__all__ = [
    "anyio_backend",
    "database_url",
    "postgres_database",
    "postgres_room",
    "postgres_server",
    "server",
]


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """One event loop: the one the server runs on."""
    return "asyncio"

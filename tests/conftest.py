"""What every test shares."""

import pytest
from hypothesis import settings
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


# How long an example takes depends on the machine, so it is never a reason to fail.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """One event loop: the one the server runs on."""
    return "asyncio"

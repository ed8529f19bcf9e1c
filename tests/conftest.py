"""What every test shares."""

import pytest
from tests.servers import server

__all__ = ["anyio_backend", "server"]


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """One event loop: the one the server runs on."""
    return "asyncio"

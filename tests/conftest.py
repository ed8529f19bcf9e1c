"""What every test shares."""

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """One event loop: the one the server runs on."""
    return "asyncio"

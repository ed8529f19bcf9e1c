"""One event loop for tests that use gRPC.

Its asynchronous side answers to the loop it was first used on, also after that loop is closed:
with a loop for each test, a late event of one test fails another.
"""

from collections.abc import AsyncGenerator

import pytest


@pytest.fixture(scope="session", autouse=True)
async def one_loop(anyio_backend: str) -> AsyncGenerator[None]:
    """Keeps the loop of asynchronous tests open until the end."""
    yield  # noqa: PT022 (returning would let the loop close)

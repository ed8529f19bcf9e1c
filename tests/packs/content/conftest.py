"""A gate with the demo content."""

from collections.abc import AsyncIterator

import pytest
from tests.cli.conftest import cli

from toolgate.testing import Kit, opened_kit

__all__ = ["cli"]


@pytest.fixture(scope="module")
async def kit(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Kit]:
    """A gate with demo data, for all tests of a module: nothing here writes."""
    async with opened_kit(tmp_path_factory.mktemp("content"), demo_data=True) as opened:
        yield opened

"""Gates with demo data: one to read from, one for each test that writes."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.cli.conftest import cli

from toolgate.testing import Kit, opened_kit

__all__ = ["cli"]


@pytest.fixture(scope="module")
async def reading(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Kit]:
    """A gate whose documents stay as they are: writes are off."""
    async with opened_kit(tmp_path_factory.mktemp("reading"), demo_data=True) as kit:
        yield kit


@pytest.fixture
async def writing(tmp_path: Path) -> AsyncIterator[Kit]:
    """A gate of this test's own, with writes on."""
    async with opened_kit(tmp_path, writes=True, demo_data=True) as kit:
        yield kit

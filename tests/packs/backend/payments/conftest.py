"""A gate with the demo data of pack `backend`, once on each database."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from toolgate.testing import Kit, opened_kit


@pytest.fixture
async def kit(tmp_path: Path, database_url: str) -> AsyncIterator[Kit]:
    settings = {"database__url": database_url, "packs__enabled": ["backend"]}
    async with opened_kit(tmp_path, demo_data=True, **settings) as opened:
        yield opened

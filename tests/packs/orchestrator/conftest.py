"""A gate with the demo data of pack `orchestrator`, once on each database.

A test file in which nothing depends on the database says `DATABASES = ["sqlite"]`.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.cli.conftest import cli, data, empty_data

from toolgate.testing import Kit, opened_kit

__all__ = ["cli", "data", "empty_data", "kit"]


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    kinds: list[str] | None = getattr(metafunc.module, "DATABASES", None)
    if kinds and "database_url" in metafunc.fixturenames:
        kind = pytest.mark.parametrize("database_url", kinds, indirect=True)
        metafunc.definition.add_marker(kind)  # before the fixture's own parameters are looked at


@pytest.fixture
async def kit(tmp_path: Path, database_url: str) -> AsyncIterator[Kit]:
    settings = {"database__url": database_url, "packs__enabled": ["orchestrator"]}
    async with opened_kit(tmp_path, demo_data=True, **settings) as opened:
        yield opened

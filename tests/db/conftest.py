"""Here every database is brought to its schema by the migrations themselves."""

import pytest
from tests.databases import Migrate

from toolgate.db import upgrades


@pytest.fixture(autouse=True)
def _real_migrations(monkeypatch: pytest.MonkeyPatch, migrations_once: Migrate) -> None:
    monkeypatch.setattr(upgrades, "_run", migrations_once)

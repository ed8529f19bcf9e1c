"""Here every database is brought to its schema by the migrations themselves."""

from collections.abc import Callable

import pytest
from sqlalchemy import Connection

from toolgate.db import upgrades


@pytest.fixture(autouse=True)
def _real_migrations(
    monkeypatch: pytest.MonkeyPatch, migrations_once: Callable[[Connection], None]
) -> None:
    monkeypatch.setattr(upgrades, "_run", migrations_once)

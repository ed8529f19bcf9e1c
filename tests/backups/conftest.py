"""Databases to make backups of, and empty ones to read them into."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.databases import KINDS, new_database

NewDatabase = Callable[[str], str]


@pytest.fixture
def empty(tmp_path: Path, request: pytest.FixtureRequest) -> NewDatabase:
    """Makes the address of an empty database of this kind; each time another one."""
    made = 0

    def make(kind: str) -> str:
        nonlocal made
        made += 1
        if kind == "sqlite":
            return f"sqlite:///{tmp_path}/made-{made}/toolgate.db"
        return new_database(request.getfixturevalue("postgres_server"), f"backups_{made}")

    return make


@pytest.fixture(params=KINDS)
def source(request: pytest.FixtureRequest) -> Any:
    """A kind of database."""
    return request.param


@pytest.fixture(params=KINDS)
def target(request: pytest.FixtureRequest) -> Any:
    """A kind of database."""
    return request.param

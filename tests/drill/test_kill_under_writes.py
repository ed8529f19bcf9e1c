"""Killed with -9 again and again under sixteen writers: nothing is lost, doubled or left halfway.

KILLS says how often in all (300); half as often PostgreSQL ends connections of a server. SEED makes
the same choices again.
"""

import os
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest
from tests.databases import new_database, running_postgres
from tests.faults.kills.cycles import Cycles, seed
from tests.needed_packs import needs_pack

pytestmark = [needs_pack("appdata"), pytest.mark.timeout(4 * 3600)]

KILLS = int(os.environ.get("KILLS", "300"))
CHECK_EVERY = 5
ON_DISK = Path("/var/tmp")
"""In memory, where other tests keep their files, a commit is over before anybody can be killed."""


@pytest.fixture
def folder() -> Generator[Path]:
    with tempfile.TemporaryDirectory(dir=ON_DISK) as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def postgres() -> Generator[str]:
    """A PostgreSQL server that commits to the disk."""
    with running_postgres(ON_DISK) as server:
        yield server.get_uri()


@pytest.mark.parametrize("workers", [1, 2])
def test_on_sqlite_what_was_acknowledged_is_there_once_and_whole(
    folder: Path, workers: int
) -> None:
    data = folder / "data"
    Cycles(data, f"sqlite:///{data / 'toolgate.db'}", workers, seed()).run(KILLS // 4, CHECK_EVERY)


@pytest.mark.parametrize("workers", [1, 2])
def test_on_postgresql_what_was_acknowledged_is_there_once_and_whole(
    folder: Path, postgres: str, workers: int
) -> None:
    url = new_database(postgres, f"kills_{workers}")
    Cycles(folder / "data", url, workers, seed()).run(KILLS // 4, CHECK_EVERY)


def test_when_postgresql_ends_connections_every_call_is_answered_and_nothing_is_doubled(
    folder: Path, postgres: str
) -> None:
    url = new_database(postgres, "ended_connections")
    Cycles(folder / "data", url, 1, seed()).end_connections(KILLS // 2)

"""A few kills under sixteen writers, where `make drill` does hundreds; and PostgreSQL ends the
connections of a server that is writing."""

from pathlib import Path

import pytest
from tests.databases import KINDS, STARTS_A_SERVER, new_database
from tests.faults.kills.cycles import Cycles, seed
from tests.needed_packs import needs_pack

pytestmark = needs_pack("appdata")

KILLS = 3
"""With two workers, one of each kind."""
CONNECTIONS_ENDED = 8


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("database", KINDS)
def test_after_a_kill_what_was_acknowledged_is_there_once_and_whole(
    database: str, workers: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    data = tmp_path / "data"
    url = f"sqlite:///{data / 'toolgate.db'}"
    if database == "postgresql":
        url = new_database(request.getfixturevalue("postgres_server"), "kills")
    cycles = Cycles(data, url, workers, seed())
    cycles.run(KILLS, check_every=1)


@STARTS_A_SERVER
def test_when_postgresql_ends_connections_every_call_is_answered_and_nothing_is_doubled(
    tmp_path: Path, postgres_server: str
) -> None:
    cycles = Cycles(tmp_path / "data", new_database(postgres_server, "kills"), 1, seed())
    cycles.end_connections(CONNECTIONS_ENDED)

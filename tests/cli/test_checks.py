"""The checks of `toolgate doctor` leave nothing open."""

from pathlib import Path

import pytest

from toolgate.cli.checks import State, check_modes
from toolgate.db.engine import Database
from toolgate.settings import read_settings

pytestmark = pytest.mark.anyio


async def test_the_check_of_file_modes_closes_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[Database] = []
    close = Database.close

    async def noted(self: Database) -> None:
        closed.append(self)
        await close(self)

    monkeypatch.setattr(Database, "close", noted)
    found = await check_modes(read_settings(flags={"data": tmp_path}, environment={}), None)
    assert found.state is State.OK
    assert len(closed) == 1

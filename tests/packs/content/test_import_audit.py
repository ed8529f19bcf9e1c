"""An import is an operator's change: one audit row, in the transaction of what is stored."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from tests.packs.content.files import ENTITIES, VIDEO, Place, opened

from toolgate.db.tables import audit
from toolgate.packs.content.importing import file_import
from toolgate.packs.content.sql import tables

pytestmark = pytest.mark.anyio

UNKNOWN = {"relationType": "GUIDE_USES_CONCEPT", "from": VIDEO, "to": "concept/nothing"}


@pytest.fixture
async def place(database_url: str, tmp_path: Path) -> AsyncIterator[Place]:
    async for one in opened(database_url, tmp_path):
        yield one


async def audited(place: Place) -> list[dict[str, Any]]:
    return await place.database.read(
        lambda c: [dict(row) for row in c.execute(select(audit)).mappings()]
    )


async def test_an_import_has_one_row_that_names_its_project(place: Place) -> None:
    await place.load(place.rows_file("e.jsonl", ENTITIES))
    [project] = await place.database.read(lambda c: c.execute(select(tables.projects.c.id)).all())
    [row] = await audited(place)
    assert (row["tool_name"], row["transport"], row["status"]) == (
        "content.import",
        "cli",
        "success",
    )
    assert (row["subject_type"], row["project_id"]) == ("operator", project.id)


@pytest.mark.parametrize("wanted", [{"dry_run": True}, {}], ids=["a dry run", "a refused file"])
async def test_what_stores_nothing_has_no_row(place: Place, wanted: dict[str, Any]) -> None:
    rows = ENTITIES if wanted else [UNKNOWN]
    report = await place.load(place.rows_file("e.jsonl", rows), **wanted)
    assert bool(report.refused) == (not wanted)
    assert await audited(place) == []


async def test_without_its_row_nothing_is_stored(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("no room for the row")

    monkeypatch.setattr(file_import, "note_operator", fails)
    with pytest.raises(RuntimeError, match="no room"):
        await place.load(place.rows_file("e.jsonl", ENTITIES))
    assert await place.rows("entities") == []

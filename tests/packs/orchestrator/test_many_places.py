"""Models that thousands of nodes have: a list looks at a bounded number of places of each."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, insert, text
from tests.packs.orchestrator.calls import PM, result
from tests.packs.orchestrator.test_many_records import (
    counted_steps,
    explained,
    is_read_of_the_pack,
    noted_reads,
)

from toolgate.packs.orchestrator.sql import model_places
from toolgate.packs.orchestrator.sql.tables import availability, models, nodes
from toolgate.testing import Kit, opened_kit

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(600)]

MODELS, FEW, MANY = 5, 200, 4_000
COUNTED, LISTED = 20, 10
THEN, LATER = "2026-01-05T09:00:00.000000Z", "9999-01-01T00:00:00.000000Z"


def identity(number: int) -> str:
    return f"20000000-0000-4000-8000-{number:012d}"


def fill(connection: Connection, first: int, last: int) -> None:
    """Nodes that are active for good and have every model."""
    usual = {
        "display_name": "Node",
        "metadata": "{}",
        "drained": False,
        "config": "{}",
        "config_version": "01JGFJJZ000000000000000000",
        "last_seen_at": LATER,
        "created_at": THEN,
        "updated_at": THEN,
    }
    every = [{"id": identity(one), "slug": f"n{one:06d}", **usual} for one in range(first, last)]
    connection.execute(insert(nodes), every)
    usual = {"kind": "model", "version": "", "status": "available", "reported_at": THEN}
    names = [f"m{number}" for number in range(MODELS)]
    placed = [
        {"node_id": identity(one), "name": name, **usual}
        for one in range(first, last)
        for name in names
    ]
    connection.execute(insert(availability), placed)
    if not first:
        known = [
            {"id": identity(number), "name": name, "created_at": THEN, "updated_at": THEN}
            for number, name in enumerate(names)
        ]
        connection.execute(insert(models), known)
    connection.execute(text("ANALYZE"))


@pytest.fixture(autouse=True)
def _fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_places, "MAX_COUNTED_NODES", COUNTED)
    monkeypatch.setattr(model_places, "MAX_LISTED_NODES", LISTED)


async def check_list(kit: Kit) -> None:
    listed = (await result(kit, "model.list", PM))["entries"]
    assert [one["name"] for one in listed] == [f"m{number}" for number in range(MODELS)]
    for one in listed:
        slugs = [on["node_slug"] for on in one["availability"]]
        assert slugs == [f"n{number:06d}" for number in range(LISTED)]
        assert one["availability_total"] == COUNTED


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_sqlite_takes_as_many_steps_with_many_nodes_as_with_few(
    tmp_path: Path, database_url: str
) -> None:
    settings: dict[str, Any] = {"database__url": database_url, "packs__enabled": ["orchestrator"]}
    taken: list[int] = []
    for first, last in ((0, FEW), (FEW, MANY)):
        async with opened_kit(tmp_path, **settings) as kit:
            await kit.app.gate.database.write(lambda one, a=first, b=last: fill(one, a, b))
        with counted_steps() as steps:
            async with opened_kit(tmp_path, **settings) as kit:
                await check_list(kit)
                before = steps.number
                await check_list(kit)
                taken.append(steps.number - before)
    assert 0 < taken[1] < taken[0] * 1.2, taken


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_postgresql_goes_through_a_bounded_number_of_rows(
    tmp_path: Path, database_url: str
) -> None:
    settings: dict[str, Any] = {"database__url": database_url, "packs__enabled": ["orchestrator"]}
    async with opened_kit(tmp_path, **settings) as kit:
        database = kit.app.gate.database
        await database.write(lambda one: fill(one, 0, MANY))
        await check_list(kit)
        with noted_reads() as reads:
            await check_list(kit)
        (listing,) = [one for one in reads if is_read_of_the_pack(one[0])]
        rows = await database.write(lambda one: explained(one, *listing))
    # Each place is looked at as a row of the index, of its node and of what is made of both.
    assert rows <= MODELS * (4 * COUNTED + LISTED + 1)

"""What a client can rely on that reads page after page while others add rows."""

import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from sqlalchemy import Table

from toolgate.packs.content import demo
from toolgate.packs.content.demo import PSYMETRIC
from toolgate.packs.content.sql.tables import blocks, entities, performance
from toolgate.packs.content.sql.upserts import store
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

Row = dict[str, Any]
ROWS, LIMIT = 60, 7
LISTS: dict[str, tuple[Table, Row, str]] = {
    "search_entities": (entities, demo.ENTITIES[5], "created_at"),
    "list_search_performance": (performance, demo.PERFORMANCE[0], "date_start"),
    "list_quotable_blocks": (blocks, demo.BLOCKS[0], "created_at"),
}


@pytest.fixture
async def kit(database_url: str, tmp_path: Path) -> AsyncIterator[Kit]:
    """A gate with the demo content on either database."""
    async with opened_kit(tmp_path, demo_data=True, database__url=database_url) as opened:
        yield opened


def made(tool: str, number: int, moment: str) -> Row:
    """A row of the tool's list that differs from all others."""
    _, row, dated = LISTS[tool]
    new = {**row, "id": f"00000000-0000-4000-b000-{number:012}", dated: moment}
    return (
        new | {"slug": f"s{number}", "query": f"q{number}"}
        if tool != "list_quotable_blocks"
        else new
    )


def day(number: int) -> str:
    return f"2026-{1 + number // 28 % 12:02}-{1 + number % 28:02}T00:00:00.000Z"


async def add(kit: Kit, tool: str, rows: list[Row]) -> None:
    table = LISTS[tool][0]
    known = {column.name for column in table.c}
    given = [{name: value for name, value in row.items() if name in known} for row in rows]
    await kit.app.gate.database.write(lambda connection: store(connection, table, given))


async def page(kit: Kit, tool: str, number: int) -> tuple[list[str], bool]:
    outcome = await kit.call(tool, projectId=PSYMETRIC, page=number, limit=LIMIT)
    place = outcome.body["pagination"]
    return [row["id"] for row in outcome.body["data"]], place["hasMore"]


async def read_all(kit: Kit, tool: str, between: Any) -> list[str]:
    """Every id in the order it was met, from the first page to the last."""
    met: list[str] = []
    number, more = 1, True
    while more:
        ids, more = await page(kit, tool, number)
        assert len(ids) == len(set(ids))
        assert len(ids) <= LIMIT
        met += ids
        number += 1
        await between(number)
    return met


@pytest.mark.parametrize("tool", LISTS)
async def test_no_row_that_was_there_is_missed_whatever_is_added_meanwhile(
    kit: Kit, tool: str
) -> None:
    chance = random.Random(tool)
    await add(kit, tool, [made(tool, number, day(number * 3)) for number in range(ROWS)])

    async def nothing(_: int) -> None: ...

    before = await read_all(kit, tool, nothing)
    assert len(before) == len(set(before)) > ROWS

    async def add_some(number: int) -> None:
        if number < 12:
            fresh = range(1000 * number, 1000 * number + chance.randrange(1, LIMIT))
            rows = [made(tool, one, day(chance.randrange(300))) for one in fresh]
            await add(kit, tool, rows)

    met = await read_all(kit, tool, add_some)
    assert set(before) <= set(met)
    first_met = list(dict.fromkeys(met))
    assert [id for id in first_met if id in set(before)] == before, "in the order of before"


@pytest.mark.parametrize("tool", LISTS)
async def test_no_row_comes_twice_while_older_rows_are_added(kit: Kit, tool: str) -> None:
    await add(kit, tool, [made(tool, number, day(number)) for number in range(ROWS)])
    added = iter(range(1000, 9000))

    async def add_older(number: int) -> None:
        if number < 12:
            rows = [
                made(tool, next(added), f"2001-01-{28 - number:02}T00:00:00.000Z") for _ in "abc"
            ]
            await add(kit, tool, rows)

    met = await read_all(kit, tool, add_older)
    assert len(met) == len(set(met))
    assert {f"00000000-0000-4000-b000-{number:012}" for number in range(ROWS)} <= set(met)


@pytest.mark.parametrize("tool", LISTS)
async def test_a_page_and_its_total_tell_of_one_moment(kit: Kit, tool: str) -> None:
    """While rows are added in steps of three, no page is seen with a total between the steps."""
    start = (await kit.call(tool, projectId=PSYMETRIC, limit=100)).body["pagination"]["total"]
    done = False

    async def write() -> None:
        nonlocal done
        for step in range(25):
            await add(kit, tool, [made(tool, 3 * step + one, day(step)) for one in range(3)])
        done = True

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        while not done:
            body = (await kit.call(tool, projectId=PSYMETRIC, limit=100)).body
            assert (body["pagination"]["total"] - start) % 3 == 0
            assert len(body["data"]) == min(100, body["pagination"]["total"])

"""Schedules: each time once, whoever looks, and one run for times that went by."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.statements import noted_statements
from tests.workflows.conftest import OpenShop, Shop

from toolgate.db.workflow_holds import RESTING, hold_schedules, resume_schedules
from toolgate.workflows.declarations import Run, Workflow, stamp
from toolgate.workflows.schedules import BadSchedule

pytestmark = pytest.mark.anyio


def hourly(schedule: str = "0 * * * *") -> Workflow[Any]:
    async def run(run: Run[Any]) -> dict[str, Any]:
        return {}

    return Workflow(name="hourly", summary="Works.", run=run, schedule=schedule)


async def look(shop: Shop, times: int = 1) -> int:
    """Every worker looks at once; how many runs there are."""
    for _ in range(times):
        await asyncio.gather(*(worker.look() for worker in shop.workers))
    for worker in shop.workers:
        await worker.finished()
    return len(await shop.runs().list())


async def test_it_fires_once_a_time_with_several_workers(open_shop: OpenShop) -> None:
    shop = open_shop(hourly())
    for _ in range(3):
        shop.worker()
    assert await look(shop) == 0, "not at the first start, but at its time"
    shop.clock.forward(minutes=59)
    assert await look(shop) == 0
    for number in (1, 2, 3):
        shop.clock.forward(hours=1)
        assert await look(shop, times=2) == number


async def test_times_that_went_by_are_made_up_for_by_one_run(open_shop: OpenShop) -> None:
    shop = open_shop(hourly())
    shop.worker()
    await look(shop)
    shop.clock.forward(hours=72)
    shop.worker()  # started anew after three days
    assert await look(shop, times=2) == 1


async def test_a_new_expression_counts_from_now(open_shop: OpenShop) -> None:
    shop = open_shop(hourly())
    shop.worker()
    await look(shop)
    changed = open_shop(hourly("30 12 * * *"), clock=shop.clock)
    changed.clock.now = datetime(2026, 3, 1, 12, 29, tzinfo=UTC)
    changed.worker()
    assert await look(changed) == 0
    changed.clock.forward(minutes=1)
    assert await look(changed) == 1


async def test_what_is_no_schedule_is_told_at_the_start(open_shop: OpenShop) -> None:
    with pytest.raises(BadSchedule, match=r"pack/hourly: 'every hour'"):
        open_shop(hourly("every hour")).worker()


async def test_a_look_without_anything_to_do_is_one_statement(open_shop: OpenShop) -> None:
    shop = open_shop(hourly())
    worker = shop.worker()
    await worker.look()
    with noted_statements() as statements:
        for _ in range(5):
            shop.clock.forward(seconds=1)
            await worker.look()
    assert len(statements) == 5
    assert all("workflow_runs" in one for one in statements)


async def test_without_work_there_is_no_run(open_shop: OpenShop) -> None:
    there_is = False

    async def when(world: Any) -> bool:
        return there_is

    shop = open_shop(replace(hourly(), when=when))
    shop.worker()
    await look(shop)
    shop.clock.forward(hours=1)
    assert await look(shop) == 0
    there_is = True
    assert await look(shop) == 0, "it is asked at its time, and not before the next"
    shop.clock.forward(hours=1)
    assert await look(shop) == 1


async def test_who_cannot_say_whether_there_is_work_runs(open_shop: OpenShop) -> None:
    async def when(world: Any) -> bool:
        raise LookupError("the store is away")

    shop = open_shop(replace(hourly(), when=when))
    shop.worker()
    await look(shop)
    shop.clock.forward(hours=1)
    assert await look(shop) == 1


async def test_in_a_restored_database_nothing_starts_before_an_operator_says_so(
    open_shop: OpenShop, caplog: pytest.LogCaptureFixture
) -> None:
    shop = open_shop(hourly())
    for _ in range(2):
        shop.worker()
    await look(shop)
    await shop.database.write(lambda c: hold_schedules(c, stamp(shop.clock.now)))
    shop.clock.forward(hours=72)
    assert await look(shop, times=3) == 0
    assert [one.message for one in caplog.records] == [RESTING, RESTING], "each worker says it once"
    assert await shop.database.write(resume_schedules)
    assert not await shop.database.write(resume_schedules)
    assert await look(shop) == 0, "it is not asked all the time"
    shop.clock.forward(seconds=10)
    assert await look(shop, times=2) == 1, "and what went by is made up for"

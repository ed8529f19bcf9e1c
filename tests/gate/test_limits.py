"""How much one caller may ask for: rate, size, time, calls at once."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from tests.gate.tools import (
    ADMIN,
    USER,
    Said,
    a_tool,
    answering,
    call_at_once,
    give_time,
    is_stored,
    offer,
    only_row,
    storing,
)
from tests.patience import PATIENT

from toolgate.gate.errors import RateLimited
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

START = 1_800_000_000.0  # the beginning of a minute


class Clock:
    """Time as the counters see it: it moves when a test says so."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    stopped = Clock()
    monkeypatch.setattr(time, "time", stopped)
    return stopped


def echo() -> Any:
    return offer(
        a_tool("echo", role=Role.PUBLIC), a_tool("other", role=Role.PUBLIC, effect=Effect.WRITE)
    )


async def refusals(kit: Kit, times: int, tool: str = "echo", who: Any = ADMIN) -> list[Any]:
    outcomes = [await kit.call(tool, who) for _ in range(times)]
    return [one.error for one in outcomes if one.error]


# Calls a minute -------------------------------------------------------------------------------


async def test_the_601st_call_in_a_minute_is_refused_and_told_when_to_come_back(
    tmp_path: Path, clock: Clock
) -> None:
    async with opened_kit(tmp_path, plugins=echo(), limits__calls_per_minute=600) as kit:
        assert await refusals(kit, 600) == []
        clock.now += 20
        refused = await kit.call("echo")
        assert isinstance(refused.error, RateLimited)
        assert refused.status == 429
        assert refused.error.retry_after == 40
        assert "600 calls a minute. Try again in 40 s." in refused.error.message
        rows = await kit.audit_rows()
        assert len(rows) == 601
        assert (rows[-1]["error_type"], rows[-1]["decision"]) == ("rate_limited", "allow")


async def test_one_callers_limit_is_not_anothers(tmp_path: Path, clock: Clock) -> None:
    async with opened_kit(tmp_path, plugins=echo(), limits__calls_per_minute=3) as kit:
        assert len(await refusals(kit, 5)) == 2
        assert await refusals(kit, 3, who=USER) == []


async def test_calls_are_possible_again_when_time_has_passed(tmp_path: Path, clock: Clock) -> None:
    async with opened_kit(tmp_path, plugins=echo(), limits__calls_per_minute=3) as kit:
        assert len(await refusals(kit, 4)) == 1
        clock.now += 120
        assert await refusals(kit, 3) == []


async def test_the_limit_holds_for_calls_at_the_same_time(tmp_path: Path, clock: Clock) -> None:
    async with opened_kit(tmp_path, plugins=echo(), limits__calls_per_minute=10) as kit:
        outcomes = await call_at_once(kit, 25, "echo")
        assert sorted(one.status for one in outcomes) == [200] * 10 + [429] * 15


async def test_a_single_tool_can_have_a_limit_of_its_own(tmp_path: Path, clock: Clock) -> None:
    limits = {"echo": 2}
    async with opened_kit(tmp_path, plugins=echo(), limits__tool_calls_per_minute=limits) as kit:
        (refused,) = await refusals(kit, 3)
        assert "2 calls of echo a minute" in refused.message
        assert await refusals(kit, 3, "other") == []
        assert await refusals(kit, 2, who=USER) == []


@pytest.mark.parametrize(
    "limits",
    [
        {"limits__calls_per_minute": 0},
        {"limits__calls_per_minute": 0, "limits__tool_calls_per_minute": {"echo": 0}},
    ],
    ids=["calls", "calls of a tool"],
)
async def test_zero_means_no_limit(tmp_path: Path, clock: Clock, limits: dict[str, Any]) -> None:
    async with opened_kit(tmp_path, plugins=echo(), **limits) as kit:
        assert await refusals(kit, 700) == []


# Size -----------------------------------------------------------------------------------------


def long_answer(size: int, effect: Effect = Effect.READ) -> Any:
    async def run(ctx: Any, args: Any) -> Said:
        if effect is not Effect.READ:
            await storing()(ctx, args)
        return Said(text="x" * size)

    return offer(a_tool("long", run, pack="network", effect=effect))


async def test_an_answer_of_exactly_the_limit_is_sent(tmp_path: Path) -> None:
    fits = 2048 - len('{"text":""}')
    kit_of = opened_kit(tmp_path, plugins=long_answer(fits), limits__result_bytes=2048)
    async with kit_of as kit:
        assert len((await kit.call("long")).raw) == 2048


async def test_an_answer_over_the_limit_is_refused_with_what_to_do(tmp_path: Path) -> None:
    kit_of = opened_kit(tmp_path, plugins=long_answer(2048), limits__result_bytes=2048)
    async with kit_of as kit:
        refused = await kit.call("long")
        assert refused.status == 413
        assert "Ask for fewer items or use a filter." in refused.body["message"]
        assert (await only_row(kit))["error_type"] == "size_limit_exceeded"


async def test_a_write_whose_answer_is_too_large_stores_nothing(tmp_path: Path) -> None:
    plugins = long_answer(2048, Effect.WRITE)
    async with opened_kit(tmp_path, plugins=plugins, limits__result_bytes=2048) as kit:
        assert (await kit.call("long")).status == 413
        assert not await is_stored(kit)
        row = await only_row(kit)
        assert (row["status"], row["error_type"]) == ("error", "size_limit_exceeded")


# Time -----------------------------------------------------------------------------------------


def endless(before: Callable[[], None] = lambda: None) -> Any:
    """Writes, then waits for ever."""

    async def run(ctx: Any, args: Any) -> Said:
        await storing()(ctx, args)
        before()
        await anyio.Event().wait()
        raise AssertionError("nobody set the event")

    return run


@pytest.mark.parametrize("effect", [Effect.READ, Effect.WRITE])
async def test_a_call_that_takes_too_long_is_stopped(tmp_path: Path, effect: Effect) -> None:
    async def waits(ctx: Any, args: Any) -> Said:
        await anyio.Event().wait()
        raise AssertionError("nobody set the event")

    run = waits if effect is Effect.READ else endless()
    tool = a_tool("db.slow", run, effect=effect)
    async with opened_kit(tmp_path, plugins=offer(tool)) as kit:
        give_time(kit, 0.05)
        with anyio.fail_after(PATIENT):
            stopped = await kit.call("db.slow")
        assert stopped.status == 504
        assert stopped.body["error"]["type"] == "timeout"
        assert "took too long" in stopped.body["error"]["message"]
        assert not await is_stored(kit)
        row = await only_row(kit)
        assert (row["status"], row["error_type"]) == ("error", "timeout")
        assert row["duration_ms"] >= 50
        assert (await kit.call("list_collections")).error is None


# Calls at once --------------------------------------------------------------------------------


async def test_one_call_too_many_waits_until_another_has_ended(tmp_path: Path) -> None:
    most = 3
    running: list[anyio.Event] = []

    async def waits(ctx: Any, args: Any) -> Said:
        mine = anyio.Event()
        running.append(mine)
        await mine.wait()
        return Said()

    plugins = offer(a_tool("db.wait", waits), a_tool("db.quick", answering()))
    kit_of = opened_kit(tmp_path, plugins=plugins, limits__concurrency=most)
    async with kit_of as kit, anyio.create_task_group() as calls:
        for _ in range(most + 1):
            calls.start_soon(kit.call, "db.wait")
        with anyio.fail_after(PATIENT):
            await until(lambda: len(running) == most)
            await anyio.wait_all_tasks_blocked()
            assert len(running) == most
            running[0].set()
            await until(lambda: len(running) == most + 1)
            for one in running:
                one.set()


async def test_a_call_that_waits_for_its_turn_too_long_is_stopped(tmp_path: Path) -> None:
    kit_of = opened_kit(
        tmp_path,
        plugins=offer(a_tool("db.wait", endless(), effect=Effect.WRITE)),
        limits__concurrency=1,
    )
    async with kit_of as kit:
        give_time(kit, 0.1)
        with anyio.fail_after(PATIENT):
            outcomes = await call_at_once(kit, 3, "db.wait")
        assert [one.status for one in outcomes] == [504] * 3
        assert not await is_stored(kit)


async def test_more_writers_than_threads_do_not_starve_each_other(
    tmp_path: Path, database_url: str
) -> None:
    kit_of = opened_kit(tmp_path, writes=True, limits__concurrency=200, database__url=database_url)
    created: list[int] = []

    async def create(kit: Kit) -> None:
        outcome = await kit.call("create_document", collection="apps", data={})
        created.append(outcome.status)

    async with kit_of as kit:
        with anyio.fail_after(PATIENT):
            async with anyio.create_task_group() as calls:
                for _ in range(120):
                    calls.start_soon(create, kit)
        assert created == [200] * 120
        assert len(await kit.audit_rows()) == 120


# Cancellation ---------------------------------------------------------------------------------


async def test_a_cancelled_call_writes_nothing_but_its_audit_row(tmp_path: Path) -> None:
    began = anyio.Event()
    tool = a_tool("db.slow", endless(began.set), effect=Effect.WRITE)
    async with opened_kit(tmp_path, plugins=offer(tool)) as kit:
        async with anyio.create_task_group() as calls:
            calls.start_soon(kit.call, "db.slow")
            await began.wait()
            calls.cancel_scope.cancel()
        assert not await is_stored(kit)
        row = await only_row(kit)
        assert (row["status"], row["error_type"]) == ("error", "cancelled")
        with anyio.fail_after(PATIENT):
            assert (await call_at_once(kit, 1, "list_collections"))[0].error is None


async def until(true: Callable[[], bool]) -> None:
    """Let others run until something is so; the caller sets the deadline."""
    while not true():
        await anyio.lowlevel.checkpoint()

"""A handler that waits has a turn and a deadline; one that does not needs neither."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from toolgate.gate.concurrency import run_bounded
from toolgate.gate.deadlines import Deadlines
from toolgate.gate.turns import Turns

pytestmark = pytest.mark.anyio

LONG, SHORT = 60.0, 0.02
CALLER = "user:jane"


async def at_once(value: Any) -> Any:
    return value


async def waits_for(event: asyncio.Event, value: Any = "done") -> Any:
    await event.wait()
    await asyncio.sleep(0)
    return value


async def fails(error: Exception, *, later: bool) -> None:
    if later:
        await asyncio.sleep(0)
    raise error


class Limits:
    """One turn, and as much time as a test wants."""

    def __init__(self, seconds: float = LONG, most: int = 1) -> None:
        self.turns, self.deadlines = Turns(most), Deadlines(seconds)

    def run(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        async def whole() -> Any:
            return await run_bounded(self.turns, self.deadlines, CALLER, work)

        return asyncio.create_task(whole())


@pytest.fixture
async def limits() -> Limits:
    return Limits()


async def test_one_that_does_not_wait_takes_no_turn_and_no_timer(limits: Limits) -> None:
    assert await run_bounded(limits.turns, limits.deadlines, CALLER, at_once(7)) == 7
    assert limits.turns.free == 1
    assert limits.deadlines.timer is None


async def test_one_that_waits_goes_on_where_it_was(limits: Limits) -> None:
    event = asyncio.Event()
    running = limits.run(waits_for(event))
    await asyncio.sleep(0)
    assert limits.turns.free == 0
    assert len(limits.deadlines.running) == 1
    event.set()
    assert await running == "done"
    assert limits.turns.free == 1
    assert not limits.deadlines.running


@pytest.mark.parametrize("later", [False, True])
async def test_what_it_raises_is_raised(limits: Limits, later: bool) -> None:
    with pytest.raises(KeyError, match="wrong"):
        await run_bounded(
            limits.turns, limits.deadlines, CALLER, fails(KeyError("wrong"), later=later)
        )
    assert limits.turns.free == 1


async def test_where_all_turns_are_taken_the_next_waits_even_if_it_would_not(
    limits: Limits,
) -> None:
    event = asyncio.Event()
    first = limits.run(waits_for(event))
    await asyncio.sleep(0)
    second = limits.run(at_once("second"))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not second.done()
    event.set()
    assert await first == "done"
    assert await second == "second"
    assert limits.turns.free == 1


async def test_one_that_takes_too_long_is_stopped() -> None:
    limits = Limits(SHORT)
    with pytest.raises(TimeoutError):
        await run_bounded(limits.turns, limits.deadlines, CALLER, waits_for(asyncio.Event()))
    assert limits.turns.free == 1


async def test_one_that_waits_too_long_for_its_turn_is_stopped_and_never_begun() -> None:
    limits = Limits(SHORT)
    begun: list[bool] = []

    async def notes() -> None:
        begun.append(True)

    limits.turns.free = 0
    with pytest.raises(TimeoutError):
        await run_bounded(limits.turns, limits.deadlines, CALLER, notes())
    assert not begun
    limits.turns.release(CALLER)
    assert limits.turns.free == 1


async def test_a_cancellation_reaches_it_where_it_waits(limits: Limits) -> None:
    seen: list[str] = []

    async def cleans_up() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            seen.append("cleaned")
            raise

    running = limits.run(cleans_up())
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert seen == ["cleaned"]
    assert limits.turns.free == 1


async def test_one_may_take_a_cancellation_as_an_answer(limits: Limits) -> None:
    async def makes_do() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "enough"
        return "never"

    running = limits.run(makes_do())
    await asyncio.sleep(0)
    running.cancel()
    assert await running == "enough"


async def test_it_runs_in_one_task_before_and_after_it_waited(limits: Limits) -> None:
    tasks: list[Any] = []

    async def looks() -> None:
        tasks.append(asyncio.current_task())
        async with asyncio.timeout(LONG):
            await asyncio.sleep(0)
        tasks.append(asyncio.current_task())

    await run_bounded(limits.turns, limits.deadlines, CALLER, looks())
    assert tasks == [asyncio.current_task()] * 2

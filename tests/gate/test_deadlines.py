"""One timer for all calls: who is over the time is stopped, nobody else."""

import asyncio
import contextlib

import anyio
import anyio.lowlevel
import pytest
from tests.patience import PATIENT

from toolgate.gate.deadlines import Deadline, Deadlines, ServerStopping

pytestmark = pytest.mark.anyio

LONG, SHORT = 60.0, 0.02


async def test_what_ends_in_time_is_left_alone() -> None:
    deadlines = Deadlines(LONG)
    for _ in range(3):
        with Deadline(deadlines):
            await anyio.lowlevel.checkpoint()


async def test_each_that_is_over_is_stopped_and_the_next_ones_after_it() -> None:
    deadlines = Deadlines(SHORT)
    ended: list[int] = []

    async def wait(number: int) -> None:
        with pytest.raises(TimeoutError), Deadline(deadlines):
            await anyio.sleep_forever()
        ended.append(number)

    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks:
            for number in range(3):
                tasks.start_soon(wait, number)
                await anyio.lowlevel.checkpoint()
        await wait(3)  # the timer is wound up again
    assert ended == [0, 1, 2, 3]


async def test_a_task_that_was_stopped_goes_on_as_if_never_cancelled() -> None:
    with pytest.raises(TimeoutError), Deadline(Deadlines(SHORT)):
        await anyio.sleep_forever()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await anyio.lowlevel.checkpoint()


async def test_a_cancellation_from_elsewhere_is_none_of_ours() -> None:
    seen: list[str] = []

    async def wait() -> None:
        try:
            with Deadline(Deadlines(LONG)):
                await anyio.sleep_forever()
        except TimeoutError:
            seen.append("timeout")
        except anyio.get_cancelled_exc_class():
            seen.append("cancelled")
            raise

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert seen == ["cancelled"]


async def test_a_handler_that_takes_the_cancellation_for_itself_gets_no_second_one() -> None:
    with Deadline(Deadlines(SHORT)), contextlib.suppress(asyncio.CancelledError):
        await anyio.sleep_forever()
    await anyio.lowlevel.checkpoint()


async def test_what_begins_after_the_stop_is_stopped_too() -> None:
    deadlines = Deadlines(10 * PATIENT)

    async def wait() -> None:
        with Deadline(deadlines):
            await anyio.sleep_forever()

    async def one_after_the_other() -> None:
        for _ in range(2):  # as the requests of a batch
            with pytest.raises(ServerStopping):
                await wait()

    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one_after_the_other)
            await anyio.wait_all_tasks_blocked()
            deadlines.stop()

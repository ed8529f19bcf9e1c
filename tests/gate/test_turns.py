"""Turns go to who waited longest, and none is lost, whoever gives up waiting."""

import asyncio
import random

import anyio
import anyio.lowlevel
import pytest
from tests.patience import PATIENT

from toolgate.gate.turns import Turns

pytestmark = pytest.mark.anyio


async def take(turns: Turns) -> None:
    if turns.free:
        turns.free -= 1
    else:
        await turns.wait()


async def test_who_waited_longest_is_next() -> None:
    turns, order = Turns(1), list[int]()

    async def work(number: int) -> None:
        await take(turns)
        order.append(number)
        await anyio.lowlevel.checkpoint()
        turns.release()

    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(work, number)
    assert order == [0, 1, 2, 3, 4]
    assert turns.free == 1


async def test_a_turn_left_to_somebody_who_was_just_cancelled_goes_on_to_the_next() -> None:
    turns = Turns(1)
    await take(turns)
    first = asyncio.ensure_future(turns.wait())
    second = asyncio.ensure_future(turns.wait())
    await anyio.lowlevel.checkpoint()
    turns.release()  # to the first,
    first.cancel()  # which does not want it any more
    with anyio.fail_after(PATIENT):
        await second
    assert turns.free == 0
    turns.release()
    assert turns.free == 1


@pytest.mark.parametrize("seed", range(20))
async def test_no_turn_is_lost_when_some_give_up(seed: int) -> None:
    chance, most, running = random.Random(seed), 3, 0
    turns = Turns(most)

    async def work(patience: int, steps: int) -> None:
        nonlocal running
        with anyio.CancelScope() as scope:

            async def give_up() -> None:
                for _ in range(patience):
                    await anyio.lowlevel.checkpoint()
                scope.cancel()

            tasks.start_soon(give_up)
            await take(turns)
            running += 1
            try:
                assert running <= most
                for _ in range(steps):
                    await anyio.lowlevel.checkpoint()
            finally:
                running -= 1
                turns.release()

    async with anyio.create_task_group() as tasks:
        for _ in range(40):
            tasks.start_soon(work, chance.randrange(12), chance.randrange(6))
    assert turns.free == most

"""Turns are dealt out caller by caller, and none is lost, whoever gives up waiting."""

import asyncio
import random

import anyio
import anyio.lowlevel
import pytest
from tests.patience import PATIENT

from toolgate.gate.turns import SharedTurns, Turns

pytestmark = pytest.mark.anyio


JANE, JOE, ANN = "user:jane", "user:joe", "user:ann"


async def take(turns: Turns, caller: str = JANE) -> None:
    if turns.free:
        turns.free -= 1
    else:
        await turns.wait(caller)


async def order_of(turns: Turns, callers: list[str]) -> list[str]:
    """Who runs one after the other where all come at once, in this order."""
    order: list[str] = []

    async def work(caller: str) -> None:
        await take(turns, caller)
        order.append(caller)
        await anyio.lowlevel.checkpoint()
        turns.release(caller)

    async with anyio.create_task_group() as tasks:
        for caller in callers:
            tasks.start_soon(work, caller)
    return order


async def holding(turns: Turns, caller: str, most: int) -> int:
    """How many turns a caller gets that asks for many and gives none back."""
    for number in range(most):
        with anyio.move_on_after(0) as asked:
            await take(turns, caller)
        if asked.cancelled_caught:
            return number
    return most


async def test_of_one_caller_who_waited_longest_is_next() -> None:
    turns, order = Turns(1), list[int]()

    async def work(number: int) -> None:
        await take(turns)
        order.append(number)
        await anyio.lowlevel.checkpoint()
        turns.release(JANE)

    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(work, number)
    assert order == [0, 1, 2, 3, 4]
    assert turns.free == 1


async def test_a_turn_left_to_somebody_who_was_just_cancelled_goes_on_to_the_next() -> None:
    turns = Turns(1)
    await take(turns)
    first = asyncio.ensure_future(turns.wait(JANE))
    second = asyncio.ensure_future(turns.wait(JANE))
    await anyio.lowlevel.checkpoint()
    turns.release(JANE)  # to the first,
    first.cancel()  # which does not want it any more
    with anyio.fail_after(PATIENT):
        await second
    assert turns.free == 0
    turns.release(JANE)
    assert turns.free == 1


@pytest.mark.parametrize("kind", [Turns, SharedTurns])
async def test_callers_take_it_in_turn(kind: type[Turns]) -> None:
    """One call of somebody does not wait for all those of somebody else who came before."""
    order = await order_of(kind(1), [JANE] * 5 + [JOE] * 2 + [ANN])
    assert order == [JANE, JANE, JOE, ANN, JANE, JOE, JANE, JANE]


@pytest.mark.parametrize(
    ("most", "alone"), [(1, 1), (2, 1), (3, 2), (64, 32)], ids=["1", "2", "3", "64"]
)
async def test_one_caller_holds_at_most_half_of_the_turns_that_are_shared(
    most: int, alone: int
) -> None:
    assert await holding(SharedTurns(most), JANE, most + 1) == alone


async def test_each_caller_leaves_some_to_the_next() -> None:
    turns = SharedTurns(64)
    held = [await holding(turns, f"user:{number}", 65) for number in range(8)]
    assert held == [32, 16, 8, 4, 2, 1, 1, 0]


async def test_what_is_given_back_goes_to_who_has_less() -> None:
    turns = SharedTurns(2)
    await take(turns, JANE)
    await take(turns, JOE)
    more = asyncio.ensure_future(turns.wait(JANE))
    first = asyncio.ensure_future(turns.wait(ANN))
    await anyio.lowlevel.checkpoint()
    turns.release(JOE)
    with anyio.fail_after(PATIENT):
        await first
    assert not more.done(), "who asked before, but holds one"
    turns.release(JANE)
    with anyio.fail_after(PATIENT):
        await more


@pytest.mark.parametrize("kind", [Turns, SharedTurns])
@pytest.mark.parametrize("seed", range(20))
async def test_no_turn_is_lost_when_some_give_up(seed: int, kind: type[Turns]) -> None:
    chance, most, running = random.Random(seed), 3, 0
    turns = kind(most)

    async def work(caller: str, patience: int, steps: int) -> None:
        nonlocal running
        with anyio.CancelScope() as scope:

            async def give_up() -> None:
                for _ in range(patience):
                    await anyio.lowlevel.checkpoint()
                scope.cancel()

            tasks.start_soon(give_up)
            await take(turns, caller)
            running += 1
            try:
                assert running <= most
                for _ in range(steps):
                    await anyio.lowlevel.checkpoint()
            finally:
                running -= 1
                turns.release(caller)

    async with anyio.create_task_group() as tasks:
        for _ in range(40):
            caller = chance.choice([JANE, JOE, ANN])
            tasks.start_soon(work, caller, chance.randrange(12), chance.randrange(6))
    assert await holding(turns, JANE, most + 1) == (most if kind is Turns else 2)

"""One run for all who ask at the same time."""

import anyio
import pytest

from toolgate.identity.shared_requests import SharedRequests

pytestmark = pytest.mark.anyio


async def test_those_who_ask_at_once_get_one_run() -> None:
    shared, runs, results = SharedRequests[int](), list[int](), list[int]()

    async def work() -> int:
        runs.append(1)
        await anyio.lowlevel.checkpoint()
        return len(runs)

    async def ask() -> None:
        results.append(await shared.run("a", work))

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(ask)
    assert (len(runs), results) == (1, [1] * 5)
    assert await shared.run("a", work) == 2, "nothing is kept"


async def test_a_problem_is_everybodys_and_not_kept() -> None:
    shared, runs, problems = SharedRequests[int](), list[int](), list[str]()

    async def work() -> int:
        runs.append(1)
        await anyio.lowlevel.checkpoint()
        raise ValueError("no")

    async def ask() -> None:
        with pytest.raises(ValueError, match="no") as raised:
            await shared.run("a", work)
        problems.append(str(raised.value))

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(ask)
    assert (len(runs), problems) == (1, ["no"] * 3)
    await ask()
    assert len(runs) == 2


async def test_when_the_first_is_cancelled_the_next_runs_it() -> None:
    shared, started, results = SharedRequests[str](), anyio.Event(), list[str]()

    async def forever() -> str:
        started.set()
        await anyio.sleep_forever()
        return "never"

    async def quick() -> str:
        return "done"

    async def wait() -> None:
        results.append(await shared.run("a", quick))

    async with anyio.create_task_group() as group:
        scope = anyio.CancelScope()

        async def first() -> None:
            with scope:
                await shared.run("a", forever)

        group.start_soon(first)
        await started.wait()
        group.start_soon(wait)
        await anyio.lowlevel.checkpoint()
        scope.cancel()
    assert results == ["done"]

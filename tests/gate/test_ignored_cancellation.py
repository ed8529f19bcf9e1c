"""A handler that goes on after its cancellation is ended; its caller does not wait for it."""

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.gate.tools import Said, a_tool, answering, end_the_time, is_stored, offer, storing
from tests.patience import PATIENT

from toolgate.gate import concurrency
from toolgate.gate.outcomes import Outcome
from toolgate.gate.tool import Effect
from toolgate.testing.kit import ADMIN, Kit, opened_kit

pytestmark = pytest.mark.anyio


class Stubborn:
    """Handlers that wait for ever, each in its own way; `begun` is set when one waits."""

    def __init__(self) -> None:
        self.begun = anyio.Event()
        self.cleaned: list[str] = []

    async def _wait(self) -> None:
        self.begun.set()
        await asyncio.Event().wait()

    async def swallows(self, ctx: Any, args: Any) -> Said:
        while True:
            with suppress(asyncio.CancelledError):
                await self._wait()

    async def swallows_all(self, ctx: Any, args: Any) -> Said:
        while True:
            with suppress(BaseException):
                await self._wait()

    async def swallows_in_a_block(self, ctx: Any, args: Any) -> Said:
        try:
            return await self.swallows(ctx, args)
        finally:
            with suppress(BaseException):
                await asyncio.sleep(0)
            self.cleaned.append("block")

    async def cleans_up(self, ctx: Any, args: Any) -> Said:
        try:
            await self._wait()
        finally:
            await asyncio.sleep(0)
            self.cleaned.append("all")
        return Said()

    async def has_timeouts(self, ctx: Any, args: Any) -> Said:
        for _ in range(3):
            with suppress(TimeoutError):
                async with asyncio.timeout(0):
                    await asyncio.Event().wait()
            with anyio.move_on_after(0):
                await anyio.sleep_forever()
        await asyncio.sleep(0)
        return Said(done=True)

    async def stores_and_swallows(self, ctx: Any, args: Any) -> Said:
        await storing()(ctx, args)
        return await self.swallows(ctx, args)


HANDLERS: dict[str, Callable[[Stubborn], Any]] = {
    "swallows": lambda one: one.swallows,
    "swallows_all": lambda one: one.swallows_all,
    "swallows_in_a_block": lambda one: one.swallows_in_a_block,
}


@pytest.fixture
async def stubborn() -> Stubborn:
    return Stubborn()


@pytest.fixture
async def kit(tmp_path: Path, stubborn: Stubborn) -> AsyncIterator[Kit]:
    tools = [a_tool(name, run(stubborn)) for name, run in HANDLERS.items()]
    tools += [
        a_tool("cleans_up", stubborn.cleans_up),
        a_tool("has_timeouts", stubborn.has_timeouts),
        a_tool("stores", stubborn.stores_and_swallows, effect=Effect.WRITE),
        a_tool("stores_well", storing(), effect=Effect.WRITE),
        a_tool("quick", answering(done=True)),
    ]
    async with opened_kit(tmp_path, writes=True, plugins=offer(*tools)) as opened:
        yield opened


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The moment to clean up is over when others have run."""
    monkeypatch.setattr(concurrency, "CLEANUP_SECONDS", 0.0)


async def overdue(kit: Kit, stubborn: Stubborn, tool: str) -> Outcome:
    """The answer of a call whose time is over while its handler waits."""
    outcomes: list[Outcome] = []

    async def call() -> None:
        outcomes.append(await kit.call(tool))

    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as calls:
            calls.start_soon(call)
            await stubborn.begun.wait()
            end_the_time(kit)
    return outcomes[0]


@pytest.mark.parametrize("tool", HANDLERS)
async def test_the_caller_is_told_that_it_took_too_long(
    kit: Kit, stubborn: Stubborn, tool: str, caplog: pytest.LogCaptureFixture
) -> None:
    free = kit.app.gate.limits.turns.free
    outcome = await overdue(kit, stubborn, tool)
    assert outcome.error_type == "timeout"
    assert kit.app.gate.limits.turns.free == free
    (line,) = [one for one in caplog.records if one.levelno >= logging.WARNING]
    told = "went on after it was cancelled, and was ended. Let CancelledError pass in it."
    assert line.getMessage() == f"{tool} {told}"
    gc.collect()
    assert (await kit.call("quick")).error is None
    (first, _) = await kit.audit_rows()
    assert (first["tool_name"], first["error_type"]) == (tool, "timeout")


async def test_the_blocks_around_it_end(kit: Kit, stubborn: Stubborn) -> None:
    await overdue(kit, stubborn, "swallows_in_a_block")
    assert stubborn.cleaned == ["block"]


async def test_a_write_is_taken_back_and_the_next_one_is_done(kit: Kit, stubborn: Stubborn) -> None:
    outcome = await overdue(kit, stubborn, "stores")
    assert outcome.error_type == "timeout"
    assert not await is_stored(kit)
    with anyio.fail_after(PATIENT):
        assert (await kit.call("stores_well")).error is None
    assert await is_stored(kit)


async def test_one_that_waited_for_its_turn_is_ended_too(kit: Kit, stubborn: Stubborn) -> None:
    turns = kit.app.gate.limits.turns
    before, turns.free = turns.free, 0
    outcomes: list[Outcome] = []

    async def call() -> None:
        outcomes.append(await kit.call("swallows"))

    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as calls:
            calls.start_soon(call)
            await anyio.wait_all_tasks_blocked()
            turns.release(ADMIN.id)
            await stubborn.begun.wait()
            end_the_time(kit)
    assert outcomes[0].error_type == "timeout"
    turns.free += before - 1
    assert turns.free == before


async def test_a_server_that_stops_does_not_wait_for_it(kit: Kit, stubborn: Stubborn) -> None:
    outcomes: list[Outcome] = []

    async def call() -> None:
        outcomes.append(await kit.call("swallows"))

    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as calls:
            calls.start_soon(call)
            await stubborn.begun.wait()
            kit.app.gate.limits.allowances.stop()
    assert outcomes[0].error_type == "unavailable"


async def test_one_that_only_cleans_up_may_do_so(
    kit: Kit,
    stubborn: Stubborn,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(concurrency, "CLEANUP_SECONDS", PATIENT)
    assert (await overdue(kit, stubborn, "cleans_up")).error_type == "timeout"
    assert stubborn.cleaned == ["all"]
    assert not caplog.records


async def test_a_handlers_own_timeouts_are_its_own(kit: Kit, stubborn: Stubborn) -> None:
    outcome = await kit.call("has_timeouts")
    assert outcome.body["result"] == {"done": True}

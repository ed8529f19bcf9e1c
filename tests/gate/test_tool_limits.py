"""What a tool says of its own limits: settings allow less, never more; slow tools wait apart."""

from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from pydantic import Field
from tests.gate.tools import USER, Said, a_tool, answering, is_stored, offer, only_row, storing
from tests.patience import PATIENT

from toolgate.gate.catalogue import AnyTool
from toolgate.gate.limits import Allowances, Limits
from toolgate.gate.outcomes import Outcome
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Input, NoArguments, ToolLimits
from toolgate.sections import LimitSettings
from toolgate.testing.kit import ADMIN, Kit, opened_kit

pytestmark = pytest.mark.anyio

SHORT = 0.05
SLOW = ToolLimits(slow=True)


class Held:
    """A handler that waits until it is told to go on."""

    def __init__(self) -> None:
        self.running = 0
        self.go_on = anyio.Event()

    async def __call__(self, ctx: Any, args: Any) -> Said:
        self.running += 1
        try:
            await self.go_on.wait()
        finally:
            self.running -= 1
        return Said()

    async def until(self, running: int) -> None:
        with anyio.fail_after(PATIENT):
            while self.running != running:
                await anyio.lowlevel.checkpoint()


@pytest.fixture
def held() -> Held:
    return Held()


def allowances(**settings: Any) -> Allowances:
    return Limits(LimitSettings(**settings)).allowances


# Time


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        (ToolLimits(), 60),
        (ToolLimits(seconds=5), 5),
        (ToolLimits(seconds=600), 60),
        (SLOW, 7200),
        (ToolLimits(seconds=600, slow=True), 600),
        (ToolLimits(seconds=86400, slow=True), 7200),
    ],
    ids=["nothing", "less", "more", "slow", "slow and less", "slow and more"],
)
async def test_a_tool_has_the_time_it_says_within_the_settings(
    said: ToolLimits, seconds: float
) -> None:
    made = allowances(seconds=60, slow_seconds=7200)
    assert made[said].deadlines.seconds == seconds


async def test_tools_with_the_same_time_share_one_timer() -> None:
    made = allowances(seconds=60)
    plain, same = made[ToolLimits()], made[ToolLimits(seconds=60, result_bytes=2048)]
    short = made[ToolLimits(seconds=5)]
    assert plain.deadlines is same.deadlines
    assert short.deadlines is made[ToolLimits(seconds=5, slow=True)].deadlines
    assert short.deadlines is not plain.deadlines


@pytest.mark.parametrize(
    ("said", "settings"),
    [
        (ToolLimits(seconds=SHORT), {}),
        (ToolLimits(seconds=3600), {"limits__seconds": SHORT}),
        (ToolLimits(seconds=3600, slow=True), {"limits__slow_seconds": SHORT}),
    ],
    ids=["its own", "the setting", "the setting for slow tools"],
)
async def test_a_call_is_stopped_after_the_shorter_time(
    tmp_path: Path, held: Held, said: ToolLimits, settings: dict[str, Any]
) -> None:
    plugins = offer(a_tool("hold", held, limits=said))
    async with opened_kit(tmp_path, plugins=plugins, **settings) as kit:
        assert (await kit.call("hold")).error_type == "timeout"
        assert (await only_row(kit))["error_type"] == "timeout"
    assert held.running == 0


async def test_a_slow_tool_outlives_the_time_of_others(tmp_path: Path, held: Held) -> None:
    """Both begin together; one is stopped, the other goes on."""
    plugins = offer(a_tool("hold", held), a_tool("long", held, limits=SLOW))
    outcomes: dict[str, Outcome] = {}

    async def call(kit: Kit, name: str) -> None:
        outcomes[name] = await kit.call(name)

    async with (
        opened_kit(tmp_path, plugins=plugins, limits__seconds=SHORT) as kit,
        anyio.create_task_group() as calls,
    ):
        calls.start_soon(call, kit, "long")
        await held.until(1)
        await call(kit, "hold")
        assert outcomes["hold"].error_type == "timeout"
        assert held.running == 1
        held.go_on.set()
    assert outcomes["long"].error is None


async def test_a_server_that_stops_waits_for_no_slow_call(tmp_path: Path, held: Held) -> None:
    early, late = ToolLimits(seconds=500, slow=True), ToolLimits(seconds=700, slow=True)
    plugins = offer(a_tool("early", held, limits=early), a_tool("late", held, limits=late))
    outcomes: list[Outcome] = []

    async def call(kit: Kit, name: str) -> None:
        outcomes.append(await kit.call(name))

    async with opened_kit(tmp_path, plugins=plugins) as kit:
        async with anyio.create_task_group() as calls:
            calls.start_soon(call, kit, "early")
            await held.until(1)
            kit.app.gate.limits.allowances.stop()
        await call(kit, "late")
    assert [one.error_type for one in outcomes] == ["unavailable", "unavailable"]


# Turns


async def test_sleeping_slow_calls_delay_no_other(tmp_path: Path, held: Held) -> None:
    plugins = offer(a_tool("sleep", held, limits=SLOW, role=Role.USER))
    async with opened_kit(tmp_path, plugins=plugins) as kit, anyio.create_task_group() as calls:
        for caller, most in ((ADMIN, 32), (USER, 32 + 16)):
            for _ in range(64):
                calls.start_soon(kit.call, "sleep", caller)
            await held.until(most)
        with anyio.fail_after(PATIENT):
            assert (await kit.call("health_check")).error is None
        assert held.running == 32 + 16, "one more than may run at once waits for its turn"
        held.go_on.set()


async def test_who_makes_many_slow_calls_does_not_delay_those_of_others(
    tmp_path: Path, held: Held
) -> None:
    quick = a_tool("quick", limits=SLOW, role=Role.USER)
    plugins = offer(a_tool("sleep", held, limits=SLOW), quick)
    async with opened_kit(tmp_path, plugins=plugins) as kit, anyio.create_task_group() as calls:
        for _ in range(130):
            calls.start_soon(kit.call, "sleep")
        await held.until(32)
        with anyio.fail_after(PATIENT):
            assert (await kit.call("quick", USER)).error is None
        assert held.running == 32
        held.go_on.set()


async def test_who_makes_many_calls_that_wait_delays_others_by_one_turn(tmp_path: Path) -> None:
    """Ordinary turns are not shared out, but those who wait for one go on caller by caller."""
    order: list[str] = []

    async def run(ctx: Any, args: Any) -> Said:
        await anyio.lowlevel.checkpoint()
        order.append(ctx.principal.id)
        return Said()

    plugins = offer(a_tool("wait", run, role=Role.USER))
    kit_of = opened_kit(tmp_path, plugins=plugins, limits__concurrency=1)
    async with kit_of as kit, anyio.create_task_group() as calls:
        for _ in range(20):
            calls.start_soon(kit.call, "wait")
        calls.start_soon(kit.call, "wait", USER)
    assert len(order) == 21
    assert order.index(USER.id) <= 2


async def test_the_setting_says_how_many_slow_calls_run(tmp_path: Path, held: Held) -> None:
    plugins = offer(a_tool("sleep", held, limits=SLOW), a_tool("look"))
    kit_of = opened_kit(tmp_path, plugins=plugins, limits__slow_concurrency=3)
    async with kit_of as kit, anyio.create_task_group() as calls:
        for _ in range(3):
            calls.start_soon(kit.call, "sleep")
        await held.until(2)
        assert (await kit.call("look")).error is None
        assert held.running == 2
        held.go_on.set()
    assert [row["status"] for row in await kit_rows(tmp_path)] == ["success"] * 4


async def kit_rows(folder: Path) -> list[dict[str, Any]]:
    async with opened_kit(folder) as kit:
        return await kit.audit_rows()


# Size


class Text(Input):
    """A text."""

    text: str = Field(description="Any text.")


ROOM = len('{"text":""}')


@pytest.mark.parametrize("size", [100 - ROOM, 101 - ROOM])
async def test_arguments_over_the_tools_own_limit_are_refused(tmp_path: Path, size: int) -> None:
    took = a_tool("took", takes=Text, limits=ToolLimits(body_bytes=100))
    async with opened_kit(tmp_path, plugins=offer(took)) as kit:
        outcome = await kit.call("took", text="x" * size)
        row = await only_row(kit)
    if size + ROOM > 100:
        assert (outcome.status, row["error_type"]) == (413, "size_limit_exceeded")
        assert outcome.error is not None
        assert "101 bytes, over the limit of 100 of took" in outcome.error.message
    else:
        assert outcome.error is None


async def test_arguments_whose_size_cannot_be_told_are_refused(tmp_path: Path) -> None:
    took = a_tool("took", takes=Text, limits=ToolLimits(body_bytes=100))
    async with opened_kit(tmp_path, plugins=offer(took)) as kit:
        assert (await kit.call("took", text="\ud800")).error_type == "invalid_arguments"


@pytest.mark.parametrize(
    ("said", "settings"),
    [
        (ToolLimits(result_bytes=2048), {}),
        (ToolLimits(result_bytes=4096), {"limits__result_bytes": 2048}),
    ],
    ids=["its own", "the setting"],
)
async def test_a_result_over_the_smaller_limit_is_refused(
    tmp_path: Path, said: ToolLimits, settings: dict[str, Any]
) -> None:
    long = a_tool("long", answering(text="x" * 2048), limits=said)
    async with opened_kit(tmp_path, plugins=offer(long), **settings) as kit:
        refused = await kit.call("long")
    assert refused.error is not None
    assert refused.status == 413
    assert "over the limit of 2048" in refused.error.message


async def test_a_write_whose_result_is_over_its_own_limit_stores_nothing(tmp_path: Path) -> None:
    async def run(ctx: Any, args: Any) -> Said:
        await storing()(ctx, args)
        return Said(text="x" * 2048)

    long = a_tool("long", run, effect=Effect.WRITE, limits=ToolLimits(result_bytes=2048))
    async with opened_kit(tmp_path, plugins=offer(long), writes=True) as kit:
        assert (await kit.call("long")).status == 413
        assert not await is_stored(kit)


def test_a_declaration_says_them_by_name() -> None:
    family = Family("tests", a_tool("x").pack)

    @family.tool(
        "x",
        role=Role.ADMIN,
        effect=Effect.READ,
        title="X",
        seconds=5,
        body_bytes=100,
        result_bytes=2048,
        slow=True,
    )
    async def declared(ctx: Any, args: NoArguments) -> Said:
        """X."""
        return Said()

    tool: AnyTool = declared
    assert tool.limits == ToolLimits(seconds=5, body_bytes=100, result_bytes=2048, slow=True)

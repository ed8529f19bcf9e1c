"""Who waits while long texts are examined: the caller who sent many, and nobody else."""

import asyncio
import threading
from collections.abc import Iterator

import pytest
from tests.packs.orchestrator.calls import BUILD, PA_OF_ALICE, PM, PM_OF_ALICE, result
from tests.patience import PATIENT

from toolgate.gate.outcomes import Outcome
from toolgate.packs.orchestrator.long_texts import LARGE, MAX_OF_CALLER, MAX_TOGETHER, Examiner
from toolgate.packs.orchestrator.skills.content_audit import ContentAudit, Finding
from toolgate.testing import Kit

pytestmark = pytest.mark.anyio
MANY = 66
"""More than the calls that the gate lets run at once."""
TEXT = "A long text. " * 4000
PREFERENCE = {
    "scope_type": "user",
    "scope_id": "alice",
    "key": "output.notes",
    "value": "note " * 1000,
    "value_type": "string",
}


class Held:
    """Examinations that end when they are told to."""

    def __init__(self) -> None:
        self.go_on = threading.Event()

    def examine(self, text: str) -> Finding | None:
        if len(text) > LARGE:
            assert self.go_on.wait(PATIENT)
        return None


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    held = Held()

    def examine(audit: ContentAudit, text: str) -> Finding | None:
        del audit
        return held.examine(text)

    monkeypatch.setattr(ContentAudit, "examine", examine)
    yield held
    held.go_on.set()


async def test_a_caller_with_many_long_texts_keeps_nobody_waiting(kit: Kit, held: Held) -> None:
    create = [
        asyncio.create_task(kit.call("skills.create", PM, task_id=BUILD, content=TEXT))
        for _ in range(MANY)
    ]
    ended: list[Outcome] = []
    for one in asyncio.as_completed(create):
        ended.append(await one)
        if len(ended) == MANY - MAX_OF_CALLER:
            break
    # Only those that are examined are left, and others get their answers meanwhile.
    assert {one.error_type for one in ended} == {"rate_limited"}
    assert "Too many at once" in ended[0].body["error"]["message"]
    assert await result(kit, "db.task.get", PA_OF_ALICE, task_id=BUILD)
    assert await result(kit, "db.preference.create", PM_OF_ALICE, **PREFERENCE)
    held.go_on.set()
    last = [await one for one in create if not one.done()]
    assert all(one.error is None for one in last)


async def test_callers_are_examined_in_turn() -> None:
    examiner, order, go_on = Examiner(), list[str](), threading.Event()

    def work(name: str) -> None:
        assert go_on.wait(PATIENT)
        order.append(name)

    async def run(caller: str, name: str) -> None:
        await examiner.run(caller, LARGE + 1, lambda: work(name))

    names = ["a1", "a2", "a3", "b1"]
    tasks = [asyncio.ensure_future(run(one[0], one)) for one in names]
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(*tasks)
    assert order == ["a1", "a2", "b1", "a3"]


async def test_all_together_have_a_bound_and_what_has_ended_counts_no_more() -> None:
    examiner, go_on = Examiner(), threading.Event()
    callers = [f"caller-{at % (MAX_TOGETHER // 2)}" for at in range(MAX_TOGETHER + 3)]
    tasks = [
        asyncio.ensure_future(examiner.run(one, LARGE + 1, lambda: go_on.wait(PATIENT)))
        for one in callers
    ]
    await asyncio.sleep(0)
    go_on.set()
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert ends.count(True) == MAX_TOGETHER
    assert await examiner.run("caller-0", 1, lambda: True)


async def test_a_call_that_is_given_up_while_it_waits_leaves_its_place() -> None:
    examiner, go_on = Examiner(), threading.Event()
    first, *others = [
        asyncio.ensure_future(examiner.run("pm", LARGE + 1, lambda: go_on.wait(PATIENT)))
        for _ in range(MAX_OF_CALLER)
    ]
    await asyncio.sleep(0)
    for one in others:
        one.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    again = asyncio.ensure_future(examiner.run("pm", LARGE + 1, lambda: True))
    go_on.set()
    assert await first
    assert await again

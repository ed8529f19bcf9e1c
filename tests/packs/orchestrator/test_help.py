"""Help: what the caller may see, and nothing else."""

from typing import Any

import pytest
from docs.generate import error_classes
from tests.packs.orchestrator.calls import ABSENT, BUILD, PM, SORT, WORKER, refused, result

from toolgate.gate.live_switches import switch
from toolgate.packs.orchestrator.help.pages import MAX_BYTES, bounded
from toolgate.testing import Kit
from toolgate.testing.kit import ADMIN

pytestmark = pytest.mark.anyio
DATABASES = ["sqlite"]
"""What a page says is up to the catalogue."""


OF_OTHERS = {
    *("unauthenticated", "token_expired", "method_not_allowed", "unsupported_media_type"),
    *("forge_unavailable", "route_failed"),
}
"""Answered before there is a call, or by no tool of this pack."""


async def page(kit: Kit, who: Any = ADMIN, **asked: str) -> Any:
    return await result(kit, "help.get", who, task_id=BUILD, **asked)


async def test_without_a_topic_there_is_an_overview_of_ones_own_tools(kit: Kit) -> None:
    overview = await page(kit, WORKER)
    assert overview["path"] == "guides/overview"
    assert "`skills.get`" in overview["content"]
    assert "db." not in overview["content"]
    assert "`db.task.get`" in (await page(kit, PM))["content"]


async def test_every_tool_that_a_caller_sees_has_a_page_with_its_schema(kit: Kit) -> None:
    gate = kit.app.gate
    for who in (ADMIN, PM, WORKER):
        for tool in gate.visible(who):
            found = await page(kit, who, topic=tool.name)
            assert found["path"] == f"tools/{tool.name}"
            for argument in tool.input.model_fields:
                assert f'"{argument}"' in found["content"]
            assert await page(kit, who, path=found["path"]) == found


@pytest.mark.parametrize("topic", ["db.task.get", "db", "tasks", "preferences", "settings"])
async def test_what_a_caller_does_not_see_has_no_page(kit: Kit, topic: str) -> None:
    assert await page(kit, PM, topic=topic)
    hidden = await refused(kit, "help.get", WORKER, task_id=BUILD, topic=topic)
    absent = await refused(kit, "help.get", WORKER, task_id=BUILD, topic="nothing")
    assert hidden["type"] == absent["type"] == "not_found"
    assert hidden["message"].replace(topic, "nothing") == absent["message"]


async def test_a_tool_that_is_switched_off_has_no_page(kit: Kit) -> None:
    assert await page(kit, topic="db.job.get")
    await kit.app.gate.database.write(lambda one: switch(one, "db.job.get", off=True))
    await kit.app.gate.switches.read_if_changed()
    error = await refused(kit, "help.get", task_id=BUILD, topic="db.job.get")
    assert error["type"] == "not_found"
    assert error["message"].startswith("db.job.get is switched off by an operator.")
    unseen = await refused(kit, "help.get", WORKER, task_id=BUILD, topic="db.job.get")
    assert unseen["message"].startswith("There is no help on")


@pytest.mark.parametrize(
    "path", ["../settings", "guides/../overview", "/etc/passwd", "guides", "tools/"]
)
async def test_a_path_leads_to_a_page_or_nowhere(kit: Kit, path: str) -> None:
    assert (await refused(kit, "help.get", task_id=BUILD, path=path))["type"] == "not_found"


@pytest.mark.parametrize("argument", ["topic", "path"])
@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ("db.task.get", "tools/db.task.get"),
        ("tools/db.task.get", "tools/db.task.get"),
        ("Tools/DB.task.get", "tools/db.task.get"),
        ("guides/tasks", "guides/tasks"),
        ("Tasks", "guides/tasks"),
        ("errors", "guides/errors"),
    ],
)
async def test_either_argument_takes_a_topic_and_a_path(
    kit: Kit, argument: str, asked: str, path: str
) -> None:
    assert (await page(kit, **{argument: asked}))["path"] == path


@pytest.mark.parametrize(
    ("asked", "near"), [("db.task.gte", "db.task.get"), ("guides/taks", "tasks")]
)
async def test_the_nearest_topic_is_told(kit: Kit, asked: str, near: str) -> None:
    error = await refused(kit, "help.get", task_id=BUILD, topic=asked)
    assert error["message"] == f"There is no help on {asked!r}. Did you mean {near}?"


async def test_topic_and_path_are_not_given_together(kit: Kit) -> None:
    error = await refused(kit, "help.get", task_id=BUILD, topic="tasks", path="guides/tasks")
    assert error["message"] == "only one of topic and path may be given"


async def test_help_is_for_a_task_of_ones_own(kit: Kit) -> None:
    for task in (SORT, ABSENT):
        error = await refused(kit, "help.get", WORKER, task_id=task)
        assert error == {"type": "not_found", "message": "Task not found"}


async def test_every_error_that_an_agent_may_get_is_explained(kit: Kit) -> None:
    text = (await page(kit, WORKER, topic="errors"))["content"]
    kinds = {one.kind for one in error_classes()} - OF_OTHERS
    assert {kind for kind in kinds if f"\n| `{kind}` |" not in text} == set()


async def test_a_page_is_cut_between_characters() -> None:
    long = bounded("é" * MAX_BYTES)
    assert len(long.encode()) <= MAX_BYTES
    assert long.endswith("see its part.\n")
    assert bounded("é") == "é"

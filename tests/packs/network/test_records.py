"""Agents, tasks and skills: checked when they are written, whichever way."""

import asyncio
from typing import Any

import pytest
from tests.packs.network.conftest import Network

from toolgate.gate.errors import Conflict, InvalidArguments
from toolgate.packs.network.demo import DOCUMENTS
from toolgate.packs.network.records import store
from toolgate.packs.network.records.checks import completed, is_record
from toolgate.packs.network.records.store import Records, Work
from toolgate.ports.documents import Fields

pytestmark = pytest.mark.anyio

TASK = {"title": "Water the plants"}
AGENT = {"name": "Gardener"}


async def test_a_task_gets_what_its_author_leaves_out(network: Network) -> None:
    await network.write("firestore", "tasks/t1", TASK)
    stored = await network.read("firestore", "tasks/t1")
    assert stored.pop("createdAt").endswith("Z")
    defaults = {"id": "t1", "type": "general", "priority": "normal", "status": "pending"}
    assert stored == {**defaults, **TASK}


async def test_a_pushed_record_has_its_key_as_id(network: Network) -> None:
    key = (await network.write("firestore", "tasks", TASK, operation="push"))["key"]
    assert (await network.read("firestore", f"tasks/{key}"))["id"] == key


async def test_other_fields_are_kept(network: Network) -> None:
    fields = {**AGENT, "surface": "cli", "metrics": {"uptime": 5, "mood": "good"}}
    await network.write("firestore", "agents/g", fields)
    assert await network.read("firestore", "agents/g") == {"id": "g", **fields}


async def test_what_is_below_a_record_is_free(network: Network) -> None:
    await network.write("firestore", "agents/g/notes/n", {"status": "anything"})
    assert await network.read("firestore", "agents/g/notes/n") == {"status": "anything"}


WRONG: dict[str, tuple[str, dict[str, Any], str]] = {
    "no name": ("agents", {}, "data.name"),
    "an empty name": ("agents", {"name": ""}, "data.name"),
    "a status that is none": ("agents", {**AGENT, "status": "asleep"}, "data.status"),
    "capabilities in words": ("agents", {**AGENT, "capabilities": "all"}, "data.capabilities"),
    "one that is no text": ("agents", {**AGENT, "capabilities": [1]}, "data.capabilities[0]"),
    "room for no task": ("agents", {**AGENT, "maxTasks": 0}, "data.maxTasks"),
    "a time that is none": ("agents", {**AGENT, "lastSeen": "yesterday"}, "data.lastSeen"),
    "digits of another script": (
        "agents", {**AGENT, "lastSeen": "٢٠٢٥-11-03T10:30:00Z"}, "data.lastSeen",
    ),
    "metrics that are none": (
        "agents", {**AGENT, "metrics": {"successRate": 2}}, "data.metrics.successRate",
    ),
    "another id": ("agents", {**AGENT, "id": "other"}, "data.id"),
    "a priority that is none": ("tasks", {"priority": "urgent"}, "data.priority"),
    "progress that is none": ("tasks", {"status": "paused"}, "data.status"),
    "a dependency that is no text": ("tasks", {"dependencies": [None]}, "data.dependencies[0]"),
    "a skill without a name": ("skills", {"category": "core"}, "data.name"),
    "no object as example": ("skills", {"name": "s", "examples": ["x"]}, "data.examples[0]"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("more", [{}, {"merge": True}, {"transaction": True}], ids=str)
async def test_a_wrong_record_is_not_stored(demo: Network, what: str, more: Any) -> None:
    collection, data, field = WRONG[what]
    arguments = {"database": "firestore", "path": f"{collection}/new", "data": data, **more}
    error = await demo.refused("firebase.write", **arguments)
    assert (error["code"], error["data"]["field"]) == (-32300, field), error
    assert f"no record of {collection}" in error["message"] or field == "data.id"
    absent = await demo.refused("firebase.read", database="firestore", path=f"{collection}/new")
    assert absent["code"] == -32200


@pytest.mark.parametrize("operation", ["update", "set"])
async def test_a_change_is_checked_with_what_is_there(network: Network, operation: str) -> None:
    await network.write("firestore", "agents/g", {**AGENT, "status": "idle"})
    more = {"operation": operation, "merge": operation == "set"}
    await network.write("firestore", "agents/g", {"status": "busy"}, **more)
    error = await network.refused(
        "firebase.write", database="firestore", path="agents/g", data={"status": "?"}, **more
    )
    assert (error["code"], error["data"]["field"]) == (-32300, "data.status")
    assert await network.read("firestore", "agents/g") == {"id": "g", **AGENT, "status": "busy"}


async def test_a_record_can_be_deleted(network: Network) -> None:
    await network.write("firestore", "agents/g", AGENT)
    await network.write("firestore", "agents/g", None, operation="delete")
    assert await network.read("firestore", "agents") == []


def records_of(network: Network) -> Records:
    found: Records = network.kit.app.worlds["network"].world.records
    return found


async def changed(network: Network, record_id: str, work: Work) -> Fields | None:
    """What becomes of a task."""
    async with network.kit.app.gate.database.transaction() as tx:
        return await records_of(network).change(tx, "tasks", record_id, work)


async def test_every_record_is_read_page_by_page(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "PAGE", 2)
    for name in ("d", "a", "c", "b"):
        await network.write("firestore", f"tasks/{name}", TASK)
    assert [one["id"] async for one in records_of(network).every("tasks")] == ["a", "b", "c", "d"]
    assert [one async for one in records_of(network).every("skills")] == []


async def test_a_record_is_changed_as_a_checked_whole(network: Network) -> None:
    made = await changed(network, "t1", lambda before: {**(before or TASK), "status": "assigned"})
    assert made is not None
    assert (made["status"], made["priority"]) == ("assigned", "normal")
    assert await network.read("firestore", "tasks/t1") == made
    with pytest.raises(InvalidArguments, match="no record of tasks: status"):
        await changed(network, "t1", lambda before: {**(before or {}), "status": "?"})
    assert await records_of(network).get("tasks", "t1") == made
    assert await changed(network, "t1", lambda _: None) is None
    assert await records_of(network).get("tasks", "t1") is None


async def test_a_claim_of_many_at_once_is_ones(network: Network) -> None:
    """What two agents do to one task at the same moment happens one after the other."""
    await network.write("firestore", "tasks/t1", TASK)
    winners: list[str] = []

    async def claim(name: str) -> None:
        def take(before: Fields | None) -> Fields:
            assert before is not None
            return before if "assignedTo" in before else {**before, "assignedTo": name}

        try:
            after = await changed(network, "t1", take)
        except Conflict:
            return
        if after is not None and after["assignedTo"] == name:
            winners.append(name)

    await asyncio.gather(*(claim(f"agent-{number}") for number in range(6)))
    assert winners == [(await network.read("firestore", "tasks/t1"))["assignedTo"]]


def test_the_demo_has_good_records_only() -> None:
    records = [one for one in DOCUMENTS if is_record(one[0])]
    assert len(records) == 16
    for collection, document_id, fields in records:
        assert completed(collection, document_id, fields, "") == fields

"""Nodes: listed and read, with a status that follows from the clock."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from jsonschema import Draft202012Validator
from sqlalchemy import Connection, insert
from tests.packs.orchestrator.calls import (
    PA_OF_ALICE,
    PM,
    PM_OF_ALICE,
    WORKER,
    refused,
    result,
)
from tests.packs.orchestrator.node_calls import (
    LOCAL,
    NODE,
    NOW,
    SANDBOX,
    count_statements,
    every_page,
    node,
    report,
    set_clock,
    status,
)

from toolgate.gate.principal import Principal, Role, of_role
from toolgate.packs.orchestrator.demo_nodes import _node  # pyright: ignore[reportPrivateUsage]
from toolgate.packs.orchestrator.sql.records import PAGE_BYTES
from toolgate.packs.orchestrator.sql.tables import metadata, nodes
from toolgate.testing import Kit, opened_kit
from toolgate.testing.kit import ADMIN

pytestmark = pytest.mark.anyio

ABSENT = {"type": "not_found", "message": "Node not found"}


async def add(kit: Kit, slugs: list[str], **more: Any) -> None:
    rows = [
        _node(f"{at:08d}-0000-4000-8000-000000000000", slug, slug, {}) | more
        for at, slug in enumerate(slugs, 1)
    ]
    await kit.app.gate.database.write(lambda one: one.execute(insert(nodes), rows))


async def test_the_migration_makes_the_defined_tables(kit: Kit) -> None:
    def ours(_: Any, name: str, kind: str, *__: Any) -> bool:
        own = name.startswith("orchestrator_") and name != "orchestrator_version"
        return kind != "table" or own

    def differences(connection: Connection) -> list[Any]:
        options: dict[str, Any] = {"compare_type": True, "include_object": ours}
        return compare_metadata(MigrationContext.configure(connection, opts=options), metadata)

    assert await kit.app.gate.database.read(differences) == []


async def test_nodes_are_listed_by_slug_without_what_they_can_do(kit: Kit) -> None:
    found = (await result(kit, "node.list", PM))["entries"]
    assert [one["node_slug"] for one in found] == [SANDBOX, LOCAL]
    assert [one["status"] for one in found] == ["inactive", "registered"]
    assert found[1]["display_name"] == "Local worker 01"
    assert all("capabilities" not in one for one in found)


async def test_the_status_follows_from_the_clock(kit: Kit) -> None:
    set_clock(kit, NOW)
    assert await status(kit) == "registered"
    await result(kit, "worker_node.register", NODE)
    assert await status(kit) == "active"
    set_clock(kit, NOW + 89.999)
    assert await status(kit) == "active"
    set_clock(kit, NOW + 90)
    assert await status(kit) == "inactive"
    listed = (await result(kit, "node.list"))["entries"]
    assert {one["node_slug"]: one["status"] for one in listed}[LOCAL] == "inactive"
    await result(kit, "worker_node.heartbeat", NODE)
    assert await status(kit) == "active"


async def test_a_drained_node_stays_drained_while_it_reports(kit: Kit) -> None:
    set_clock(kit, NOW)
    await result(kit, "operator.node.update", node_slug=LOCAL, drained=True)
    assert (await result(kit, "worker_node.heartbeat", NODE))["status"] == "drained"
    assert await status(kit) == "drained"
    await result(kit, "operator.node.update", node_slug=LOCAL, drained=False)
    assert await status(kit) == "active"


async def test_the_setting_says_when_a_node_is_inactive(tmp_path: Path, database_url: str) -> None:
    settings: dict[str, Any] = {
        "database__url": database_url,
        "packs__enabled": ["orchestrator"],
        "orchestrator__node_inactive_seconds": 6,
    }
    async with opened_kit(tmp_path, demo_data=True, **settings) as kit:
        set_clock(kit, NOW)
        told = await result(kit, "worker_node.heartbeat", NODE)
        assert told["heartbeat_seconds"] == 2
        set_clock(kit, NOW + 6)
        assert await status(kit) == "inactive"


async def test_a_node_is_read_with_all_that_it_reported(kit: Kit) -> None:
    set_clock(kit, NOW)
    snapshot: dict[str, Any] = {
        "cores": 8,
        "ünïcode": ["\t", "😀", None, 1.5, {}],
        "deep": {"a": [[], {}]},
    }
    images = [{"image_ref": "docker.io/library/bash:latest", "status": "evicted"}]
    models = [
        {"model": "llama3", "version": "8b", "status": "loading"},
        {"model": "own", "status": "available"},
    ]
    await report(kit, capabilities=snapshot, images=images, models=models)
    found = await node(kit)
    at = {"reported_at": found["last_capability_at"]}
    assert found["capabilities"] == snapshot
    assert found["images"] == [images[0] | at]
    assert found["models"] == [models[0] | at, models[1] | at | {"version": None}]
    assert found["last_seen_at"] == found["last_capability_at"] == "2026-03-01T12:00:00.000000Z"
    sandbox = await node(kit, SANDBOX)
    assert sandbox["capabilities"]["compute"] == {"cpu_cores": 16, "memory_mb": 65536}
    assert sandbox["metadata"] == {"labels": ["sandbox_only", "region_us_east_1"]}


async def test_answers_fit_their_schemas(kit: Kit) -> None:
    await report(kit, capabilities={"a": None})
    catalogue = kit.app.gate.catalogue
    for name in ("node.list", "node.get", "node.refresh_config", "model.list", "model.get"):
        tool = catalogue.find(name)
        assert tool is not None
        outcome = await kit.send(name, dict(tool.example), ADMIN)
        Draft202012Validator(tool.output_schema).validate(outcome.body)


@pytest.mark.parametrize("slug", ["nobody", "../x", "Worker-01", "worker-01 ", "x" * 256])
@pytest.mark.parametrize("tool", ["node.get", "node.refresh_config"])
async def test_what_is_no_slug_is_as_absent_as_an_unknown_one(
    kit: Kit, tool: str, slug: str
) -> None:
    assert await refused(kit, tool, PM, node_slug=slug) == ABSENT


async def test_pages_survive_what_comes_and_goes_between_them(kit: Kit) -> None:
    await add(kit, [f"n{number}" for number in range(6)])
    first = await result(kit, "node.list", limit=3)
    assert [one["node_slug"] for one in first["entries"]] == ["n0", "n1", "n2"]
    await result(kit, "operator.node.delete", node_slug="n2")
    await result(kit, "operator.node.create", node_slug="n00")
    await result(kit, "operator.node.create", node_slug="n2a")
    second = await result(kit, "node.list", limit=3, cursor=first["next_cursor"])
    assert [one["node_slug"] for one in second["entries"]] == ["n2a", "n3", "n4"]
    slugs = [one["node_slug"] for one in await every_page(kit, "node.list", 2)]
    assert slugs == ["n0", "n00", "n1", "n2a", "n3", "n4", "n5", SANDBOX, LOCAL]


async def test_a_cursor_is_one_of_this_list(kit: Kit) -> None:
    cursor = (await result(kit, "node.list", limit=1))["next_cursor"]
    foreign = (await result(kit, "model.list", limit=1))["next_cursor"]
    for bad in (cursor[:-2] + "AA", foreign, "x"):
        error = await refused(kit, "node.list", cursor=bad)
        assert (error["type"], "cursor" in error["message"]) == ("invalid_arguments", True)
    for limit in (0, 201):
        assert (await refused(kit, "node.list", limit=limit))["type"] == "invalid_arguments"


async def test_a_page_is_bounded_in_bytes_too(kit: Kit) -> None:
    large = orjson.dumps({"a": "x" * 16000}).decode()
    await add(kit, [f"n{number:03d}" for number in range(150)], metadata=large)
    page = await kit.call("node.list", limit=200)
    assert len(page.raw) < PAGE_BYTES + 100_000
    assert len(page.body["result"]["entries"]) < 100
    assert len(await every_page(kit, "node.list", 200)) == 152


async def test_the_number_of_statements_does_not_grow_with_the_nodes(kit: Kit) -> None:
    images = [{"image_ref": f"i{number}", "status": "available"} for number in range(300)]
    await report(kit, images=images)
    await add(kit, [f"n{number:03d}" for number in range(150)])
    assert await count_statements(kit, "node.list", limit=100) == 1
    assert await count_statements(kit, "node.get", node_slug=LOCAL) == 2


def seen_by(kit: Kit, who: Principal, *spaces: str) -> set[str]:
    visible = kit.app.gate.policy.visible(who, kit.app.gate.catalogue)
    return {tool.name for tool in visible if tool.namespace in spaces or not spaces}


async def test_who_sees_nodes_and_who_speaks_for_one(kit: Kit) -> None:
    own = {"node.list", "node.get", "node.refresh_config"}
    reporting = {
        f"worker_node.{one}"
        for one in (
            "register",
            "heartbeat",
            "report_capabilities",
            "get_config",
            "acknowledge_config",
        )
    }
    for pm in (PM, PM_OF_ALICE):
        assert seen_by(kit, pm, "node", "model", "worker_node", "operator") == own | {
            "model.list",
            "model.get",
        }
    for who in (PA_OF_ALICE, WORKER, of_role(Role.USER, "user")):
        assert seen_by(kit, who, "node", "model", "worker_node", "operator") == set()
    assert seen_by(kit, NODE) == reporting, "a node sees nothing else"
    assert own | reporting <= seen_by(kit, ADMIN)
    hidden = await kit.call("worker_node.heartbeat", PM)
    assert hidden.body == {"error": "Unknown tool: worker_node.heartbeat"}

"""A node's configuration: its versions grow, the node learns of them and says what it did."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.packs.orchestrator.calls import PM, refused, result
from tests.packs.orchestrator.node_calls import LOCAL, NODE, NOW, node, set_clock

from toolgate.packs.orchestrator.nodes.config_versions import ALPHABET, next_version
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio


@given(st.lists(st.floats(min_value=0, max_value=2**37), min_size=1, max_size=20))
def test_versions_grow_whatever_the_clock_does(clock: list[float]) -> None:
    version = next_version(None, clock[0])
    for seconds in clock:
        later = next_version(version, seconds)
        assert later > version
        assert len(later) == 26
        assert set(later) <= set(ALPHABET)
        version = later


def test_a_version_begins_with_its_time() -> None:
    assert next_version(None, 1_767_603_600.0)[:10] == "01KE6P4YM0"


async def refresh(kit: Kit) -> str:
    answer = await result(kit, "node.refresh_config", PM, node_slug=LOCAL)
    assert answer["refresh_config_requested"] is True
    return answer["node"]["config_version"]


async def test_a_refresh_reaches_the_node_and_its_answer_comes_back(kit: Kit) -> None:
    first = (await result(kit, "worker_node.heartbeat", NODE))["config_version"]
    acknowledged = {"config_version": first, "status": "applied"}
    told = await result(kit, "worker_node.acknowledge_config", NODE, **acknowledged)
    assert told["refresh_config_requested"] is False
    version = await refresh(kit)
    assert version > first
    told = await result(kit, "worker_node.heartbeat", NODE)
    assert (told["config_version"], told["refresh_config_requested"]) == (version, True)
    config = await result(kit, "worker_node.get_config", NODE)
    assert (config["config_version"], config["config"]) == (version, {})
    assert (await node(kit))["refresh_config_requested"] is True
    for status, error in (("failed", "no room"), ("rolled_back", "it broke"), ("applied", None)):
        said = {"status": status} | ({"error": error} if error else {})
        await result(kit, "worker_node.acknowledge_config", NODE, config_version=version, **said)
        found = await node(kit)
        assert (found["config_ack_status"], found["config_ack_error"]) == (status, error)
        assert found["config_ack_version"] == version
        assert found["refresh_config_requested"] is False


async def test_only_the_newest_version_is_acknowledged(kit: Kit) -> None:
    old = await refresh(kit)
    new = await refresh(kit)
    for version in (old, "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"):
        said = {"config_version": version, "status": "applied"}
        error = await refused(kit, "worker_node.acknowledge_config", NODE, **said)
        assert (error["type"], error["details"]) == ("conflict", {"current_version": new})
    assert (await node(kit))["config_ack_status"] is None


async def test_a_new_configuration_is_a_new_version(kit: Kit) -> None:
    before = (await node(kit))["config_version"]
    config = {"heartbeat_seconds": 5}
    changed = await result(kit, "operator.node.update", node_slug=LOCAL, config=config)
    assert changed["config_version"] > before
    fetched = await result(kit, "worker_node.get_config", NODE)
    assert fetched["config"] == config
    assert "config" not in await node(kit), "agents do not read it"
    same = await result(kit, "operator.node.update", node_slug=LOCAL, display_name="W")
    assert same["config_version"] == changed["config_version"]


async def test_two_refreshes_within_one_millisecond_grow(kit: Kit) -> None:
    set_clock(kit, NOW)
    versions = [await refresh(kit) for _ in range(5)]
    assert versions == sorted(set(versions))


async def test_versions_grow_across_servers_whose_clocks_differ(
    kit: Kit, tmp_path: Path, database_url: str
) -> None:
    settings: dict[str, Any] = {"database__url": database_url, "packs__enabled": ["orchestrator"]}
    made: list[str] = []
    async with opened_kit(tmp_path, **settings) as behind:
        set_clock(kit, NOW)
        set_clock(behind, NOW - 3600)

        async def refresh_often(one: Kit) -> None:
            for _ in range(8):
                before = (await node(one))["config_version"]
                version = await refresh(one)
                assert version > before
                made.append(version)

        async with anyio.create_task_group() as both:
            both.start_soon(refresh_often, kit)
            both.start_soon(refresh_often, behind)
        assert len(set(made)) == 16
        assert (await node(behind))["config_version"] == max(made)


async def test_a_dry_run_and_a_read_only_gate_change_nothing(
    kit: Kit, tmp_path: Path, database_url: str
) -> None:
    before = await node(kit)
    outcome = await kit.call("node.refresh_config", dry_run=True, node_slug=LOCAL)
    assert outcome.body["result"]["refresh_config_requested"] is True
    assert await node(kit) == before
    settings: dict[str, Any] = {"database__url": database_url, "packs__enabled": ["orchestrator"]}
    async with opened_kit(tmp_path, policy__read_only=True, **settings) as closed:
        for tool, who in (("node.refresh_config", PM), ("worker_node.heartbeat", NODE)):
            given = {"node_slug": LOCAL}
            assert "read-only" in (await refused(closed, tool, who, **given))["message"]
    assert await node(kit) == before

"""`toolgate switch`: off and on, in servers that run."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx2
import mcp
import pytest
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.subscriptions import ToolsListChanged
from tests.each_worker import each_worker, until_each
from tests.patience import PATIENT
from tests.servers import Server, running_server

from toolgate.cli.main import run
from toolgate.gate import operators


@pytest.mark.usefixtures("data")
def test_what_is_switched_off_is_listed_hidden_and_audited(cli: Any) -> None:
    assert cli("switch", "list").out == "Nothing is switched off.\n"
    assert cli("switch", "off", "get_document").out == "get_document is switched off.\n"
    again = cli("switch", "off", "get_document", "--json").json
    assert again == {"name": "get_document", "off": True, "changed": False}
    assert cli("switch", "off", "content").code == 0
    listed = cli("switch", "list", "--json").json
    assert listed == [
        {"name": "content", "by": "toolgate switch"},
        {"name": "get_document", "by": "toolgate switch"},
    ]
    why = cli("why", "admin", "get_document", "--json")
    assert (why.code, why.json["rule"]) == (3, "tool-switched-off")
    shown = {tool["name"] for tool in cli("tools", "--json").json["tools"]}
    assert "list_collections" in shown
    assert not shown & {"get_document", "search_entities"}
    (row,) = [one for one in cli("tools").out.splitlines() if one.startswith("get_document ")]
    assert row.endswith("(off: switched off)")
    assert "(off: switched off; `toolgate why" in cli("tools", "show", "get_document").out
    assert "(off" not in cli("tools", "show", "list_collections").out
    assert cli("switch", "on", "content").out == "content is switched on.\n"
    assert cli("switch", "on", "get_document").code == 0
    assert cli("why", "admin", "get_document").code == 0
    rows = [json.loads(line) for line in cli("audit", "--json").out.splitlines()]
    assert [row["tool_name"] for row in rows] == [
        "switch.off:get_document",
        "switch.off:content",
        "switch.on:content",
        "switch.on:get_document",
    ]
    assert {row["rule"] for row in rows} == {"operator"}
    assert cli("audit", "verify").code == 0


@pytest.mark.usefixtures("data")
def test_a_tool_whose_pack_is_off_stays_off(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("switch", "off", "content")
    cli("switch", "off", "get_entity")
    idle = cli("switch", "on", "list_projects")
    assert idle.code == 2
    assert "list_projects is switched off with its pack content, by toolgate switch." in idle.err
    on = cli("switch", "on", "get_entity")
    assert on.out == (
        "get_entity is switched on, but still off with its pack content, by toolgate switch.\n"
    )
    cli("switch", "on", "content")
    monkeypatch.setenv("TOOLGATE_POLICY__DISABLED", "content")
    idle = cli("switch", "on", "list_projects")
    assert "with its pack content, by the setting policy.disabled." in idle.err


@pytest.mark.usefixtures("data")
def test_a_wrong_name_is_told_with_the_next_step(cli: Any, tmp_path: Path) -> None:
    wrong = cli("switch", "off", "get_documents")
    assert wrong.code == 2
    assert "There is no tool 'get_documents'. Did you mean get_document" in wrong.err
    pack = cli("switch", "off", "apdata")
    assert "There is no tool or pack 'apdata'. Did you mean appdata?" in pack.err
    assert "there are no patterns here" in cli("switch", "off", "get_*").err
    idle = cli("switch", "on", "get_document")
    assert (idle.code, "is not switched off" in idle.err) == (2, True)
    (tmp_path / "toolgate.toml").write_text('[policy]\ndisabled = ["get_document"]\n')
    fixed = cli("switch", "on", "get_document")
    assert (fixed.code, "by the setting policy.disabled" in fixed.err) == (2, True)
    assert cli("switch", "off", "get_document").code == 0
    both = cli("switch", "on", "get_document").out
    assert both == ("get_document is switched on, but still off by the setting policy.disabled.\n")
    listed = cli("switch", "list").out.splitlines()
    assert listed[1].split("  ") == ["get_document", "setting policy.disabled"]


@pytest.mark.usefixtures("data")
def test_a_switch_whose_row_cannot_be_stored_stays(
    cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(operators, "store", full)
        assert cli("switch", "off", "get_document").code != 0
    assert cli("switch", "list", "--json").json == []


def answers_with(status: int) -> Callable[[httpx2.Client], bool]:
    return lambda client: client.post("/v1/tools/list_collections", json={}).status_code == status


def test_every_worker_of_a_running_server_is_told_by_another_process(
    tmp_path_factory: pytest.TempPathFactory, process: Callable[..., Any]
) -> None:
    with (
        running_server(tmp_path_factory, server__workers=2) as server,
        each_worker(server, 2) as workers,
    ):
        until_each(workers, answers_with(200))
        data = ("--data", str(server.data))
        assert process("switch", "off", "appdata", *data).code == 0
        until_each(workers, answers_with(403))
        assert process("switch", "on", "appdata", *data).code == 0
        until_each(workers, answers_with(200))


@pytest.mark.anyio
async def test_a_client_that_listens_is_told(tmp_path_factory: pytest.TempPathFactory) -> None:
    with running_server(tmp_path_factory) as server:
        before, after = await lists_around_a_change(server)
    assert before - after == {"describe_collection"}


async def lists_around_a_change(server: Server) -> tuple[set[str], set[str]]:
    def turn() -> None:
        assert run(["switch", "off", "describe_collection", "--data", str(server.data)]) == 0

    headers = {"Authorization": f"Bearer {server.admin_key}"}
    async with httpx2.AsyncClient(headers=headers, trust_env=False, timeout=PATIENT) as http:
        transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
        async with mcp.Client(transport) as client:
            assert client.server_capabilities.tools is not None
            assert client.server_capabilities.tools.list_changed is True
            before = {one.name for one in (await client.list_tools()).tools}
            with anyio.fail_after(PATIENT):
                async with client.listen(tools_list_changed=True) as changes:
                    await anyio.to_thread.run_sync(turn)
                    async for event in changes:
                        assert isinstance(event, ToolsListChanged)
                        break
            after = {one.name for one in (await client.list_tools()).tools}
    return before, after

"""A changed file is loaded again, and clients are told."""

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp
import mcp_types as types
import pytest
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.subscriptions import ToolsListChanged
from tests import preloaded
from tests.cli.conftest import *  # noqa: F403 (its fixtures)
from tests.each_worker import each_worker, until_each
from tests.extend.conftest import Opened
from tests.extend.upstream import Upstream
from tests.patience import PATIENT
from tests.servers import Server, running_server

from toolgate.gate.principal import Role, of_role

pytestmark = pytest.mark.anyio

OLD = "- {name: first, description: One, path: echo}\n"
NEW = "- {name: second, description: Two, path: echo, role: user}\n"
BAD = "- {name: third, description: Three, path: echo, role: boss}\n"
USER = of_role(Role.USER, "u")


async def test_a_changed_file_is_loaded_again(
    opened: Opened, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[int] = []
    async with opened(OLD) as kit:
        catalogue, file = kit.app.gate.catalogue, tmp_path / "tools.yaml"

        async def listen() -> None:
            told.append(catalogue.epoch)

        catalogue.listeners.append(listen)
        assert kit.app.own is not None
        reloader = kit.app.own.reloader(catalogue)
        assert not await reloader.reload_if_changed()
        os.utime(file)
        assert not await reloader.reload_if_changed()
        file.write_text(NEW)
        assert await reloader.reload_if_changed()
        assert catalogue.find("first") is None
        assert (await kit.call("second", USER)).status == 200
        file.write_text(BAD)
        with caplog.at_level(logging.WARNING):
            assert not await reloader.reload_if_changed()
            assert not await reloader.reload_if_changed()
        assert (await kit.call("second", USER)).status == 200
        file.write_text(NEW.replace("role: user", "role: admin"))
        assert await reloader.reload_if_changed()
        assert (await kit.call("second", USER)).body == {"error": "Unknown tool: second"}
        file.write_text(NEW.replace("second", "get_document"))
        assert await reloader.reload_if_changed()
        assert (await kit.call("get_document", USER)).status == 200
        file.unlink()
        assert not await reloader.reload_if_changed()
        assert (await kit.call("get_document", USER)).status == 200
        file.write_text(OLD)
        assert await reloader.reload_if_changed()
        assert (await kit.call("get_document", USER)).status == 404
    assert told == [1, 2, 3, 4]
    assert caplog.text.count("role must be one of") == 1
    assert "the former tools stay" in caplog.text


async def test_it_looks_at_each_pause(opened: Opened, tmp_path: Path) -> None:
    async with opened(OLD) as kit:
        catalogue = kit.app.gate.catalogue
        changed = anyio.Event()
        pauses, ready = anyio.create_memory_object_stream[None](0)

        async def listen() -> None:
            changed.set()

        catalogue.listeners.append(listen)
        assert kit.app.own is not None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(kit.app.own.reloader(catalogue, ready.receive).run)
            (tmp_path / "tools.yaml").write_text(NEW)
            with anyio.fail_after(PATIENT):
                await pauses.send(None)
                await changed.wait()
            tasks.cancel_scope.cancel()
        pauses.close()
        ready.close()
        assert catalogue.find("second")


@contextmanager
def reloading(
    tmp_path_factory: pytest.TempPathFactory, upstream: Upstream, **settings: Any
) -> Iterator[tuple[Server, Path]]:
    file = tmp_path_factory.mktemp("own") / "tools.yaml"
    file.write_text(OLD)
    flags = {"extend__tools": str(file), "extend__base_url": upstream.url, "extend__reload": True}
    with running_server(tmp_path_factory, **flags, **settings) as server:
        yield server, file


async def changed_until(announced: anyio.Event, file: Path) -> None:
    """Change the file until it is announced: nobody knows when the client's stream is open."""
    number = 0
    while not announced.is_set():
        number += 1
        await anyio.Path(file).write_text(f"{NEW}# {number}\n")
        with anyio.move_on_after(3):
            await announced.wait()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_running_server_announces_new_tools(
    tmp_path_factory: pytest.TempPathFactory, upstream: Upstream, mode: Any
) -> None:
    announced = anyio.Event()

    async def heard(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            announced.set()

    with reloading(tmp_path_factory, upstream) as (server, file):
        headers = {"Authorization": f"Bearer {server.admin_key}"}
        async with httpx2.AsyncClient(headers=headers, trust_env=False, timeout=PATIENT) as http:
            transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
            async with mcp.Client(transport, mode=mode, message_handler=heard) as client:
                before = {one.name for one in (await client.list_tools()).tools}
                assert client.server_capabilities.tools is not None
                assert client.server_capabilities.tools.list_changed is True
                with anyio.fail_after(PATIENT):
                    if mode == "auto":
                        async with client.listen(tools_list_changed=True) as changes:
                            file.write_text(NEW)
                            async for event in changes:
                                assert isinstance(event, ToolsListChanged)
                                break
                    else:
                        await changed_until(announced, file)
                after = {one.name for one in (await client.list_tools()).tools}
                assert not (await client.call_tool("second", {})).is_error
    assert before - after == {"first"}
    assert after - before == {"second"}


def test_every_worker_looks_for_itself(
    tmp_path_factory: pytest.TempPathFactory, upstream: Upstream
) -> None:
    with reloading(tmp_path_factory, upstream, server__workers=2) as (server, file):
        file.write_text(NEW)
        with each_worker(server, 2) as workers:
            until_each(workers, has_the_new_tools)


def has_the_new_tools(client: httpx2.Client) -> bool:
    names = {one["name"] for one in client.get("/v1/tools").json()["tools"]}
    return "second" in names and "first" not in names


def test_the_command_reloads_and_keeps_the_old_tools_when_the_file_is_bad(
    tmp_path: Path, served: Callable[..., Any], upstream: Upstream
) -> None:
    file = tmp_path / "tools.yaml"
    file.write_text(OLD.replace("first", "get_document"))
    variables = {
        "TOOLGATE_EXTEND__TOOLS": "tools.yaml",
        "TOOLGATE_EXTEND__BASE_URL": upstream.url,
    }
    with served("--reload", **variables) as running:
        assert "tools.yaml  (1 tool of your own; loaded again on change)" in running.greeting
        lines: list[str] = []
        stderr = running.process.stderr
        reader = threading.Thread(target=read_until, args=(stderr, lines), daemon=True)
        assert running.call("get_document")[0] == 200
        file.write_text(BAD)
        reader.start()
        reader.join(PATIENT)
        assert running.call("get_document")[0] == 200
    said = "".join(lines)
    assert "Your tool get_document replaces the built-in tool of its name." in said
    assert "tools.yaml has changed, but the former tools stay." in said
    assert "tools.yaml:1: third: role must be one of: public, user, admin." in said


def read_until(stream: Any, lines: list[str]) -> None:
    for line in stream:
        lines.append(line)
        if "third" in line:
            return


def test_reload_without_a_file_is_refused(cli: Any) -> None:
    ended = cli("serve", "--reload")
    assert ended.code == 2
    assert ended.err == "Error: --reload needs a file of your own tools (setting extend.tools).\n"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_on_stdio_a_client_is_told_too(
    tmp_path: Path, environment: dict[str, str], upstream: Upstream, mode: Any
) -> None:
    announced = anyio.Event()

    async def heard(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            announced.set()

    (tmp_path / "tools.yaml").write_text(OLD)
    command, *arguments = preloaded.command("-m", "toolgate", "mcp")
    server = StdioServerParameters(
        command=command,
        args=arguments,
        env=environment
        | {
            "TOOLGATE_ADMIN_KEY": "0123456789abcdef",
            "TOOLGATE_EXTEND__TOOLS": "tools.yaml",
            "TOOLGATE_EXTEND__BASE_URL": upstream.url,
            "TOOLGATE_EXTEND__RELOAD": "true",
        },
        cwd=tmp_path,
    )
    async with mcp.Client(stdio_client(server), mode=mode, message_handler=heard) as client:
        with anyio.fail_after(PATIENT):
            if mode == "auto":
                async with client.listen(tools_list_changed=True) as changes:
                    (tmp_path / "tools.yaml").write_text(NEW)
                    async for _ in changes:
                        break
            else:
                await changed_until(announced, tmp_path / "tools.yaml")
        assert "second" in {one.name for one in (await client.list_tools()).tools}

"""Tools of several files: routes in one, handlers in another."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import *  # noqa: F403 (its fixtures)
from tests.extend.upstream import Upstream

from toolgate.extend.offer import BadTools, offer_of
from toolgate.gate.principal import Role, of_role
from toolgate.sections import ExtendSettings, LimitSettings
from toolgate.settings import BadSettings
from toolgate.settings import read_settings as load_settings
from toolgate.testing import opened_kit

USER = of_role(Role.USER, "u")
ROUTES = '[{"name": "route", "description": "One", "path": "echo", "role": "user"}]'
HANDLER = '''
from __future__ import annotations

from toolgate.extend import HandlerContext, Input, Output, tool


class Named(Input):
    name: str = "NAME"


class Said(Output):
    text: str


@tool(role="user", annotations={"readOnlyHint": True})
async def NAME(ctx: HandlerContext, args: Named) -> Said:
    """Say its name."""
    return Said(text=args.name)


tools = [NAME]
'''


def handler(name: str) -> str:
    return HANDLER.replace("NAME", name)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Routes in JSON and two files of handlers that have the same name."""
    made = [tmp_path / name for name in ("tools.json", "a/tools.py", "b/tools.py")]
    for file, text in zip(made, (ROUTES, handler("first"), handler("second")), strict=True):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    return made


@pytest.mark.anyio
async def test_routes_and_handlers_work_side_by_side(
    tmp_path: Path, files: list[Path], upstream: Upstream
) -> None:
    flags: dict[str, Any] = {"extend__tools": files, "extend__base_url": upstream.url}
    async with opened_kit(tmp_path / "data", **flags) as kit:
        assert (await kit.call("route", USER)).status == 200
        assert (await kit.call("first", USER)).body == {"text": "first"}
        assert (await kit.call("second", USER)).body == {"text": "second"}


def refused(files: list[Path], folder: Path) -> list[str]:
    settings = ExtendSettings(tools=tuple(files), base_url="http://localhost")
    with pytest.raises(BadTools) as wrong:
        offer_of(settings.tools, settings, LimitSettings())
    return [one.replace(f"{folder}/", "") for one in wrong.value.problems]


def test_a_name_in_two_files_is_refused_with_both_places(tmp_path: Path, files: list[Path]) -> None:
    files[2].write_text(handler("route"))
    assert refused(files, tmp_path) == [
        "b/tools.py:15: route: tools.json:1 has a tool of this name already."
    ]


def test_the_problems_of_all_files_are_told_at_once(tmp_path: Path, files: list[Path]) -> None:
    files[0].write_text("nothing")
    files[1].unlink()
    files[2].write_text("tools = [1]")
    assert refused(files, tmp_path) == [
        "tools.json:1: it must be a list: each tool with a -.",
        "a/tools.py: it is not there (setting extend.tools).",
        "b/tools.py:1: entry 1 of `tools` is a int; "
        "write RouteTool(…), or a function with @tool().",
    ]


@pytest.mark.anyio
async def test_a_change_of_any_file_is_loaded(
    tmp_path: Path, files: list[Path], upstream: Upstream, caplog: pytest.LogCaptureFixture
) -> None:
    flags: dict[str, Any] = {"extend__tools": files, "extend__base_url": upstream.url}
    async with opened_kit(tmp_path / "data", **flags) as kit:
        assert kit.app.own is not None
        reloader = kit.app.own.reloader(kit.app.gate.catalogue)
        assert not await reloader.reload_if_changed()
        for file, name in zip(files[1:], ("third", "fourth"), strict=True):
            file.write_text(handler(name))
            assert await reloader.reload_if_changed()
            assert (await kit.call(name, USER)).body == {"text": name}
        assert (await kit.call("first", USER)).status == 404
        files[0].unlink()
        assert not await reloader.reload_if_changed()
        assert (await kit.call("route", USER)).status == 200
    named = ", ".join(map(str, files))
    assert f"{named} was loaded again: 3 tools." in caplog.messages


def test_a_list_in_the_settings_file_starts_from_its_folder(tmp_path: Path) -> None:
    file = tmp_path / "toolgate.toml"
    file.write_text('[extend]\ntools = ["tools.json", "/own/tools.py"]\n')
    found = load_settings(environment={}, file=file)
    assert found.extend.tools == (tmp_path / "tools.json", Path("/own/tools.py"))


@pytest.mark.parametrize("value", ["1", "[1]", "true"])
def test_what_is_no_path_is_refused(tmp_path: Path, value: str) -> None:
    file = tmp_path / "toolgate.toml"
    file.write_text(f"[extend]\ntools = {value}\n")
    with pytest.raises(BadSettings, match=r"Setting extend\.tools"):
        load_settings(environment={}, file=file)


@pytest.mark.usefixtures("data", "files")
def test_commands_name_every_file(
    cli: Any, served: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    variables = {
        "TOOLGATE_EXTEND__TOOLS": "tools.json,a/tools.py",
        "TOOLGATE_EXTEND__BASE_URL": "http://127.0.0.1:1",
    }
    with served(**variables) as running:
        assert "tools.json, a/tools.py  (2 tools of your own)" in running.greeting
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    doctor = {one["check"]: one["says"] for one in cli("doctor", "--json").json}
    assert doctor["own tools"] == "tools.json, a/tools.py: 2 tools."

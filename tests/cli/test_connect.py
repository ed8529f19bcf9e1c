"""`toolgate connect`: the right entry, and nobody else's touched."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

URL = "http://127.0.0.1:8765/mcp"


def test_claude_code_gets_a_command_and_a_project_file(cli: Any) -> None:
    ended = cli("connect", "claude-code", "--json").json
    assert ended["command"] == (
        f"claude mcp add --scope project --transport http toolgate {URL} "
        "--header 'Authorization: Bearer ${TOOLGATE_KEY}'"
    )
    assert ended["file"] == ".mcp.json"
    assert ended["config"] == {
        "mcpServers": {
            "toolgate": {
                "type": "http",
                "url": URL,
                "headers": {"Authorization": "Bearer ${TOOLGATE_KEY}"},
            }
        }
    }


def test_cursor_takes_the_key_from_a_named_variable(cli: Any) -> None:
    ended = cli("connect", "cursor", "--key-variable", "MY_KEY", "--url", "https://gate.example/")
    config = json.loads(ended.out[ended.out.index("{") :])
    assert config["mcpServers"]["toolgate"] == {
        "url": "https://gate.example/mcp",
        "headers": {"Authorization": "Bearer ${env:MY_KEY}"},
    }
    assert "MY_KEY" in ended.err


def test_claude_desktop_starts_toolgate_with_absolute_paths(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    ended = cli("connect", "claude-desktop", "--write", "--key", "tg_1_2")
    assert ended.code == 0
    file = next((tmp_path / "home").rglob("claude_desktop_config.json"))
    entry = json.loads(file.read_text())["mcpServers"]["toolgate"]
    assert Path(entry["command"]).is_absolute()
    assert entry["args"] == ["mcp", "--data", str(tmp_path / ".toolgate")]
    assert entry["env"] == {"TOOLGATE_KEY": "tg_1_2"}
    own = cli("connect", "claude-desktop", "--json", "--key", "an-admin-key-of-ours").json
    assert own["config"]["mcpServers"]["toolgate"]["env"] == {
        "TOOLGATE_ADMIN_KEY": "an-admin-key-of-ours"
    }


def test_a_client_that_starts_toolgate_is_warned_where_there_is_no_data(
    cli: Any, tmp_path: Path, data: Path
) -> None:
    assert data.is_dir()
    assert "no data" not in cli("connect", "claude-desktop").err
    ended = cli("connect", "claude-desktop", "--data", "nope")
    assert ended.code == 0
    assert f"There is no data in {tmp_path / 'nope'}." in ended.err
    assert not (tmp_path / "nope").exists()


def test_a_client_that_starts_toolgate_gets_the_settings_file_that_counts(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def arguments(*more: str) -> list[str]:
        told = cli("connect", "claude-desktop", "--json", *more).json
        return told["config"]["mcpServers"]["toolgate"]["args"]

    (tmp_path / "toolgate.toml").write_text("[policy]\nread_only = true\n")
    here = ["--data", str(tmp_path / ".toolgate"), "--config", str(tmp_path / "toolgate.toml")]
    assert arguments() == ["mcp", *here]
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/gate.toml").write_text('data = "kept"\n')
    there = ["--data", str(tmp_path / "conf/kept"), "--config", str(tmp_path / "conf/gate.toml")]
    assert arguments("--config", "conf/gate.toml") == ["mcp", *there]
    monkeypatch.setenv("TOOLGATE_CONFIG", "conf/gate.toml")
    assert arguments() == ["mcp", *there]


def test_the_written_command_applies_the_rules_from_any_folder(
    process: Any, cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = tmp_path / "gate"
    (gate / "rules").mkdir(parents=True)
    (gate / "rules/x.cedar").write_text(
        'forbid (principal, action, resource) when { resource.name == "list_collections" };'
    )
    (gate / "toolgate.toml").write_text('[policy]\nfolder = "rules"\n')
    monkeypatch.chdir(gate)
    cli("db", "upgrade")
    told = cli("connect", "claude-desktop", "--json").json
    given = told["config"]["mcpServers"]["toolgate"]["args"]
    about = {"protocolVersion": "2025-11-25", "capabilities": {}}
    about |= {"clientInfo": {"name": "test", "version": "1"}}
    asked = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    ended = process(*given, input="".join(f"{json.dumps(one)}\n" for one in asked))
    answers = {one["id"]: one for one in map(json.loads, ended.out.splitlines())}
    listed = [tool["name"] for tool in answers[2]["result"]["tools"]]
    assert "describe_collection" in listed
    assert "list_collections" not in listed


def test_settings_of_the_environment_are_named_since_they_are_not_written(
    cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLGATE_POLICY__READ_ONLY", "true")
    monkeypatch.setenv("TOOLGATE_DATA", "here")
    told = cli("connect", "claude-desktop").err
    assert "do not apply to this client: TOOLGATE_POLICY__READ_ONLY. Put" in told
    assert "not in force" not in cli("connect", "cursor").err


def test_writing_keeps_what_is_there_and_a_copy_of_it(cli: Any, tmp_path: Path) -> None:
    file = tmp_path / ".vscode/mcp.json"
    file.parent.mkdir()
    before = {
        "other": [1],
        "servers": {"mine": {"type": "stdio", "command": "ünï"}},
        "inputs": [{"id": "mine", "type": "promptString"}],
    }
    file.write_text(json.dumps(before))
    assert cli("connect", "vscode", "--write").code == 0
    after = json.loads(file.read_text())
    assert after["other"] == [1]
    assert after["servers"]["mine"] == before["servers"]["mine"]
    assert after["servers"]["toolgate"]["headers"] == {
        "Authorization": "Bearer ${input:toolgate-key}"
    }
    assert [one["id"] for one in after["inputs"]] == ["mine", "toolgate-key"]
    assert json.loads(file.with_name("mcp.json.bak").read_text()) == before
    assert "Nothing to change" in cli("connect", "vscode", "--write").out
    assert json.loads(file.with_name("mcp.json.bak").read_text()) == before


@pytest.mark.parametrize(
    "text", ['{"servers": {}, # a comment\n}', "[]", '{"servers": []}', '{"inputs": {}}']
)
def test_a_file_that_cannot_be_merged_is_left_alone(cli: Any, tmp_path: Path, text: str) -> None:
    file = tmp_path / ".vscode/mcp.json"
    file.parent.mkdir()
    file.write_text(text)
    ended = cli("connect", "vscode", "--write")
    assert ended.code == 2
    assert ".vscode/mcp.json" in ended.err
    assert file.read_text() == text
    assert [one.name for one in file.parent.iterdir()] == ["mcp.json"]


@pytest.mark.parametrize("client", ["claude-code", "cursor", "vscode"])
def test_no_key_is_written_unless_asked(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: str
) -> None:
    monkeypatch.setenv("TOOLGATE_ADMIN_KEY", "a-secret-admin-key")
    monkeypatch.setenv("TOOLGATE_KEY", "a-secret-key-of-mine")
    written = Path(cli("connect", client, "--write", "--json").json["file"])
    assert "a-secret" not in (tmp_path / written).read_text()
    cli("connect", client, "--write", "--key", "tg_1_2")
    assert "Bearer tg_1_2" in (tmp_path / written).read_text()


def test_a_person_signs_in_instead_of_a_key(cli: Any) -> None:
    url = "https://tools.example.com/mcp"
    for client, section in (
        ("claude-code", "mcpServers"),
        ("cursor", "mcpServers"),
        ("vscode", "servers"),
    ):
        done = cli("connect", client, "--sign-in", "--url", "https://tools.example.com", "--json")
        entry = done.json["config"][section]["toolgate"]
        assert entry["url"] == url
        assert "headers" not in entry
        assert "inputs" not in done.json["config"]
    said = cli("connect", "claude-code", "--sign-in")
    assert "--header" not in said.out
    assert "/mcp opens a browser to sign in" in said.err


def test_signing_in_is_not_a_matter_of_claude_desktops_file(cli: Any) -> None:
    refused = cli("connect", "claude-desktop", "--sign-in")
    assert refused.code == 2
    assert "Settings, Connectors" in refused.err
    both = cli("connect", "cursor", "--sign-in", "--key", "k")
    assert both.code == 2
    assert "exclude each other" in both.err


def test_no_copy_holds_a_key_and_none_takes_anothers_place(cli: Any, tmp_path: Path) -> None:
    folder = tmp_path / ".cursor"
    folder.mkdir()
    original = '{"mcpServers": {"mine": {}}}'
    (folder / "mcp.json").write_text(original)
    cli("connect", "cursor", "--write", "--key", "tg_1_2")
    cli("connect", "cursor", "--write")
    cli("connect", "cursor", "--write", "--name", "other")
    assert (folder / "mcp.json.bak").read_text() == original
    assert not [one for one in folder.iterdir() if "tg_1_2" in one.read_text()]
    assert (folder / "mcp.json.bak2").exists()


def test_a_linked_file_stays_a_link(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "kept.json").write_text("{}")
    (tmp_path / ".mcp.json").symlink_to("kept.json")
    assert cli("connect", "claude-code", "--write").code == 0
    assert (tmp_path / ".mcp.json").is_symlink()
    assert "toolgate" in (tmp_path / "kept.json").read_text()


def test_the_command_to_paste_is_quoted(cli: Any) -> None:
    odd = "x; touch y"
    told = cli("connect", "claude-code", "--name", odd, "--url", "http://h/$(id)", "--json").json
    assert shlex.split(told["command"])[7:9] == [odd, "http://h/$(id)/mcp"]

"""What every command has in common: help, completion, errors for machines, a reader that leaves."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from docs.generate import subcommands
from tests.patience import PATIENT
from typer.main import get_command

from toolgate.cli.main import commands
from toolgate.cli.problems import split_advice


def every_command(command: Any = None, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    command = command or get_command(commands())
    inner = dict(subcommands(command))
    return [path, *(one for name in inner for one in every_command(inner[name], (*path, name)))]


@pytest.mark.parametrize("path", every_command(), ids=" ".join)
def test_h_is_help_everywhere_and_fits_a_terminal(
    cli: Any, monkeypatch: pytest.MonkeyPatch, path: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    short = cli(*path, "-h")
    assert (short.code, short.err) == (0, "")
    assert short.out == cli(*path, "--help").out
    assert short.out.lstrip().startswith(" ".join(("Usage: toolgate", *path)))
    assert [line for line in short.out.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands(process: Any, shell: str) -> None:
    # Named, not detected: what this process was started from is not the shell that is meant.
    script = process("--show-completion", shell, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert script.code == 0, script.err
    assert f"complete_{shell}" in script.out


def test_a_word_is_completed_to_the_commands_that_begin_with_it(process: Any) -> None:
    words = {"COMP_WORDS": "toolgate con", "COMP_CWORD": "1", "_TOOLGATE_COMPLETE": "complete_bash"}
    assert set(process(**words).out.split()) == {"connect", "content"}


@pytest.mark.parametrize(
    ("arguments", "code", "message", "hint"),
    [
        (["keys", "list", "--json"], 2, "There is no data in the folder", "Name the folder with"),
        (["keys", "create", "--json"], 2, "A key is for a role or", "Use --role (public,"),
        (
            ["keys", "create", "--json", "--role", "user", "--name", ""],
            2,
            "--name takes 1 to 100 printable characters.",
            None,
        ),
        (["tools", "--json", "--nope"], 2, "No such option", "See `toolgate tools --help`."),
        (["doctor", "--json", "--config", "x.toml"], 1, "", ""),
        (
            ["tools", "--json", "--config", "x.toml"],
            2,
            "x.toml is not there.",
            "Run `toolgate init --config x.toml`",
        ),
        (["call", "get_document", "--json", "{"], 2, "", ""),
    ],
)
def test_with_json_an_error_is_json_on_standard_output(
    cli: Any, arguments: list[str], code: int, message: str, hint: str | None
) -> None:
    ended = cli(*arguments)
    assert (ended.code, ended.err) == (code, "")
    if isinstance(ended.json, dict):
        error = ended.json["error"]
        assert error["message"].startswith(message)
        assert error.keys() == {"message"} if hint is None else hint in error["hint"]


@pytest.mark.parametrize(
    ("sentence", "parts"),
    [
        ("x.toml is not there. Run `y`.", ("x.toml is not there.", "Run `y`.")),
        ("No x.y 1.5 here. `z` lists. Or so.", ("No x.y 1.5 here.", "`z` lists. Or so.")),
        ("Only this", ("Only this", "")),
    ],
)
def test_a_sentence_and_its_next_step_are_told_apart(sentence: str, parts: tuple[str, str]) -> None:
    assert split_advice(sentence) == parts


def test_a_reader_that_leaves_gets_no_traceback(
    tmp_path: Path, environment: dict[str, str], data: Path
) -> None:
    line = f"{sys.executable} -m toolgate tools --json | head -c 1; echo ${{PIPESTATUS[0]}}"
    ended = subprocess.run(
        ["bash", "-c", line],
        cwd=tmp_path,
        env=environment | {"PYTHONUNBUFFERED": ""},
        capture_output=True,
        text=True,
        timeout=PATIENT,
    )
    assert ended.stderr == ""
    assert ended.stdout[0] == "{"


def test_a_closed_pipe_is_told_by_the_exit_code_alone(
    tmp_path: Path, environment: dict[str, str], data: Path
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(
        [sys.executable, "-m", "toolgate", "tools"],
        cwd=tmp_path,
        env=environment,
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENT,
    )
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (1, "")


def test_standard_output_that_is_closed_is_never_the_database(
    tmp_path: Path, environment: dict[str, str], data: Path
) -> None:
    before = (data / "toolgate.db").read_bytes()
    ended = subprocess.run(
        ["bash", "-c", f"exec {sys.executable} -m toolgate tools >&-"],
        cwd=tmp_path,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENT,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert (data / "toolgate.db").read_bytes() == before


@pytest.mark.usefixtures("data")
def test_the_audit_of_a_tool_that_is_none_names_the_nearest(cli: Any) -> None:
    ended = cli("audit", "--tool", "get_documnt")
    assert (ended.code, ended.out) == (2, "")
    assert "There is no tool 'get_documnt'. Did you mean get_document" in ended.err
    assert cli("audit", "--tool", "get_document").out == "No calls yet.\n"
    cli("call", "nothing_like_it")
    assert "nothing_like_it" in cli("audit", "--tool", "nothing_like_it").out

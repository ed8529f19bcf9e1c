"""`init`, `doctor`, `db`, `keys` and the words of every error."""

import os
import pty
import re
import socket
import subprocess
import sys
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError
from tests.patience import PATIENT

from toolgate import packs
from toolgate.cli import checks, running_server
from toolgate.cli.keys import days
from toolgate.cli.problems import ExitCode, Stop, explain
from toolgate.settings import every_setting, model_of, read_settings, setting_names


def test_init_writes_every_setting_and_changes_none(cli: Any, process: Any, tmp_path: Path) -> None:
    assert process("init").code == 0
    text = (tmp_path / "toolgate.toml").read_text()
    assert tomllib.loads(text) == {name: {} for name in tomllib.loads(text)}
    assert read_settings(environment={}) == model_of(packs.offers())()
    written = set(re.findall(r"^# (\w+) = ", text, re.MULTILINE))
    shipped = model_of(packs.offers(packs.SHIPPED))
    assert {name.rpartition(".")[2] for name in setting_names(shipped)} <= written

    again = cli("init")
    assert again.code == 2
    assert "--force" in again.err
    assert cli("init", "--force", "--json").json == {"file": "toolgate.toml"}
    assert process("doctor").code == 0


def test_uncommented_defaults_are_valid_settings(cli: Any, tmp_path: Path) -> None:
    cli("init")
    file = tmp_path / "toolgate.toml"
    active = re.sub(r'^# (\w+ = (?!"…"))', r"\1", file.read_text(), flags=re.MULTILINE)
    file.write_text(active)
    assert tomllib.loads(active)["server"]["port"] == 8765
    every = {"packs": {"enabled": packs.SHIPPED}}
    flags = {"packs.enabled": packs.SHIPPED}
    settings = read_settings(flags=flags, file=Path("toolgate.toml"), environment={})
    assert settings == every_setting().model_validate(every)


def test_doctor_looks_and_changes_nothing(cli: Any, tmp_path: Path) -> None:
    looked = cli("doctor", "--json")
    assert looked.code == 0
    states = {one["check"]: one["state"] for one in looked.json}
    assert states["admin key"] == "warn"
    assert states["documents"] == "ok"
    assert list(tmp_path.iterdir()) == []
    cli("db", "upgrade")
    cli("keys", "create", "--role", "admin")
    states = {one["check"]: one["state"] for one in cli("doctor", "--json").json}
    assert set(states) == {
        "settings", "data folder", "database", "database file", "database write", "admin key",
        "audit", "clock", "counters", "packs", "documents", "blobs", "port", "extras",
        "own tools", "rules", "file modes", "mail", "push", "payments", "posts",
    }  # fmt: skip
    assert "fail" not in states.values()
    assert "warn" not in {states[name] for name in ("admin key", "database", "audit", "clock")}


def test_doctor_names_a_setting_that_is_unknown(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "toolgate.toml").write_text("[server]\nprot = 1\n")
    ended = cli("doctor")
    assert ended.code == 1
    assert "Did you mean server.port?" in ended.out


def test_doctor_says_what_to_do_about_each_failure(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a-file").write_text("")
    monkeypatch.setenv("TOOLGATE_DATA", "a-file")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "a-file")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setenv("TOOLGATE_SERVER__PORT", str(taken.getsockname()[1]))
        monkeypatch.setattr(running_server, "ANSWER_SECONDS", 0.1)
        ended = cli("doctor", "--json")
    assert ended.code == 1
    found = {one["check"]: (one["state"], one["says"]) for one in ended.json}
    assert found["data folder"][0] == "fail"
    assert "--data" in found["data folder"][1]
    assert found["documents"][0] == "fail"
    assert found["port"][0] == "warn"
    assert "--port" in found["port"][1]


MISSPELLED = 'forbid (principal, action, resource) when { resource.efect == "destroy" };'
OVERFLOWS = "forbid (principal, action, resource) when { 9223372036854775807 + 1 == 0 };"


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        (MISSPELLED, "x.cedar, line 1: resource has no attribute efect. Did you mean effect?"),
        (OVERFLOWS, "x.cedar, line 1"),
        ('permit (principal, action, resource) when { resource.role == "x" };', 'is never "x"'),
    ],
)
def test_doctor_names_a_rule_that_is_wrong(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rule: str, says: str
) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules/x.cedar").write_text(rule)
    monkeypatch.setenv("TOOLGATE_POLICY__FOLDER", "rules")
    ended = cli("doctor", "--json")
    assert ended.code == 1
    failed = [one for one in ended.json if one["state"] == "fail"]
    assert [one["check"] for one in failed] == ["rules"]
    assert says in failed[0]["says"]


def test_a_misspelled_rule_stops_the_start(process: Any, tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules/x.cedar").write_text(MISSPELLED)
    ended = process("serve", "--port", "0", TOOLGATE_POLICY__FOLDER="rules")
    assert (ended.code, ended.out) == (2, "")
    assert "resource has no attribute efect. Did you mean effect?" in ended.err
    assert ended.err.count("\n") == 1


def test_why_tells_of_a_rule_that_fails(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules/x.cedar").write_text(OVERFLOWS)
    cli("db", "upgrade")
    monkeypatch.setenv("TOOLGATE_POLICY__FOLDER", "rules")
    ended = cli("why", "admin", "get_document")
    assert ended.code == 3
    assert "policy-error" in ended.out
    assert "x.cedar, line 1" in ended.out
    assert "integer overflow" in ended.out


def test_doctor_finds_a_toolgate_on_its_port(
    served: Any, cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served() as running:
        monkeypatch.setenv("TOOLGATE_SERVER__PORT", running.url.rpartition(":")[2])
        ended = cli("doctor", "--json")
    assert ended.code == 0
    assert {"check": "port", "state": "ok", "says": f"A toolgate answers at {running.url}."} in (
        ended.json
    )


def test_a_clock_behind_the_audit_is_noticed() -> None:
    now = datetime(2026, 6, 1, tzinfo=UTC)
    later = (now + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    assert checks.check_clock(None, now).state == "ok"
    assert "3600 s in the future" in checks.check_clock(later, now).message
    assert checks.check_clock(None, datetime(1980, 1, 1, tzinfo=UTC)).state == "fail"


def test_a_database_is_upgraded_once(cli: Any, tmp_path: Path) -> None:
    first = cli("db", "upgrade", "--json").json
    assert first["from"] is None
    second = cli("db", "upgrade", "--json").json
    assert (second["from"], second["to"]) == (first["to"], first["to"])
    assert "already" in cli("db", "upgrade").out


def test_a_database_of_a_newer_version_is_not_touched(cli: Any, tmp_path: Path) -> None:
    import sqlite3

    cli("db", "upgrade")
    database = sqlite3.connect(tmp_path / ".toolgate/toolgate.db")
    with database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")
    database.close()
    for command in (["tools"], ["keys", "list"], ["db", "upgrade"]):
        ended = cli(*command)
        assert ended.code == 2
        assert "newer than this version knows" in ended.err
    assert "newer than this version" in cli("doctor").out


@pytest.mark.usefixtures("data")
def test_keys_are_listed_without_secrets(cli: Any) -> None:
    made = cli("keys", "create", "--agent", "pm", "--user", "u1", "--expires", "12h")
    secret = re.search(r"tg_\w+", made.out)
    assert secret
    assert "cannot be shown again" in made.out
    listed = cli("keys", "list")
    assert "agent pm" in listed.out
    assert "in force" in listed.out
    assert secret.group() not in listed.out
    assert secret.group().rpartition("_")[2] not in listed.out
    assert cli("keys", "list", "--json").json[0]["state"] == "in force"


@pytest.mark.parametrize(
    ("text", "expected"), [("90d", 90), ("12h", 0.5), ("36m", 0.025), ("1d", 1)]
)
def test_durations_are_days_hours_or_minutes(text: str, expected: float) -> None:
    assert days(text) == pytest.approx(expected)


@pytest.mark.parametrize("text", ["", "90", "0d", "-1d", "1w", "d", "1.5d", "9999999d"])
def test_other_durations_are_refused(text: str) -> None:
    with pytest.raises(Stop, match="90d, 12h, 30m"):
        days(text)


@pytest.mark.parametrize(
    ("arguments", "variables", "code", "says"),
    [
        (["bogus"], {}, 2, "No such command"),
        (["why"], {}, 2, "Missing argument"),
        (["serve", "--port", "99999"], {}, 2, "server.port"),
        (["serve", "--host", "256.1.1.1"], {}, 2, "--host"),
        (["tools", "--config", "nowhere.toml"], {}, 2, "toolgate init"),
        (["tools", "--data", "a-file"], {}, 2, "no data in the folder"),
        (["mcp", "--data", "a-file"], {}, 2, "folder"),
        (["tools", "--data", "broken"], {}, 1, "not a database"),
        (["tools"], {"TOOLGATE_SERVR__PORT": "1"}, 2, "Did you mean"),
        (["tools"], {"TOOLGATE_DATABASE__URL": "mysql://x"}, 2, "sqlite:///FILE"),
        (["tools"], {"TOOLGATE_DATABASE__URL": "postgresql://u:pw@127.0.0.1:1/x"}, 1, "refused"),
        (
            ["mcp"],
            {"TOOLGATE_POLICY__FOLDER": "rules", "TOOLGATE_ADMIN_KEY": "k" * 32},
            2,
            "x.cedar, line 1",
        ),
        (["keys", "create"], {}, 2, "--role"),
        (["keys", "create", "--role", "boss"], {}, 2, "Roles: "),
        (["keys", "create", "--agent", "boss"], {}, 2, "Types: "),
        (["keys", "create", "--role", "user", "--expires", "soon"], {}, 2, "90d"),
        (["keys", "revoke", "nope"], {}, 2, "--data"),
        (["connect", "emacs"], {}, 2, "claude-code"),
        (["connect", "cursor", "--url", "here"], {}, 2, "http://"),
    ],
)
def test_an_error_is_one_sentence_and_a_next_step(
    cli: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    variables: dict[str, str],
    code: int,
    says: str,
) -> None:
    (tmp_path / "a-file").write_text("")
    for folder, name, text in (("broken", "toolgate.db", "x" * 200), ("rules", "x.cedar", "per")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(text)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    ended = cli(*arguments)
    assert ended.code == code
    assert ended.out == ""
    assert says in ended.err
    assert ended.err.startswith("Error: ")
    assert ended.err.count("\n") == 1
    assert "Traceback" not in ended.err
    assert "pw@" not in ended.err


def test_a_full_disk_is_told_as_such() -> None:
    full = OperationalError("INSERT", {}, Exception("database or disk is full"))
    sentence, code = explain(ExceptionGroup("", [full])) or ("", None)
    assert "Free some space" in sentence
    assert code == ExitCode.FAILED
    sentence, _ = explain(OSError(28, "No space left on device", "/somewhere")) or ("", None)
    assert "Free some space" in sentence


def test_a_defect_is_told_without_its_traceback(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> str:
        raise ZeroDivisionError("so it goes")

    monkeypatch.setattr("toolgate.cli.init.commented_settings", broken)
    ended = cli("init")
    assert ended.code == 1
    assert ended.err == "Error: Something went wrong on our side (ZeroDivisionError: so it goes).\n"


def test_the_version_and_help_are_there(process: Any) -> None:
    assert re.fullmatch(r"toolgate \d+\.\d+\.\d+\n", process("--version").out)
    alone = process()
    assert alone.code == 0
    for command in ("serve", "mcp", "call", "doctor", "audit"):
        assert command in alone.out
    assert "\x1b" not in alone.out


def test_a_pipe_gets_no_escape_codes_and_a_terminal_does(
    process: Any, data: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    assert "\x1b" not in process("tools").out

    ours, theirs = pty.openpty()
    terminal = subprocess.Popen(
        [sys.executable, "-m", "toolgate", "call", "list_collections"],
        cwd=tmp_path,
        env=environment | {"TERM": "xterm-256color"},
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    said = b""
    try:
        while part := os.read(ours, 65536):
            said += part
    except OSError:
        pass  # how a terminal says that the other side is gone
    os.close(ours)
    assert terminal.wait(timeout=PATIENT) == 0
    assert b"\x1b[" in said


def test_nothing_heavy_is_loaded_to_say_the_version(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    code = (
        "import sys; from toolgate.cli.main import run; run(['--version']); "
        "print([m for m in ('sqlalchemy', 'mcp', 'uvicorn', 'rich', 'cedarpy', 'alembic') "
        "if m in sys.modules])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENT,
    )
    assert ended.stdout.splitlines()[-1] == "[]"

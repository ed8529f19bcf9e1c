"""`doctor` names damage and dead parts as what they are."""

from pathlib import Path
from typing import Any

import pytest


def found(report: Any, name: str) -> tuple[str, str]:
    [one] = [one for one in report.json if one["check"] == name]
    return one["state"], one["says"]


@pytest.fixture
def file(cli: Any, tmp_path: Path) -> Path:
    """A database with something in it, and nothing beside it."""
    assert cli("db", "upgrade").code == 0
    assert cli("keys", "create", "--role", "admin").code == 0
    made = tmp_path / ".toolgate/toolgate.db"
    assert cli("doctor").code == 0
    assert not made.with_name("toolgate.db-wal").exists()
    return made


def damage(file: Path, start: int, count: int = 2000) -> None:
    content = bytearray(file.read_bytes())
    content[start : start + count] = b"\xa5" * count
    file.write_bytes(content)


def every_page(file: Path) -> None:
    """All pages but the first two are overwritten."""
    damage(file, 8192, file.stat().st_size - 8192)


def header(file: Path) -> None:
    damage(file, 0, 100)


@pytest.mark.parametrize("how", [every_page, header])
def test_a_corrupt_database_is_called_corrupt(cli: Any, file: Path, how: Any) -> None:
    how(file)
    report = cli("doctor", "--json")
    assert report.code == 1
    state, says = found(report, "database file")
    assert state == "fail"
    assert "toolgate.db is corrupt: " in says
    assert "restore it from a backup" in says
    assert "Traceback" not in report.out + report.err
    assert "database.url" not in says


def test_an_intact_database_is_called_intact(cli: Any, file: Path) -> None:
    state, says = found(cli("doctor", "--json"), "database file")
    assert (state, says.endswith("toolgate.db is intact.")) == ("ok", True)


def test_a_server_does_not_start_on_a_corrupt_database(
    process: Any, file: Path, tmp_path: Path
) -> None:
    every_page(file)
    ended = process("serve", "--port", "0")
    assert ended.code == 1
    assert "corrupt" in ended.err
    assert "backup" in ended.err
    assert "Traceback" not in ended.err


def test_a_dead_counter_store_fails_without_telling_its_password(
    cli: Any, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLGATE_LIMITS__STORE", "async+redis://:hunter2@127.0.0.1:1/0")
    report = cli("doctor", "--json")
    state, says = found(report, "counters")
    assert (report.code, state) == (1, "fail")
    assert "127.0.0.1:1 does not answer" in says
    assert "limits.store" in says
    assert "hunter2" not in report.out + report.err


def test_counting_in_the_process_needs_nothing(cli: Any, file: Path) -> None:
    assert found(cli("doctor", "--json"), "counters")[0] == "ok"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("toolgate.toml", 'admin_key = "our-own-admin-key"'),
        (".env", "TOOLGATE_ADMIN_KEY=our-own-admin-key"),
        (".env", "TOOLGATE_LIMITS__STORE=async+redis://:hunter2@127.0.0.1:1/0"),
    ],
)
def test_a_secret_in_a_file_that_others_can_read_fails(
    cli: Any, data: Path, tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / "toolgate.toml").touch()
    secret = tmp_path / name
    secret.write_text(text)
    secret.chmod(0o644)
    state, says = found(cli("doctor", "--json"), "file modes")
    assert (state, f"chmod 600 {name}" in says) == ("fail", True)
    secret.chmod(0o600)
    assert found(cli("doctor", "--json"), "file modes")[0] == "ok"


def test_a_settings_file_without_a_secret_may_be_read_by_all(
    cli: Any, data: Path, tmp_path: Path
) -> None:
    file = tmp_path / "toolgate.toml"
    file.write_text('[limits]\nstore = "async+memory://"\n')
    file.chmod(0o644)
    assert found(cli("doctor", "--json"), "file modes")[0] == "ok"

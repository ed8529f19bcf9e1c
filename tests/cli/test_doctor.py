"""`doctor` names damage and dead parts as what they are."""

from pathlib import Path
from typing import Any

import pytest
from tests.needed_packs import needs_pack


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


def test_blobs_are_tried_where_they_are(cli: Any, data: Path) -> None:
    blobs = data / "blobs"
    state, says = found(cli("doctor", "--json"), "blobs")
    assert (state, says) == ("ok", f"{blobs} will be created at the first use.")
    assert not blobs.exists()
    blobs.mkdir()
    state, says = found(cli("doctor", "--json"), "blobs")
    assert (state, says) == ("ok", f"{blobs} can be written and read.")
    assert list(blobs.iterdir()) == []
    blobs.rmdir()
    blobs.touch()
    report = cli("doctor", "--json")
    state, says = found(report, "blobs")
    assert (report.code, state) == (1, "fail")
    assert f"the folder {blobs} cannot be made (Not a directory)" in says


@needs_pack("orchestrator")
def test_a_packs_own_folder_of_blobs_is_tried(
    cli: Any, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLGATE_PACKS__ENABLED", '["orchestrator"]')
    own = data / "blobs/orchestrator"
    own.mkdir(parents=True)
    assert found(cli("doctor", "--json"), "blobs")[0] == "ok"
    assert list(own.iterdir()) == []
    own.rmdir()
    own.touch()
    assert found(cli("doctor", "--json"), "blobs")[0] == "fail"


@needs_pack("orchestrator")
def test_a_wrong_place_of_blobs_is_no_fault_of_documents_or_packs(
    cli: Any, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLGATE_PACKS__ENABLED", '["orchestrator"]')
    monkeypatch.setenv("TOOLGATE_BLOBS__URL", "s3://bucket")
    monkeypatch.setenv("TOOLGATE_BLOBS__ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("TOOLGATE_BLOBS__ACCESS_KEY_ID", "half")
    report = cli("doctor", "--json")
    state, says = found(report, "blobs")
    assert (state, "AWS_SECRET_ACCESS_KEY" in says) == ("fail", True)
    assert found(report, "documents") == ("ok", "kept in the database.")
    state, says = found(report, "packs")
    assert (state, says.startswith("orchestrator; ")) == ("ok", True)


def test_rules_that_are_not_read_are_warned_of_and_others_counted(
    cli: Any, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLGATE_POLICY__FOLDER", "rules")
    misspelled = tmp_path / "rules/team.ceder"
    misspelled.parent.mkdir()
    misspelled.write_text("forbid (principal, action, resource);\n" * 2)
    state, says = found(cli("doctor", "--json"), "rules")
    assert state == "warn"
    assert "rules has no file *.cedar, so no rule of your own applies" in says
    assert "team.ceder is not read" in says
    misspelled.rename(tmp_path / "rules/team.cedar")
    state, says = found(cli("doctor", "--json"), "rules")
    assert (state, says.endswith(", 2 rules in rules.")) == ("ok", True)


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

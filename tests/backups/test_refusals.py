"""What is no whole backup, or belongs elsewhere, is refused in a sentence, and nothing changes."""

import gzip
import hashlib
import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.backups.databases import content_of

from toolgate.cli.main import run
from toolgate.db.schemas import GATE

Change = Callable[[list[dict[str, Any] | list[Any]]], Any]


@pytest.fixture
def made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A backup of a small database, which lies beside it in `a`."""
    data = str(tmp_path / "a")
    assert run(["db", "upgrade", "--data", data]) == 0
    for _ in range(20):
        assert run(["keys", "create", "--role", "user", "--user", "anna", "--data", data]) == 0
    assert run(["backup", str(tmp_path / "made.gz"), "--data", data]) == 0
    capsys.readouterr()
    return tmp_path / "made.gz"


def changed(made: Path, change: Change) -> Path:
    """The same with other lines, well packed."""
    lines = [json.loads(line) for line in gzip.decompress(made.read_bytes()).splitlines()]
    change(lines)
    file = made.with_name("changed.gz")
    file.write_bytes(gzip.compress(b"".join(map(packed, lines))))
    return file


def packed(line: Any) -> bytes:
    return json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def place(lines: list[Any], table: str) -> int:
    return lines.index({"table": table})


def told_by(code: int, file: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What a restore says that fails; the folder stays without a database."""
    assert run(["restore", str(file), "--data", str(folder)]) == code
    assert not (folder / "toolgate.db").exists()
    said = capsys.readouterr()
    assert said.out == ""
    assert "Traceback" not in said.err
    return said.err


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.6, 0.95, 0.999])
def test_a_file_that_was_cut(
    made: Path, tmp_path: Path, share: float, capsys: pytest.CaptureFixture[str]
) -> None:
    data = made.read_bytes()
    cut = tmp_path / "cut.gz"
    cut.write_bytes(data[: int(len(data) * share)])
    said = told_by(1, cut, tmp_path / "b", capsys)
    assert "cut, or never finished" in said
    assert "Nothing was changed." in said
    assert not (tmp_path / "b").exists()


def test_a_cut_that_is_packed_anew(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = changed(made, lambda lines: lines.pop())
    assert "cut, or never finished" in told_by(1, file, tmp_path / "b", capsys)


def drop_row(lines: list[Any]) -> None:
    del lines[place(lines, "keys") + 1]


def double_row(lines: list[Any]) -> None:
    at = place(lines, "keys") + 1
    lines.insert(at, lines[at])


def change_value(lines: list[Any]) -> None:
    lines[place(lines, "keys") + 1][2] = "admin"


def change_count(lines: list[Any]) -> None:
    at = place(lines, "keys") + 21
    assert lines[at]["rows"] == 20
    lines[at]["rows"] = 19


def drop_table(lines: list[Any]) -> None:
    at = place(lines, "keys")
    del lines[at : at + 22]


def change_head(lines: list[Any]) -> None:
    lines[0]["moment"]["time"] = "2020-01-01T00:00:00.000000Z"


def more_after_the_end(lines: list[Any]) -> None:
    lines.append({"end": True})


@pytest.mark.parametrize(
    "change",
    [drop_row, double_row, change_value, change_count, drop_table, change_head, more_after_the_end],
)
def test_a_file_that_was_altered(
    made: Path, tmp_path: Path, change: Change, capsys: pytest.CaptureFixture[str]
) -> None:
    file = changed(made, change)
    assert "was altered" in told_by(1, file, tmp_path / "b", capsys)


def test_a_flipped_bit(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = bytearray(made.read_bytes())
    for number, at in enumerate((len(data) // 3, len(data) // 2, len(data) - 6)):
        flipped = tmp_path / f"{number}.gz"
        flipped.write_bytes(data[:at] + bytes([data[at] ^ 16]) + data[at + 1 :])
        said = told_by(1, flipped, tmp_path / "b", capsys)
        assert "altered" in said or "cut" in said or "no backup of toolgate" in said


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0", gzip.compress(b'{"a":1}\n')])
def test_a_file_of_others(
    tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "other"
    file.write_bytes(content)
    said = told_by(1, file, tmp_path / "b", capsys)
    assert ("no backup of toolgate" if content else "cut") in said


def newer_gate(lines: list[Any]) -> None:
    lines[0]["revisions"][""] = "9999"


def newer_pack(lines: list[Any]) -> None:
    lines[0]["revisions"]["content"] = "9999"


def newer_format(lines: list[Any]) -> None:
    lines[0]["toolgate_backup"] = 2


@pytest.mark.parametrize("change", [newer_gate, newer_pack, newer_format])
def test_a_newer_file(
    made: Path, tmp_path: Path, change: Change, capsys: pytest.CaptureFixture[str]
) -> None:
    said = told_by(1, changed(made, change), tmp_path / "b", capsys)
    assert "Use the version of toolgate that made" in said


def test_records_of_a_pack_that_is_not_installed_are_left_out_only_when_asked(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def rename(lines: list[Any]) -> None:
        lines[0]["revisions"]["gone"] = "0001"

    said = told_by(1, changed(made, rename), tmp_path / "b", capsys)
    assert "pack 'gone', which is not installed" in said
    assert "--without gone" in said


def test_a_database_that_is_not_empty_is_left_alone_unless_its_name_is_given(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path}/b/toolgate.db"
    options = ["--data", str(tmp_path / "b"), "--json"]
    assert run(["db", "upgrade", *options]) == 0
    assert run(["keys", "create", "--role", "user", "--user", "bob", *options]) == 0
    there = content_of(url)
    capsys.readouterr()
    for more, words in (([], "not empty"), (["--replace", "toolgate"], "is called 'toolgate.db'")):
        assert run(["restore", str(made), *options, *more]) == 2
        assert words in capsys.readouterr().out
        assert content_of(url) == there
    assert run(["restore", str(made), *options, "--replace", "toolgate.db"]) == 0
    assert json.loads(capsys.readouterr().out)["tables"]["keys"] == 20
    assert {row["user_id"] for row in content_of(url)["keys"]} == {"anna"}
    assert [row["tool_name"] for row in content_of(url)["audit"]].count("restore") == 1


def test_an_altered_file_replaces_nothing(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path}/a/toolgate.db"
    there = content_of(url)
    file = changed(made, more_after_the_end)
    options = ["--data", str(tmp_path / "a"), "--replace", "toolgate.db"]
    assert run(["restore", str(file), *options]) == 1
    assert content_of(url) == there
    capsys.readouterr()


def test_an_older_backup_goes_through_the_migrations(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As one of this version would be that was made before workflows came."""
    older = GATE.revisions[GATE.revisions.index("0018")]

    def before_workflows(lines: list[Any]) -> None:
        lines[0]["revisions"][""] = older
        for table in ("workflow_runs", "workflow_schedules"):
            at = place(lines, table)
            del lines[at : at + 2]
            lines[0]["tables"] = [one for one in lines[0]["tables"] if one["name"] != table]
            del lines[-1]["tables"][table]
        lines[-1]["sha256"] = chain(lines)

    assert (
        run(["restore", str(changed(made, before_workflows)), "--data", str(tmp_path / "b")]) == 0
    )
    content = content_of(f"sqlite:///{tmp_path}/b/toolgate.db")
    assert content["alembic_version"] == [{"version_num": GATE.newest}]
    assert content["workflow_runs"] == []
    assert len(content["keys"]) == 20
    capsys.readouterr()


def chain(lines: list[Any]) -> str:
    """The digest that the last line has, worked out by the page about the format."""
    ends = [one for one in lines[:-1] if isinstance(one, dict) and "rows" in one]
    told = b"".join(map(packed, (lines[0], *ends)))
    return hashlib.sha256(told).hexdigest()


def test_a_full_disk_leaves_no_backup(made: Path, tmp_path: Path) -> None:
    assert made.stat().st_size > 2000
    words = ["backup", str(tmp_path / "new.gz"), "--data", str(tmp_path / "a")]
    program = (
        "import resource, sys; from toolgate.backups import dump\n"
        "from toolgate.cli.main import run\n"
        "def full(*args):\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
        "    return write(*args)\n"
        "write, dump._dump = dump._dump, full\n"
        f"sys.exit(run({words}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.glob("new.gz*")) == []


def test_what_a_killed_backup_leaves_is_none_and_the_next_one_replaces_it(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "new.gz"
    program = (
        "import os, signal; from toolgate.backups import archive;"
        "from toolgate.cli.main import run;"
        "archive.ArchiveWriter.close = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL);"
        f"run(['backup', {str(target)!r}, '--data', {str(tmp_path / 'a')!r}])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True)
    assert done.returncode == -signal.SIGKILL
    assert not target.exists()
    left = target.with_name("new.gz.unfinished")
    assert left.stat().st_mode & 0o777 == 0o600
    assert "cut" in told_by(1, left, tmp_path / "b", capsys)
    assert run(["backup", str(target), "--data", str(tmp_path / "a")]) == 0
    assert not left.exists()
    assert run(["restore", str(target), "--data", str(tmp_path / "b")]) == 0
    capsys.readouterr()


def test_a_killed_restore_leaves_nothing_and_can_be_begun_anew(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "b"
    program = (
        "import os, signal; from toolgate.backups import load; from toolgate.cli.main import run;"
        "load._rest = lambda _: os.kill(os.getpid(), signal.SIGKILL);"
        f"run(['restore', {str(made)!r}, '--data', {str(data)!r}])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True)
    assert done.returncode == -signal.SIGKILL
    with closing(sqlite3.connect(data / "toolgate.db")) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    assert run(["restore", str(made), "--data", str(data)]) == 0
    assert len(content_of(f"sqlite:///{data}/toolgate.db")["keys"]) == 20
    capsys.readouterr()

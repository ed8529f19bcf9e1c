"""`toolgate audit`: reading it back, and noticing what was touched."""

import json
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.patience import PATIENT

from toolgate.cli.output import printable

pytestmark = pytest.mark.usefixtures("data")

FILE = ".toolgate/toolgate.db"


def touch(folder: Path, statement: str) -> None:
    database = sqlite3.connect(folder / FILE)
    with database:
        database.execute(statement)
    database.close()


def test_a_changed_row_is_named(cli: Any, process: Any, tmp_path: Path) -> None:
    for name in ("list_collections", "get_document", "nothing_like_it"):
        cli("call", name)
    intact = process("audit", "verify", "--json")
    assert intact.code == 0
    assert intact.json["intact"] is True
    assert (intact.json["rows"], intact.json["unsealed"]) == (3, 0)

    touch(tmp_path, "UPDATE audit SET tool_name = 'list_collections' WHERE seq = 2")
    found = process("audit", "verify", "--json")
    assert found.code == 1
    assert found.json["findings"] == [{"what": "row changed", "seq": 2, "until": None}]
    told = cli("audit", "verify")
    assert told.code == 1
    assert "row changed: 2" in told.out
    examined = cli("doctor", "--json")
    assert examined.code == 1
    states = {one["check"]: one["state"] for one in examined.json}
    assert states["audit"] == "fail"


def test_rows_are_shown_newest_last_and_can_be_narrowed(cli: Any) -> None:
    assert cli("audit").out == "No calls yet.\n"
    cli("call", "list_collections")
    cli("call", "get_document", "--as", "public")
    cli("call", "list_collections", "--as", "user:u1")

    def tools_of(*options: str) -> list[str]:
        lines = cli("audit", "--json", *options).out.splitlines()
        return [json.loads(line)["tool_name"] for line in lines]

    assert tools_of() == ["list_collections", "get_document", "list_collections"]
    assert tools_of("--limit", "1") == ["list_collections"]
    assert tools_of("--tool", "get_document") == ["get_document"]
    assert tools_of("--principal", "u1") == ["list_collections"]
    assert tools_of("--principal", "anonymous") == ["get_document"]
    assert tools_of("--principal", "nobody") == []
    assert cli("audit", "--principal", "nobody").out == "No rows for --principal nobody (of 3).\n"
    both = cli("audit", "--tool", "get_document", "--principal", "u1").out
    assert both == "No rows for --tool get_document --principal u1 (of 3).\n"
    shown = cli("audit").out
    assert "refused: no-rule-permits" in shown
    assert "user u1 cli" in shown


def test_rows_of_some_time_and_some_outcome_can_be_asked_for(cli: Any, tmp_path: Path) -> None:
    cli("call", "list_collections")
    cli("call", "get_document", "--as", "public")
    cli("call", "get_document", "collection=users", "document_id=nobody")
    touch(tmp_path, "UPDATE audit SET created_at = '2026-01-01T08:00:00.000000Z' WHERE seq = 1")

    def numbers(*options: str) -> list[int]:
        lines = cli("audit", "--json", *options).out.splitlines()
        return [json.loads(line)["seq"] for line in lines]

    assert numbers("--outcome", "ok") == [1]
    assert numbers("--outcome", "refused") == [2]
    assert numbers("--outcome", "failed") == [3]
    assert numbers("--since", "3650d") == [1, 2, 3]
    assert numbers("--since", "12h") == [2, 3]
    assert numbers("--since", "2026-01-01") == [1, 2, 3]
    assert numbers("--since", "2026-01-01T08:00:00Z") == [1, 2, 3]
    assert numbers("--since", "2026-01-01T08:00:01") == [2, 3]
    assert numbers("--since", "2026-01-01T09:30:00+02:00") == [1, 2, 3]
    assert numbers("--since", "2026-01-01T09:30:00+01:00") == [2, 3]
    assert numbers("-n", "1", "--outcome", "refused", "--since", "1d") == [2]
    assert "--since 2999-01-01T00:00:00.000000Z" in cli("audit", "--since", "2999-01-01").out


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--since", "yesterday", "--since 'yesterday' is no time. Write how long ago, as 30m"),
        ("--since", "", "--since '' is no time."),
        ("--since", "0001-01-01T00:00+14:00", "is no time."),
        ("--outcome", "denied", "There is no outcome 'denied'. Outcomes: ok, failed, refused."),
    ],
    ids=["words", "nothing", "before all times", "outcome"],
)
def test_what_cannot_be_asked_for_is_told(cli: Any, option: str, value: str, told: str) -> None:
    ended = cli("audit", option, value)
    assert (ended.code, told in ended.err) == (2, True)


def test_names_with_control_characters_do_not_reach_the_terminal(cli: Any) -> None:
    cli("call", "\x1b[31mred\nline")
    shown = cli("audit").out
    assert "\x1b" not in shown
    assert len(shown.splitlines()) == 2
    assert printable("\x1b[31mred\nline") == "\\x1b[31mred\\nline"


def test_following_goes_on_until_it_is_told_to_stop(
    process: Any, tmp_path: Path, environment: dict[str, str]
) -> None:
    process("call", "list_collections")
    follower = subprocess.Popen(
        [sys.executable, "-m", "toolgate", "audit", "--follow", "--json"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert follower.stdout is not None
    assert json.loads(follower.stdout.readline())["seq"] == 1
    process("call", "describe_collection", "collection_name=users")
    assert json.loads(follower.stdout.readline())["tool_name"] == "describe_collection"
    follower.send_signal(signal.SIGINT)
    out, err = follower.communicate(timeout=PATIENT)
    assert (follower.returncode, out, err) == (0, "", "")


def test_a_key_with_a_name_is_seen_by_it(cli: Any) -> None:
    made = cli("keys", "create", "--role", "user", "--name", "Anna's editor", "--json").json
    assert made["name"] == "Anna's editor"
    plain = cli("keys", "create", "--role", "user", "--json").json
    assert "name" not in plain
    listed = cli("keys", "list").out.splitlines()
    assert listed[0].split()[:3] == ["ID", "NAME", "FOR"]
    assert ["Anna's editor" in line for line in listed[1:]].count(True) == 1
    cli("call", "list_collections", "--as", f"key:{made['id']}")
    cli("call", "list_collections", "--as", f"key:{plain['id']}")
    calls = cli("audit", "--json", "--tool", "list_collections").out.splitlines()
    rows = [json.loads(line) for line in calls]
    assert [row["key_name"] for row in rows] == ["Anna's editor", None]
    assert [row["times"] for row in rows] == [1, 1]
    narrowed = cli("audit", "--tool", "list_collections", "--principal", "Anna's editor", "--json")
    assert narrowed.json["subject_id"] == f"key:{made['id']}"
    shown = cli("audit", "--tool", "list_collections").out.splitlines()
    (line,) = [line for line in shown if made["id"] in line]
    assert "Anna's editor" in line
    for wrong in ("", "x" * 101, "two\nlines"):
        refused = cli("keys", "create", "--role", "user", "--name", wrong)
        assert refused.code == 2
        assert "--name takes 1 to 100 printable characters" in refused.err


def test_a_head_noted_earlier_is_found_or_missed(cli: Any, tmp_path: Path) -> None:
    cli("call", "list_collections")
    noted = cli("audit", "verify", "--json").json["head"]
    cli("call", "list_collections")
    later = cli("audit", "verify", "--head", noted)
    assert later.code == 0
    assert "noted     at seal 1" in later.out
    touch(tmp_path, "DELETE FROM audit")
    touch(tmp_path, "DELETE FROM audit_seals")
    emptied = cli("audit", "verify", "--head", noted)
    assert emptied.code == 1
    for told in (
        "seals removed: 1 to 2",
        "rows removed: 1 to 2",
        "noted head not in the chain: the chain has ",
    ):
        assert told in emptied.out
    wrong = cli("audit", "verify", "--head", "abc")
    assert wrong.code == 2
    assert "is not a hash" in wrong.err

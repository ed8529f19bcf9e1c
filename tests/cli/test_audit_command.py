"""`toolgate audit`: reading it back, and noticing what was touched."""

import json
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.patience import PATIENT

from toolgate.cli.output import printable

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
    assert found.json["findings"] == [{"what": "row changed", "seq": 2}]
    told = cli("audit", "verify")
    assert told.code == 1
    assert "row changed: 2" in told.out
    examined = cli("doctor", "--json")
    assert examined.code == 1
    states = {one["check"]: one["state"] for one in examined.json}
    assert states["audit"] == "fail"


def test_rows_are_shown_newest_last_and_can_be_narrowed(cli: Any) -> None:
    assert "no database" in cli("audit").err
    cli("keys", "create", "--role", "admin")
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
    shown = cli("audit").out
    assert "refused: no-rule-permits" in shown
    assert "user u1 cli" in shown


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

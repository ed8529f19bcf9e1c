"""What an operator changes with a command is in the audit, with the name of who did it."""

import json
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from sqlalchemy.exc import OperationalError
from tests.identity.oauth.flow import registered
from tests.servers import Server

from toolgate.cli.main import run
from toolgate.gate import operators
from toolgate.gate.operators import user_of_this_machine

ME = user_of_this_machine()


def rows(cli: Any, *options: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in cli("audit", "--json", *options).out.splitlines()]


@pytest.mark.usefixtures("data")
def test_keys_that_are_made_and_revoked_leave_a_row_each(cli: Any) -> None:
    made = cli("keys", "create", "--role", "user", "--name", "Jane's editor", "--json").json
    assert cli("keys", "revoke", made["id"]).code == 0
    found = rows(cli)
    assert [row["tool_name"] for row in found] == ["keys.create", "keys.revoke"]
    for row in found:
        assert (row["subject_type"], row["subject_id"]) == ("operator", f"operator:{ME}")
        assert (row["transport"], row["decision"], row["rule"]) == ("cli", "allow", "operator")
        assert (row["client_id"], row["key_name"]) == (f"key:{made['id']}", "Jane's editor")
    assert made["key"].split("_")[2] not in json.dumps(found)
    assert rows(cli, "--principal", made["id"]) == rows(cli, "--principal", "operator") == found
    shown = cli("audit").out.splitlines()[1:]
    assert all(f"operator {ME}  Jane's editor key:{made['id']}" in line for line in shown)
    assert cli("audit", "verify").code == 0


@pytest.mark.usefixtures("data")
def test_a_command_that_changes_nothing_leaves_no_row(cli: Any) -> None:
    assert cli("keys", "revoke", "0123456789abcdef").code == 2
    assert cli("grants", "end", "nobody").code == 2
    assert cli("keys", "create", "--role", "nothing").code == 2
    assert rows(cli) == []


@pytest.mark.usefixtures("data")
def test_a_key_whose_row_cannot_be_stored_is_not_made(
    cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OperationalError("INSERT", {}, Exception("disk full"))

    with monkeypatch.context() as patch:
        patch.setattr(operators, "store", full)
        assert cli("keys", "create", "--role", "user").code != 0
    assert cli("keys", "list", "--json").json == []


@pytest.mark.usefixtures("data")
def test_a_number_without_a_name_is_told_as_it_is(
    cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operators.os, "geteuid", lambda: 1_999_999_999)
    assert cli("keys", "create", "--role", "user").code == 0
    assert rows(cli)[0]["subject_id"] == "operator:1999999999"


def test_each_grant_that_is_ended_leaves_a_row(server: Server, capsys: Any) -> None:
    async def two_grants() -> set[str]:
        made: set[str] = set()
        for _ in range(2):
            async with httpx2.AsyncClient(base_url=server.url, trust_env=False) as http:
                flow = await registered(http)
                await flow.tokens(server.keys["user"])
                made.add(flow.client_id)
        return made

    made = anyio.run(two_grants)
    data = ("--data", str(server.data))
    assert run(["grants", "end", "abc123", *data]) == 0
    capsys.readouterr()
    assert run(["audit", "--json", "--tool", "grants.end", *data]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert made <= {row["client_id"] for row in found}
    assert len({row["grant_id"] for row in found} - {None}) == len(found)
    assert {row["subject_id"] for row in found} == {f"operator:{ME}"}


def test_the_first_key_is_audited_too(served: Any, cli: Any, tmp_path: Path) -> None:
    with served():
        pass
    (row,) = [row for row in rows(cli) if row["subject_type"] == "operator"]
    assert row["tool_name"] == "keys.create"
    (key,) = cli("keys", "list", "--json").json
    assert row["client_id"] == f"key:{key['id']}"

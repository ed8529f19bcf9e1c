"""`toolgate users`: private keys of users, and what they open."""

import json
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.cli.test_stdio import USERS, tools_seen
from tests.patience import PATIENT
from tests.servers import Server, pause

from toolgate.cli.main import run

DEMO = "_test-premium-active"


def made_key(capsys: pytest.CaptureFixture[str], server: Server, uid: str, *more: str) -> str:
    capsys.readouterr()
    assert run(["users", "key", uid, "--data", str(server.data), "--json", *more]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["uid"] == uid
    return made["key"]


def test_a_private_key_opens_http_and_mcp_until_it_is_revoked(
    server: Server,
    tmp_path: Path,
    environment: dict[str, str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    key = made_key(capsys, server, DEMO)
    data = ("--data", str(server.data))
    with server.client(None, Authorization=f"Bearer {key}") as client:
        user = client.get("/backend-manager/user").json()["user"]
        assert user["auth"]["uid"] == DEMO
        assert "privateKey" not in user["api"]
        listed = client.get("/v1/tools").json()["tools"]
        of_pack = {"get_user", "get_subscription", "health_check"}
        assert {one["name"] for one in listed} == of_pack | USERS
        answer = client.get("/backend-manager/user/subscription")
        assert answer.json()["subscription"]["product"]["id"] == "premium"
        row = server.audit_rows(answer.headers["x-request-id"])[0]
        assert (row["subject_id"], row["client_id"]) == (f"user:{DEMO}", "private-key")
        seen, said = anyio.run(tools_seen, tmp_path, environment, "--token", key, *data)
        assert seen == USERS
        assert key not in said
        assert run(["users", "revoke", DEMO, *data]) == 0
        deadline = time.monotonic() + PATIENT
        while client.get("/backend-manager/user").status_code != 401:
            assert time.monotonic() < deadline, "it is still good"
            pause()
    assert key not in (server.data / "toolgate.db").read_bytes().decode("latin-1")


def test_the_key_of_an_admins_record_is_an_admins(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    key = made_key(capsys, server, "_test-admin")
    with server.client(None, Authorization=f"Bearer {key}") as client:
        made = client.post("/backend-manager/general/uuid", json={"name": "ada"})
        assert made.status_code == 200
        assert client.get("/backend-manager/user").json()["user"]["roles"]["admin"] is True
        other = client.get("/backend-manager/user/subscription", params={"uid": DEMO})
        assert other.json()["subscription"]["product"]["id"] == "premium"
    run(["users", "revoke", "_test-admin", "--data", str(server.data)])


def test_a_second_key_replaces_the_first_only_if_asked(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    uid = "_test-basic"
    first = made_key(capsys, server, uid)
    assert run(["users", "key", uid, "--data", str(server.data)]) == 2
    told = capsys.readouterr()
    assert "--replace" in told.err
    assert first not in told.err + told.out
    assert made_key(capsys, server, uid, "--replace") != first
    run(["users", "revoke", uid, "--data", str(server.data)])


@pytest.mark.usefixtures("data")
def test_a_user_who_is_not_there(cli: Any) -> None:
    for command in ("key", "revoke"):
        ended = cli("users", command, "nobody")
        assert ended.code == 2
        assert "nobody" in ended.err
    rows = cli("audit", "--json").out.splitlines()
    assert rows == [], "what changes nothing leaves no row"

"""The official TypeScript client signs a person in by itself, against a running server."""

import json
from pathlib import Path

import pytest
from tests.conformance.node import NodeUnavailable, find, install
from tests.patience import PATIENT
from tests.servers import Server

SCRIPT = "ts_oauth.mjs"


@pytest.mark.parametrize("path", ["/mcp", "/backend-manager/mcp"])
def test_the_client_goes_the_whole_way(server: Server, path: str) -> None:
    try:
        home = install(Path(__file__).parent, SCRIPT)
    except NodeUnavailable as reason:
        pytest.skip(f"TypeScript client: {reason}")
    typed = {"TOOLGATE_TYPED": json.dumps({"key": server.key_of("user")})}
    done = find().run(SCRIPT, f"{server.url}{path}", cwd=home, timeout=PATIENT, env=typed)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "tools": [
            "list_collections",
            "describe_collection",
            "get_user",
            "get_subscription",
            "health_check",
        ],
        "signIns": 1,
        "tokens": 1,
        "afterRefresh": True,
        "revoked": 200,
        "again": 2,
    }

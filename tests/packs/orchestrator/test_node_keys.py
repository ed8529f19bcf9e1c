"""Keys of nodes on the command line: made with the node, listed, and good for nothing else."""

from typing import Any

import pytest

SLUG = "worker-09"


@pytest.fixture(autouse=True)
def _orchestrator(cli: Any, data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLGATE_PACKS__ENABLED", "orchestrator")
    assert cli("call", "operator.node.create", f"node_slug={SLUG}").code == 0


def key_row(cli: Any) -> dict[str, Any]:
    (row,) = [row for row in cli("keys", "list", "--json").json if row["node_id"]]
    return row


def test_the_key_of_a_node_is_listed_as_such(cli: Any) -> None:
    assert (key_row(cli)["node_id"], key_row(cli)["state"]) == (SLUG, "in force")
    (line,) = [one for one in cli("keys", "list").out.splitlines() if SLUG in one]
    assert f"node {SLUG}" in line
    assert "agent" not in line
    assert cli("call", "operator.node.delete", f"node_slug={SLUG}").code == 0
    assert key_row(cli)["state"] == "revoked"


def test_a_node_calls_its_own_tools_alone(cli: Any) -> None:
    for who in (f"key:{key_row(cli)['id']}", f"node:{SLUG}"):
        beat = cli("call", "worker_node.heartbeat", "--as", who)
        assert (beat.code, beat.json["result"]["node_slug"]) == (0, SLUG)
        other = cli("call", "worker_node.heartbeat", "node_slug=worker-01", "--as", who)
        assert other.json["error"]["message"] == "Node not found"
        assert cli("call", "node.list", "--as", who).code != 0


def test_why_names_the_rule_and_the_node(cli: Any) -> None:
    told = cli("why", f"node:{SLUG}", "worker_node.heartbeat", "--json")
    assert (told.code, told.json["rule"]) == (0, "node-reports-itself")
    assert told.json["only"] == {"node_slug": SLUG}
    assert cli("why", f"node:{SLUG}", "node.list", "--json").json["allowed"] is False
    assert cli("why", "agent:pm", "worker_node.heartbeat", "--json").json["allowed"] is False

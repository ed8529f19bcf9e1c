"""The official TypeScript client, with its default handshake and with version negotiation."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from tests.clients.conftest import CALLED_FOR_REAL
from tests.conformance.node import NodeUnavailable, find, install
from tests.needed_packs import needs_pack
from tests.patience import PATIENT
from tests.servers import Server

from toolgate import packs
from toolgate.gate.catalogue import Catalogue

pytestmark = needs_pack("appdata")

CATALOGUE = Catalogue(packs.offers())
SCRIPT = "ts_client.mjs"
FOLDER = Path(__file__).parent
MODES = ["default", "auto"]


def calls() -> dict[str, dict[str, Any]]:
    """Every tool with its example; a new document gets an id of its own from the server."""
    wanted = {
        tool.name: dict(tool.example) for tool in CATALOGUE if tool.pack.name in CALLED_FOR_REAL
    }
    del wanted["create_document"]["document_id"]
    return {**wanted, "no_such_tool": {}}


def looked(
    server: Server,
    holder: str,
    folder: Path,
    wanted: Mapping[str, Any],
    further: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """What the client saw with a holder's key and further headers."""
    try:
        home = install(FOLDER, SCRIPT)
    except NodeUnavailable as reason:
        pytest.skip(f"TypeScript client: {reason}")
    (folder / "calls.json").write_text(json.dumps(wanted))
    done = find().run(
        SCRIPT,
        f"{server.url}/mcp",
        str(folder / "calls.json"),
        cwd=home,
        timeout=PATIENT,
        env={
            "TOOLGATE_KEY": server.key_of(holder),
            "HEADERS": json.dumps(dict(further)),
        },
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def seen(server: Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return looked(server, "admin", tmp_path_factory.mktemp("calls"), calls())


@pytest.mark.parametrize(
    ("mode", "version", "era"),
    [("default", "2025-11-25", "legacy"), ("auto", "2026-07-28", "modern")],
)
def test_the_client_connects(seen: dict[str, Any], mode: str, version: str, era: str) -> None:
    assert "error" not in seen[mode], seen[mode]
    assert (seen[mode]["version"], seen[mode]["era"]) == (version, era)
    assert seen[mode]["server"]["name"] == "toolgate"


CALLED = [tool.name for tool in CATALOGUE if tool.pack.name in CALLED_FOR_REAL]


@pytest.mark.parametrize("mode", MODES)
def test_every_tool_is_listed_in_order(seen: dict[str, Any], mode: str) -> None:
    assert seen[mode]["tools"] == [tool.name for tool in CATALOGUE]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CALLED)
def test_every_tool_is_called_with_its_example(
    seen: dict[str, Any], server: Server, mode: str, name: str
) -> None:
    result = seen[mode]["results"][name]
    assert not result.get("isError"), result
    body = result["structuredContent"]
    assert json.loads(result["content"][0]["text"]) == body
    if name == "create_document":
        assert (body["success"], list(body)) == (True, ["id", "success"])
        return
    with server.client() as plain:
        assert body == plain.post(f"/v1/tools/{name}", json=calls()[name]).json()


@pytest.mark.parametrize("mode", MODES)
def test_a_failed_call_is_told_in_its_own_words(seen: dict[str, Any], mode: str) -> None:
    failure = seen[mode]["failure"]
    assert failure["isError"] is True
    told = json.loads(failure["content"][0]["text"])
    assert told == {"error": "Document nobody not found in users"}


@pytest.mark.parametrize("mode", MODES)
def test_an_unknown_tool_is_a_fault(seen: dict[str, Any], mode: str) -> None:
    fault = seen[mode]["results"]["no_such_tool"]["error"]
    assert fault["code"] == -32602
    assert "Unknown tool: no_such_tool" in fault["message"]


def test_a_user_sees_and_calls_only_the_tools_of_users(server: Server, tmp_path: Path) -> None:
    seen = looked(server, "user", tmp_path, calls())
    for mode in MODES:
        assert seen[mode]["tools"] == [
            "list_collections",
            "describe_collection",
            "get_user",
            "get_subscription",
            "health_check",
        ]
        fault = seen[mode]["results"]["get_document"]["error"]
        assert "Unknown tool: get_document" in fault["message"]
        assert not seen[mode]["results"]["list_collections"].get("isError")

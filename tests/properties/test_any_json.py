"""Whatever JSON comes, over whichever way: one answer, never a fault of ours."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests import preloaded
from tests.servers import ROOT, Server, running_server
from tests.transports.mcp_requests import ERAS, tool_call
from tests.transports.peers import call

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=2**62, max_value=2**70)
    | st.floats()
    | st.text(st.characters(), max_size=20)
    | st.sampled_from(["\ud800", "a\udfff", "\0", "==", "users"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=8), inner, max_size=4)
        | inner.map(lambda one: json.loads("[" * 150 + "1" + "]" * 150) if one is None else [one])
    ),
    max_leaves=8,
)
NAMES = st.sampled_from(["query_collection", "create_document", "get_document", "no_such_tool"])
ARGUMENTS = st.fixed_dictionaries(
    {"collection": st.just("users") | VALUES},
    optional={"filters": VALUES, "data": VALUES, "document_id": VALUES, "limit": VALUES},
)
FEW = settings(max_examples=40, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def any_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory) as started:
        yield started


@pytest.fixture(scope="module")
def client(any_server: Server) -> Iterator[httpx2.Client]:
    with any_server.client() as opened:
        yield opened


def good(answer: httpx2.Response) -> Any:
    assert answer.status_code < 500, answer.text
    assert "on our side" not in answer.text
    return answer.json()


@FEW
@given(name=NAMES, arguments=VALUES | ARGUMENTS)
def test_over_plain_http(client: httpx2.Client, name: str, arguments: Any) -> None:
    good(client.post(f"/v1/tools/{name}", content=json.dumps(arguments).encode()))


@FEW
@given(name=NAMES | VALUES, arguments=VALUES | ARGUMENTS, id=VALUES)
def test_over_json_rpc(client: httpx2.Client, name: Any, arguments: Any, id: Any) -> None:
    message = {"jsonrpc": "2.0", "id": id, "method": name, "params": arguments}
    told = good(client.post("/rpc", content=json.dumps(message).encode()))
    assert ("result" in told) is not ("error" in told)
    batch = json.dumps([message, {**message, "id": 1}]).encode()
    told = good(client.post("/rpc", content=batch))
    assert len(told) == 2 if isinstance(told, list) else told["error"]["code"] == -32700


@FEW
@given(era=st.sampled_from(ERAS), name=NAMES, arguments=VALUES | ARGUMENTS, id=VALUES)
def test_over_mcp(client: httpx2.Client, era: str, name: str, arguments: Any, id: Any) -> None:
    wanted = tool_call(era, name, arguments).saying(id=id)
    body = json.dumps(wanted.body).encode()
    answer = client.post("/mcp", content=body, headers=wanted.headers)
    assert answer.status_code < 500, answer.text
    assert answer.content, "an answer is owed"
    assert "Internal error" not in answer.text
    assert "on our side" not in answer.text


@pytest.fixture(scope="module")
def process(any_server: Server) -> Iterator[subprocess.Popen[bytes]]:
    variables = {**os.environ, "TOOLGATE_ADMIN_KEY": any_server.admin_key}
    command = [sys.executable, "-m", "toolgate", "mcp", "--data", str(any_server.data)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with preloaded.Popen(command, cwd=ROOT, env=variables, **pipes) as started:
        yield started
        assert started.stdin is not None
        started.stdin.close()


@FEW
@given(name=NAMES, arguments=VALUES | ARGUMENTS, id=VALUES)
def test_on_standard_input(
    process: subprocess.Popen[bytes], name: str, arguments: Any, id: Any
) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(call(name, arguments, id=id)).encode() + b"\n")
    process.stdin.flush()
    told = json.loads(process.stdout.readline())
    assert told["id"] in (id, None)
    assert ("result" in told) is not ("error" in told)
    assert told.get("error", {}).get("code") != -32603

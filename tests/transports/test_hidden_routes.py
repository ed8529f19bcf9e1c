"""A route that is hidden from a caller cannot be told from a path where nothing is."""

import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.gate.tools import offer
from tests.transports.conftest import Web, opened_web
from tests.transports.routed import routed

from toolgate.gate.principal import Role
from toolgate.gate.tool import Input, NoArguments

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("remembered")]


class Id(Input):
    id: str


TOOLS = (
    routed("secret", "/secret", takes=NoArguments),
    routed("secret_thing", "/secret/{id}", takes=Id, pack="network"),
    routed("made_secret", "/secret/{id}", "POST", takes=Id),
    routed("seen", "/seen/{id}", takes=Id, pack="network", role=Role.USER),
    routed("hidden_beside", "/seen/{id}/hidden", takes=Id, pack="network"),
)
HIDDEN = [
    ("GET", "/secret"),
    ("POST", "/secret"),
    ("GET", "/secret/1"),
    ("POST", "/secret/1"),
    ("DELETE", "/secret/1"),
    ("GET", "/secret/1/2"),
]
ABSENT = [("GET", "/nothing"), ("POST", "/nothing"), ("GET", "/nothing/1"), ("PUT", "/nothing/1/2")]
LIMIT = 4


@pytest.fixture(scope="module")
async def web(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    async with opened_web(tmp_path_factory.mktemp("hidden"), offer(*TOOLS)) as opened:
        yield opened


def told(answer: httpx2.Response) -> tuple[int, bytes, dict[str, str]]:
    headers = {name: value for name, value in answer.headers.items() if name != "x-request-id"}
    return answer.status_code, answer.content, headers


@pytest.mark.parametrize(("method", "path"), HIDDEN + ABSENT)
async def test_both_are_told_alike(web: Web, method: str, path: str) -> None:
    async with web.client("user") as client:
        answer = await client.request(method, path)
        assert told(answer) == told(await client.get("/absent"))
    (row,) = await web.audit_rows(answer.headers["x-request-id"])
    assert (row["decision"], row["error_type"]) == ("deny", "not_found")


async def test_the_audit_names_the_tool_that_is_hidden(web: Web) -> None:
    async with web.client("user") as client:
        hidden, absent = await client.get("/secret/1"), await client.get("/nothing/1")
    (row,) = await web.audit_rows(hidden.headers["x-request-id"])
    assert row["tool_name"] == "secret_thing"
    (row,) = await web.audit_rows(absent.headers["x-request-id"])
    assert row["tool_name"] == "/nothing/1"


async def test_below_a_route_that_is_visible_both_are_told_in_its_words(web: Web) -> None:
    async with web.client("user") as client:
        hidden, absent = await client.get("/seen/1/hidden"), await client.get("/seen/1/absent")
        assert (await client.get("/seen/1")).status_code == 200
    assert told(hidden) == told(absent)
    assert hidden.json().keys() == {"code", "message", "data"}


@pytest.mark.parametrize("path", ["/secret", "/secret/1", "/nothing", "/nothing/1"])
async def test_both_are_counted_as_refusals(tmp_path: Path, path: str) -> None:
    settings: dict[str, Any] = {"limits__refusals_per_minute": LIMIT}
    async with opened_web(tmp_path, offer(*TOOLS), **settings) as web, web.client("user") as client:
        answers = [await client.get(path) for _ in range(LIMIT + 1)]
        unknown = await client.post("/v1/tools/no_such_tool", json={})
        assert (await client.get("/seen/1")).status_code == 200, "calls are not refusals"
    assert [one.status_code for one in answers] == [404] * LIMIT + [429]
    assert int(answers[-1].headers["retry-after"]) > 0
    assert unknown.status_code == 429, "in one count with unknown tools"


async def test_a_wrong_method_of_a_visible_route_is_told_and_not_counted(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"limits__refusals_per_minute": 1}
    async with opened_web(tmp_path, offer(*TOOLS), **settings) as web, web.client("user") as client:
        for _ in range(3):
            answer = await client.post("/seen/1")
            assert (answer.status_code, answer.headers["allow"]) == (405, "GET")


async def functions_entered(client: httpx2.AsyncClient, path: str) -> Counter[str]:
    for _ in range(3):
        await client.get(path)
    entered: Counter[str] = Counter()

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call" and "/toolgate/" in frame.f_code.co_filename:
            entered[frame.f_code.co_qualname] += 1

    sys.setprofile(note)
    try:
        assert (await client.get(path)).status_code == 404
    finally:
        sys.setprofile(None)
    return entered


async def test_both_take_the_same_work(web: Web) -> None:
    async with web.client("user") as client:
        absent = await functions_entered(client, "/nothing/1")
        hidden = await functions_entered(client, "/secret/1")
    more = (hidden - absent).total() + (absent - hidden).total()
    assert absent.total() > 30
    assert more <= 8, (hidden - absent, absent - hidden)

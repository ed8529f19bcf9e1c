"""An id that no answer can carry is refused before anything runs, and spoils nothing beside it."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.transports.conftest import Web, opened_web
from tests.transports.lines import Line, known, written
from tests.transports.mcp_requests import ERAS, Request, message_of, tool_call
from tests.transports.peers import call, piped

from toolgate.transports.mcp import front, stdio

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("remembered")]

PARSE_ERROR, INVALID_REQUEST = -32700, -32600
NEW = {"collection": "apps", "data": {"name": "New"}}
TOO_LONG = ["18446744073709551616", "-9223372036854775809", "1" * 30, "1" * 300]
NO_JSON = ['"\\ud800"', '"\\ud800 1234567890123456789"', "1e400", "NaN", "1" * 400]
NO_IDS = ["true", "null", "1.5", "[]", "{}"]
GOOD = ["18446744073709551615", "-9223372036854775808", '"\\ud83d\\ude00"', '""', "0"]
PLACE = "the id stands here"


@pytest.fixture(scope="module")
async def web(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    async with opened_web(tmp_path_factory.mktemp("ids")) as opened:
        yield opened


@pytest.fixture(autouse=True)
async def unchanged(web: Web, request: pytest.FixtureRequest) -> AsyncIterator[None]:
    """Nothing is written, unless the test says that it may be."""
    before = await apps(web)
    yield
    if "good" not in request.node.name:
        assert await apps(web) == before


async def apps(web: Web) -> int:
    async with web.client() as client:
        found = await client.post("/v1/tools/query_collection", json={"collection": "apps"})
    return found.json()["count"]


def worded(message: Any, id: str) -> bytes:
    return json.dumps(message).replace(json.dumps(PLACE), id).encode()


def code_of(id: str) -> int:
    return PARSE_ERROR if id in NO_JSON else INVALID_REQUEST


def create(id: Any = PLACE) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": "create_document", "params": NEW}


@pytest.mark.parametrize("id", [*TOO_LONG, *NO_JSON])
async def test_over_json_rpc(web: Web, id: str) -> None:
    async with web.client() as client:
        answer = await client.post("/rpc", content=worded(create(), id))
    assert answer.status_code == 200
    told = answer.json()
    assert (told["id"], told["error"]["code"]) == (None, code_of(id))


@pytest.mark.parametrize("id", TOO_LONG)
async def test_the_rest_of_a_batch_is_answered(web: Web, id: str) -> None:
    read = {"jsonrpc": "2.0", "method": "list_collections"}
    batch = [{**read, "id": 1}, create(), {**read, "id": 3}]
    async with web.client() as client:
        answer = await client.post("/rpc", content=worded(batch, id))
    told = answer.json()
    assert [one["id"] for one in told] == [1, None, 3]
    assert ["result" in one for one in told] == [True, False, True]
    assert told[1]["error"]["code"] == INVALID_REQUEST


@pytest.mark.parametrize("id", NO_JSON)
async def test_a_batch_that_is_no_json_is_refused_as_a_whole(web: Web, id: str) -> None:
    async with web.client() as client:
        answer = await client.post("/rpc", content=worded([create(1), create()], id))
    told = answer.json()
    assert (told["id"], told["error"]["code"]) == (None, PARSE_ERROR)


@pytest.mark.parametrize("id", [*TOO_LONG, *NO_JSON, *NO_IDS])
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("way", ["short", "sdk"])
async def test_over_mcp(
    web: Web, monkeypatch: pytest.MonkeyPatch, way: str, era: str, id: str
) -> None:
    if way == "sdk":
        monkeypatch.setattr(front, "_plain", lambda *_: None)
    wanted = tool_call(era, "create_document", NEW).saying(id=PLACE)
    async with web.client() as client:
        answer = await Request(worded(wanted.body, id), wanted.headers).send(client)
    assert answer.status_code == 400
    told = answer.json()
    assert (told["id"], told["error"]["code"]) == (None, code_of(id))
    (row,) = await web.audit_rows(answer.headers["x-request-id"])
    assert row["rule"] == "unreadable"


@pytest.mark.parametrize("id", [TOO_LONG[0], NO_JSON[1], NO_IDS[1]])
@pytest.mark.parametrize("era", ERAS)
async def test_on_a_known_head(web: Web, era: str, id: str) -> None:
    line = Line(web)
    await known(line, written(web, tool_call(era, "create_document", {})))
    wanted = tool_call(era, "create_document", NEW).saying(id=PLACE)
    answer = await line.ask(written(web, Request(worded(wanted.body, id), wanted.headers)))
    told = json.loads(answer.body)
    assert (answer.status, told["id"], told["error"]["code"]) == (400, None, code_of(id))


@pytest.mark.parametrize("id", [*TOO_LONG, *NO_JSON, *NO_IDS])
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("way", ["short", "sdk"])
async def test_on_standard_input(
    web: Web, monkeypatch: pytest.MonkeyPatch, way: str, era: str, id: str
) -> None:
    if way == "sdk":
        monkeypatch.setattr(stdio, "plain_request", lambda *_: None)
    async with piped(web.kit.app.gate) as peer:
        await peer.open(era)
        await peer.write(worded(call("create_document", NEW, id=PLACE, era=era), id) + b"\n")
        told = await peer.answer()
        assert (told["id"], told["error"]["code"]) == (None, code_of(id))
        assert "result" in await peer.ask(call("list_collections", {}, era=era))


@pytest.mark.parametrize("id", GOOD)
@pytest.mark.parametrize("era", ERAS)
async def test_a_good_id_comes_back_as_it_was(web: Web, era: str, id: str) -> None:
    expected = json.loads(id)
    wanted = tool_call(era, "create_document", NEW).saying(id=PLACE)
    async with web.client() as client:
        answer = await Request(worded(wanted.body, id), wanted.headers).send(client)
        assert message_of(answer)["id"] == expected
        plain = await client.post("/rpc", content=worded(create(), id))
        assert plain.json()["id"] == expected
    async with piped(web.kit.app.gate) as peer:
        await peer.open(era)
        await peer.write(worded(call("create_document", NEW, id=PLACE, era=era), id) + b"\n")
        assert (await peer.answer())["id"] == expected

"""`send_notification` through the gate and over the wire."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.packs.backend.fcm_server import UNREGISTERED, FcmServer, error, fcm_server
from tests.packs.backend.test_push_delivery import subscribe, tokens_left
from tests.servers import Server

from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

HELLO = {"title": "Hello", "body": "World"}
REQUIRED = "Parameters <title> and <body> required"


@pytest.fixture
def fcm() -> Iterator[FcmServer]:
    with fcm_server() as running:
        yield running


@pytest.fixture
async def kit(tmp_path: Path, database_url: str, fcm: FcmServer) -> AsyncIterator[Kit]:
    settings = {"database__url": database_url, "packs__enabled": ["backend"], **fcm.settings()}
    async with opened_kit(tmp_path, **settings) as opened:
        yield opened


async def test_it_is_sent_and_told(kit: Kit, fcm: FcmServer) -> None:
    await subscribe(kit, ["a", "b"], tags=["news"])
    await subscribe(kit, ["old"])
    fcm.of_token = {"old": UNREGISTERED}
    link = "https://x.io/page?a=1#there"
    done = await kit.call("send_notification", notification={**HELLO, "click_action": link})
    assert done.body == {"subscribers": 3, "batches": 1, "sent": 2, "deleted": 1}
    assert await tokens_left(kit) == ["a", "b"]
    opened = fcm.messages[0]["data"]["click_action"]
    start, _, end = opened.partition("cb=")
    assert (start, end.partition("#")[2]) == ("https://x.io/page?a=1&", "there")
    assert end.partition("#")[0].isdigit()
    tagged = await kit.call(
        "send_notification", notification=HELLO, filters={"tags": ["news"], "limit": 1}
    )
    assert tagged.body == {"subscribers": 1, "batches": 1, "sent": 1, "deleted": 0}


async def test_nobody_to_send_to_is_no_failure(kit: Kit, fcm: FcmServer) -> None:
    done = await kit.call("send_notification", notification=HELLO)
    assert done.body == {"subscribers": 0, "batches": 0, "sent": 0, "deleted": 0}
    assert (fcm.requests, fcm.token_requests) == (0, 0)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, REQUIRED),
        ({"notification": {}}, REQUIRED),
        ({"notification": {"title": "T"}}, REQUIRED),
        ({"notification": {"body": "B"}}, REQUIRED),
        ({"notification": {"title": "T", "body": ""}}, REQUIRED),
        ({"notification": {"title": "T", "body": None}}, REQUIRED),
        ({"title": "T", "body": "B"}, f"{REQUIRED} inside of the object notification"),
    ],
)
async def test_title_and_body_are_required(
    kit: Kit, fcm: FcmServer, given: dict[str, Any], told: str
) -> None:
    outcome = await kit.send("send_notification", given)
    assert (outcome.status, outcome.text) == (400, told)
    assert outcome.body == {"error": told}
    assert fcm.requests == 0


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"notification": {**HELLO, "click_action": "javascript:alert(1)"}}, "click_action"),
        ({"notification": {**HELLO, "sound": "x"}}, "sound"),
        ({"notification": {"title": "T", "body": "x" * 3600}}, "over the limit of 3500"),
        ({"notification": {"title": 5, "body": "B"}}, "title"),
        ({"filters": {"tags": []}}, "tags"),
        ({"filters": {"tags": "news"}}, "tags"),
        ({"filters": {"limit": 0}}, "limit"),
        ({"filters": {"owners": "x"}}, "owners"),
    ],
)
async def test_what_cannot_be_is_refused_and_nothing_sent(
    kit: Kit, fcm: FcmServer, more: dict[str, Any], told: str
) -> None:
    await subscribe(kit, ["a"])
    outcome = await kit.send("send_notification", {"notification": HELLO, **more})
    assert outcome.status == 400
    assert told in outcome.text
    assert fcm.requests == 0


async def test_a_dry_run_reaches_nobody(kit: Kit, fcm: FcmServer) -> None:
    await subscribe(kit, ["a"])
    await kit.send("send_notification", {"notification": HELLO}, dry_run=True)
    assert (fcm.requests, fcm.token_requests) == (0, 0)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (error(401, "UNAUTHENTICATED"), "refuses the service account"),
        (error(500, "INTERNAL"), "took none of 1 messages: INTERNAL. Try again later."),
        (error(429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED"), "QUOTA_EXCEEDED"),
    ],
)
async def test_a_service_that_fails_is_told_in_a_sentence(
    kit: Kit, fcm: FcmServer, answer: Any, told: str
) -> None:
    await subscribe(kit, ["a"])
    fcm.of_all = answer
    outcome = await kit.call("send_notification", notification=HELLO)
    assert outcome.status == 503
    assert told in outcome.text
    assert "ya29" not in outcome.text
    assert await tokens_left(kit) == ["a"]


def test_over_the_wire_every_way_says_the_same(server: Server) -> None:
    """With the outbox; the route, `/v1/tools` and MCP."""
    with server.client() as admin:
        token = "of-the-wire"
        body = {"notification": HELLO, "filters": {"token": token}}
        wanted = {"subscribers": 1, "batches": 1, "sent": 1, "deleted": 0}
        assert admin.post("/backend-manager/admin/notification", json=body).json() == wanted
        assert admin.post("/v1/tools/send_notification", json=body).json() == wanted
        refused = admin.post("/backend-manager/admin/notification", json={"notification": {}})
        assert (refused.status_code, refused.json()) == (400, {"error": REQUIRED})
        call = {"name": "send_notification", "arguments": body}
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        headers = {"accept": "application/json, text/event-stream"}
        over_mcp = admin.post("/mcp", json=request, headers=headers)
        assert over_mcp.status_code == 200
        assert '"sent":1' in over_mcp.text.replace(" ", "").replace("\\", "")
        listed = admin.post("/v1/tools/operator.notification.list", json={"limit": 1}).json()
        assert listed["notifications"][0]["tokens"] == [token]
    with server.client("user") as user:
        assert user.post("/v1/tools/send_notification", json=body).status_code == 404

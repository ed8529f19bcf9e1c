"""SendGrid's API v3, against a server that speaks it: shapes, times, refusals, unknown."""

import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

KEY = "SG.a-secret-key"


class SendGrid(ThreadingHTTPServer):
    """What it got, and what it answers."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bodies: list[dict[str, Any]] = []
        self.answer: tuple[int, str] = (202, "")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: SendGrid

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        status, text = self.server.answer
        if self.headers["authorization"] != f"Bearer {KEY}" or self.path != "/v3/mail/send":
            status, text = 401, '{"errors":[{"message":"The authorization grant is invalid"}]}'
        elif status == 202:
            self.server.bodies.append(body)
        self.send_response(status)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def sendgrid() -> Iterator[SendGrid]:
    with SendGrid() as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.02])
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@asynccontextmanager
async def opened(folder: Path, server: SendGrid, key: str | None = KEY) -> AsyncIterator[Kit]:
    more: dict[str, Any] = {"mail__sendgrid_key": key} if key else {}
    async with opened_kit(
        folder,
        packs__enabled=["backend"],
        mail__url="sendgrid:",
        mail__sendgrid_url=server.url,
        mail__groups={"orders": 77},
        mail__domain="acme.example",
        **more,
    ) as kit:
        yield kit


async def test_a_mail_has_the_shape_of_the_api(tmp_path: Path, sendgrid: SendGrid) -> None:
    at = datetime.now(UTC) + timedelta(hours=5)
    async with opened(tmp_path, sendgrid) as kit:
        outcome = await kit.call(
            "send_email",
            to=["a@x.example", {"email": "b@x.example", "name": "Bea"}],
            bcc="c@x.example",
            subject="Hi",
            sender="orders",
            categories=["order"],
            sendAt=at.isoformat(),
        )
    assert (outcome.status, outcome.body["status"]) == (200, "sent")
    (body,) = sendgrid.bodies
    assert body["personalizations"] == [
        {
            "to": [{"email": "a@x.example"}, {"email": "b@x.example", "name": "Bea"}],
            "bcc": [{"email": "c@x.example"}],
        }
    ]
    assert body["from"]["email"] == "orders@acme.example"
    assert (body["subject"], body["categories"], body["asm"]) == ("Hi", ["order"], {"group_id": 77})
    assert body["send_at"] == int(at.timestamp())
    assert [one["type"] for one in body["content"]] == ["text/plain", "text/html"]


async def test_72_hours_ahead_is_held_here(tmp_path: Path, sendgrid: SendGrid) -> None:
    at = datetime.now(UTC) + timedelta(hours=72)
    async with opened(tmp_path, sendgrid) as kit:
        outcome = await kit.call("send_email", to="a@x.example", subject="x", sendAt=str(at))
    assert (outcome.body["status"], sendgrid.bodies) == ("queued", [])


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        ((500, ""), 503, "500"),
        ((429, '{"errors":[{"message":"too many"}]}'), 503, "429 too many"),
        ((400, '{"errors":[{"message":"bad from"}]}'), 400, "400 bad from"),
        ((502, "<html>"), 504, "is not known"),
    ],
)
async def test_what_it_refuses_is_an_error_and_not_sent(
    tmp_path: Path, sendgrid: SendGrid, answer: tuple[int, str], status: int, words: str
) -> None:
    sendgrid.answer = answer
    async with opened(tmp_path, sendgrid) as kit:
        outcome = await kit.call("send_email", to="a@x.example", subject="x")
    assert outcome.status == status
    assert words in outcome.text
    assert KEY not in outcome.text


async def test_without_a_key_it_is_500(tmp_path: Path, sendgrid: SendGrid) -> None:
    async with opened(tmp_path, sendgrid, None) as kit:
        outcome = await kit.call("send_email", to="a@x.example", subject="x")
    assert (outcome.status, "SENDGRID_API_KEY" in outcome.text) == (500, True)

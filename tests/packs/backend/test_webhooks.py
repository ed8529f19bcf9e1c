"""Webhooks of run_hook: noted before they are sent, repeated under one id, never silently twice."""

import hashlib
import hmac
import http.client
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.faults.server import served, until
from tests.patience import PATIENT

from toolgate.gate.live_switches import switch
from toolgate.testing import Kit, opened_kit
from toolgate.workflows.declarations import RunStatus, utc_now

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

SECRET = "a secret of the operator"


@dataclass
class Inbox:
    """A real server that counts; it answers with the statuses it is told to, then with 200."""

    port: int = 0
    requests: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    bodies: list[bytes] = field(default_factory=list[bytes])
    statuses: list[int] = field(default_factory=list[int])
    took: Callable[[], None] = lambda: None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def ids(self) -> set[str]:
        return {one["X-Toolgate-Id"] for one in self.requests}


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    inbox = Inbox()

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            inbox.requests.append(dict(self.headers))
            inbox.bodies.append(body)
            inbox.took()
            self.send_response(inbox.statuses.pop(0) if inbox.statuses else 200)
            self.end_headers()
            self.wfile.write(json.dumps({"number": len(inbox.requests)}).encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        inbox.port = server.server_port
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield inbox
        server.shutdown()


def hooks_file(folder: Path, inbox: Inbox) -> Path:
    file = folder / "hooks.toml"
    file.write_text(f'told = {{url = "http://{inbox.address}/", secret = "{SECRET}"}}\n')
    return file


def settings(tmp_path: Path, database_url: str | None, inbox: Inbox) -> dict[str, Any]:
    return {
        "packs__enabled": ["backend"],
        "database__url": database_url,
        "backend__hooks": hooks_file(tmp_path, inbox),
        "outbound__allow": [inbox.address],
    }


async def the_run(kit: Kit, *, hours: int = 0) -> Any:
    """The one run, once it has ended; it is let go on as if it were so many hours later."""
    workflows = kit.app.site_of("backend").workflows
    (found,) = await workflows.list("call-webhook")
    workflows.runs.clock = lambda: utc_now() + timedelta(hours=hours)
    workflows.runs.wake.set()
    return await workflows.wait(found.id)


async def test_it_is_noted_before_it_is_sent_and_signed(
    tmp_path: Path, database_url: str, inbox: Inbox
) -> None:
    async with opened_kit(tmp_path, **settings(tmp_path, database_url, inbox)) as kit:
        assert (await kit.call("run_hook", path="told")).body == {"number": 1}
        run = await the_run(kit)
        call = next(one for one in await kit.audit_rows() if one["tool_name"] == "run_hook")
    assert (run.result, run.call) == ({"answer": {"number": 1}, "attempts": 1}, call["id"])
    (headers,), (body,) = inbox.requests, inbox.bodies
    assert headers["X-Toolgate-Id"] == headers["Idempotency-Key"] == json.loads(body)["id"]
    assert headers["X-Toolgate-Attempt"] == "1"
    signed = headers["X-Toolgate-Timestamp"].encode() + b"." + body
    wanted = hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
    assert headers["X-Toolgate-Signature"] == f"sha256={wanted}"


@pytest.mark.parametrize("status", [500, 503, 429, 408])
async def test_what_may_come_later_is_tried_again_under_the_same_id(
    tmp_path: Path, database_url: str, inbox: Inbox, status: int
) -> None:
    inbox.statuses = [status]
    async with opened_kit(tmp_path, **settings(tmp_path, database_url, inbox)) as kit:
        told = await kit.call("run_hook", path="told")
        assert told.status == 503
        assert f"answered with status {status}" in told.body["error"]
        assert "do not call again" in told.body["error"]
        run = await the_run(kit, hours=1)
    assert run.result == {"answer": {"number": 2}, "attempts": 2}
    assert (len(inbox.requests), len(inbox.ids)) == (2, 1)
    assert [one["X-Toolgate-Attempt"] for one in inbox.requests] == ["1", "2"]


@pytest.mark.parametrize("status", [302, 400, 401, 404, 410])
async def test_what_is_refused_for_good_is_not_tried_again(
    tmp_path: Path, inbox: Inbox, status: int
) -> None:
    inbox.statuses = [status]
    async with opened_kit(tmp_path, **settings(tmp_path, None, inbox)) as kit:
        told = await kit.call("run_hook", path="told")
        run = await the_run(kit)
    assert told.status == 502
    assert f"answered with status {status}. It is not tried again" in told.body["error"]
    assert (run.status, len(inbox.requests)) == (RunStatus.FAILED, 1)


async def test_an_address_that_the_rule_refuses_fails_at_once(tmp_path: Path, inbox: Inbox) -> None:
    private = settings(tmp_path, None, inbox)
    private["outbound__allow"] = []
    hook = f'told = {{url = "https://127.0.0.1/", secret = "{SECRET}"}}\n'
    for wanted in ("The address must begin with https://.", "127.0.0.1 has no public address."):
        async with opened_kit(tmp_path / wanted[:3], **private) as kit:
            told = await kit.call("run_hook", path="told")
            run = await the_run(kit)
        assert (told.status, run.status) == (502, RunStatus.FAILED)
        step = "List its HOST:PORT in the setting outbound.allow. It is not tried again"
        assert f"The hook told may not be called. {wanted} {step}" in told.body["error"]
        (tmp_path / "hooks.toml").write_text(hook)
    assert inbox.requests == []


async def test_a_server_that_is_away_is_tried_again_and_the_words_agree(
    tmp_path: Path, inbox: Inbox
) -> None:
    inbox.port = 1  # nobody listens there
    async with opened_kit(tmp_path, **settings(tmp_path, None, inbox)) as kit:
        told = await kit.call("run_hook", path="told")
    assert told.status == 503
    assert "or its answer is of no use. It goes on by itself" in told.body["error"]
    assert "Try again" not in told.body["error"]


async def test_one_that_never_answers_well_ends_as_failed(tmp_path: Path, inbox: Inbox) -> None:
    inbox.statuses = [500] * 9
    async with opened_kit(tmp_path, **settings(tmp_path, None, inbox)) as kit:
        await kit.call("run_hook", path="told")
        for hours in range(1, 4):
            workflows = kit.app.site_of("backend").workflows
            (found,) = await workflows.list("call-webhook")
            workflows.runs.clock = lambda hours=hours: utc_now() + timedelta(hours=hours)
            workflows.runs.wake.set()
            await workflows.wait(found.id, attempts=hours + 1)
        run = await the_run(kit, hours=9)
    assert (run.status, len(inbox.requests), len(inbox.ids)) == (RunStatus.FAILED, 5, 1)
    assert run.error == "The hook told answered with status 500."


def test_a_kill_between_the_receivers_yes_and_our_record_repeats_it_under_the_same_id(
    tmp_path: Path, database_url: str, inbox: Inbox
) -> None:
    given = {
        "packs__enabled": "backend",
        "database__url": database_url,
        "backend__hooks": str(hooks_file(tmp_path, inbox)),
        "outbound__allow": inbox.address,
        "workflows__lease_seconds": "1",
    }
    data = tmp_path / "data"
    with served(data, **given) as running:
        inbox.took = running.kill
        with pytest.raises((http.client.HTTPException, OSError)):
            running.call("run_hook", path="told")
    inbox.took = lambda: None
    assert len(inbox.requests) == 1
    with served(data, **given):
        until(lambda: len(inbox.requests) > 1, PATIENT)
    assert len(inbox.ids) == 1
    assert [one["X-Toolgate-Attempt"] for one in inbox.requests] == ["1", "2"]


async def test_it_is_not_tried_again_while_run_hook_is_switched_off(
    tmp_path: Path, database_url: str, inbox: Inbox
) -> None:
    inbox.statuses = [500]
    async with opened_kit(tmp_path, **settings(tmp_path, database_url, inbox)) as kit:
        await kit.call("run_hook", path="told")
        gate = kit.app.gate
        await gate.database.write(lambda c: switch(c, "run_hook", off=True))
        await gate.switches.read_if_changed()
        run = await the_run(kit, hours=1)
        assert run.status is RunStatus.QUEUED
        assert "run_hook is switched off" in run.error
        await gate.database.write(lambda c: switch(c, "run_hook", off=False))
        await gate.switches.read_if_changed()
        assert (await the_run(kit, hours=1)).status is RunStatus.SUCCEEDED
    assert len(inbox.requests) == 2


async def test_a_server_that_only_reads_makes_no_attempt(
    tmp_path: Path, database_url: str, inbox: Inbox
) -> None:
    inbox.statuses = [500]
    given = settings(tmp_path, database_url, inbox)
    async with opened_kit(tmp_path, **given) as kit:
        await kit.call("run_hook", path="told")
    async with opened_kit(tmp_path, **given, policy__read_only=True) as kit:
        run = await the_run(kit, hours=1)
        assert (run.status, run.attempts) == (RunStatus.QUEUED, 1)
        assert "read-only" in run.error
    assert len(inbox.requests) == 1
    async with opened_kit(tmp_path, **given) as kit:
        assert (await the_run(kit, hours=1)).status is RunStatus.SUCCEEDED

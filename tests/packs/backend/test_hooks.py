"""run_hook: functions and signed webhooks that an operator registered, and nothing else."""

import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest

from toolgate.gate.live_switches import switch
from toolgate.setting_types import BadSettings
from toolgate.testing import opened_kit

pytestmark = pytest.mark.anyio

SECRET = "0123456789abcdef"
FUNCTIONS = """
import anyio

async def number(ctx):
    return {"user": (await ctx.documents.get("users", "anna") or {}).get("name"), "call": ctx.call}

async def nothing(ctx):
    pass

async def listed(ctx):
    return [1, 2]

async def fails(ctx):
    raise RuntimeError("secret-detail")

async def sleeps(ctx):
    await anyio.sleep(3600)
"""
HOOKS = """
number = {function = "functions.py:number"}
nothing = {function = "functions.py:nothing"}
"daily/listed" = {function = "functions.py:listed"}
fails = {function = "functions.py:fails"}
sleeps = {function = "functions.py:sleeps", seconds = 0.05}
"""


class Receiver(BaseHTTPRequestHandler):
    """A receiver as the how-to describes it: it checks the signature and refuses a replay."""

    seen: set[str]
    requests: list[dict[str, str]]
    bodies: list[bytes]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        second = self.headers["X-Toolgate-Timestamp"]
        wanted = hmac.new(SECRET.encode(), second.encode() + b"." + body, hashlib.sha256)
        good = hmac.compare_digest(
            f"sha256={wanted.hexdigest()}", self.headers["X-Toolgate-Signature"]
        )
        id = json.loads(body)["id"]
        fresh = id not in self.seen and id == self.headers["X-Toolgate-Id"]
        self.seen.add(id)
        self.requests.append(dict(self.headers))
        self.bodies.append(body)
        self.send_response(200 if good and fresh else 401)
        self.end_headers()
        self.wfile.write(json.dumps({"received": id}).encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@pytest.fixture
def receiver() -> Iterator[int]:
    Receiver.seen, Receiver.requests, Receiver.bodies = set(), [], []
    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def hooks_file(folder: Path, text: str = HOOKS) -> Path:
    (folder / "functions.py").write_text(FUNCTIONS)
    (folder / "hooks.toml").write_text(text)
    return folder / "hooks.toml"


async def test_a_function_answers_json_or_success(tmp_path: Path) -> None:
    async with opened_kit(tmp_path, backend__hooks=hooks_file(tmp_path)) as kit:
        await kit.call("firestore_write", path="users/anna", document={"name": "Anna"})
        found = (await kit.call("run_hook", path="number")).body
        assert (found["user"], len(found["call"]) > 10) == ("Anna", True)
        assert (await kit.call("run_hook", path="nothing")).body == {"success": True}
        assert (await kit.call("run_hook", path="daily/listed")).body == {"result": [1, 2]}


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "/etc/passwd",
        "os.system",
        "functions.py:number",
        "cron/../x",
        "cron/",
        "cron/" + 150 * "a",
        "no",
    ],
)
async def test_what_is_not_registered_is_not_found(tmp_path: Path, path: str) -> None:
    async with opened_kit(tmp_path, backend__hooks=hooks_file(tmp_path)) as kit:
        outcome = await kit.call("run_hook", path=path)
        assert (outcome.status, outcome.body) == (404, {"error": f"Hook not found: {path}"})


async def test_who_may_not_call_run_cron_may_not_start_it_through_a_hook(tmp_path: Path) -> None:
    async with opened_kit(tmp_path, policy__disabled=["run_cron"]) as kit:
        outcome = await kit.call("run_hook", path="cron/reset-usage")
        assert (outcome.status, outcome.body["error"]) == (404, "Hook not found: cron/reset-usage")
        assert not await kit.app.site_of("backend").workflows.list()


async def test_a_live_switch_of_run_cron_holds_for_hooks(tmp_path: Path) -> None:
    async with opened_kit(tmp_path) as kit:
        database = kit.app.gate.database
        for off in (True, False):
            await database.write(lambda c, off=off: switch(c, "run_cron", off=off))
            await kit.app.gate.switches.read()
            outcome = await kit.call("run_hook", path="cron/reset-usage")
            assert outcome.status == (403 if off else 200), outcome.body
            if off:
                assert "run_cron" in outcome.body["error"]
                assert not await kit.app.site_of("backend").workflows.list()


async def test_a_rule_about_run_cron_holds_for_hooks(tmp_path: Path) -> None:
    (tmp_path / "rules.cedar").write_text(
        '@id("no-cron")\n@says("No cron by hand.")\n'
        'forbid (principal, action == Action::"call", resource) '
        'when { resource.name == "run_cron" };\n'
    )
    async with opened_kit(tmp_path, policy__folder=tmp_path) as kit:
        outcome = await kit.call("run_hook", path="cron/daily")
        assert (outcome.status, outcome.body["error"]) == (403, "No cron by hand.")
        assert (await kit.audit_rows())[-1]["rule"] == "no-cron"
        assert not await kit.app.site_of("backend").workflows.list()


async def test_a_hook_that_fails_is_masked_and_one_that_sleeps_is_stopped(tmp_path: Path) -> None:
    async with opened_kit(tmp_path, backend__hooks=hooks_file(tmp_path)) as kit:
        failed = await kit.call("run_hook", path="fails")
        assert failed.status == 502
        assert "secret-detail" not in failed.text
        slept = await kit.call("run_hook", path="sleeps")
        assert (slept.status, "took longer than 0.05 s" in slept.text) == (504, True)


async def test_a_webhook_is_signed_and_a_replay_is_refused(tmp_path: Path, receiver: int) -> None:
    address = f"127.0.0.1:{receiver}"
    file = hooks_file(tmp_path, f'told = {{url = "http://{address}/", secret = "{SECRET}"}}\n')
    async with opened_kit(tmp_path, backend__hooks=file, outbound__allow=[address]) as kit:
        outcome = await kit.call("run_hook", path="told")
        assert outcome.status == 200, outcome.body
        assert outcome.body["received"] == Receiver.requests[0]["X-Toolgate-Id"]
        assert len(Receiver.requests) == 1
        again = httpx2.post(
            f"http://{address}/",
            content=Receiver.bodies[0],
            headers={k: v for k, v in Receiver.requests[0].items() if k.startswith("X-")},
            trust_env=False,
        )
        assert again.status_code == 401


async def test_a_webhook_to_a_private_address_is_refused(tmp_path: Path, receiver: int) -> None:
    url = f"http://127.0.0.1:{receiver}/"
    file = hooks_file(tmp_path, f'told = {{url = "{url}", secret = "{SECRET}"}}\n')
    async with opened_kit(tmp_path, backend__hooks=file) as kit:
        outcome = await kit.call("run_hook", path="told")
        assert outcome.status == 502
        assert "outbound.allow" in outcome.body["error"]
        assert Receiver.requests == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a = 5", "hook 'a'"),
        ('a = {url = "https://a.example/"}', "a url needs a secret"),
        ('a = {function = "../x.py:f"}', "hook 'a'"),
        ('a = {function = "functions.py:absent"}', "has no `async def absent"),
        ('"../a" = {function = "functions.py:number"}', "in its name"),
        ("a = [", "cannot be read"),
        (
            'a = {functon = "functions.py:number"}',
            "'functon' is not known here. Did you mean function? Valid options: function, url, ",
        ),
    ],
)
async def test_a_file_with_mistakes_is_told_at_the_start(
    tmp_path: Path, text: str, told: str
) -> None:
    with pytest.raises(BadSettings, match=r"backend\.hooks") as raised:
        async with opened_kit(tmp_path, backend__hooks=hooks_file(tmp_path, text)):
            pass
    assert told in str(raised.value)

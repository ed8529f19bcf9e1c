"""`sync_users`: every account once, what is there stays, and a kill in the middle costs nothing."""

import asyncio
import http.client
import json
import secrets
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from sqlalchemy import func, select
from tests.faults.server import served
from tests.patience import PATIENT
from tests.private_keys import new_rsa_key
from tests.servers import ROOT, Server, pause, stop, wait_until_ready
from tests.statements import noted_statements

from toolgate.db.tables import changes
from toolgate.gate.calls import Call
from toolgate.gate.principal import AgentType, Role
from toolgate.packs.backend.directory.here import DirectoryHere
from toolgate.packs.backend.directory.port import AccountPage
from toolgate.ports.documents import Create, Merge, Query
from toolgate.ports.users import new_record
from toolgate.testing import Kit, opened_kit
from toolgate.testing.kit import ADMIN

pytestmark = pytest.mark.anyio


@pytest.fixture
async def kit(tmp_path: Path, database_url: str) -> AsyncIterator[Kit]:
    settings: dict[str, Any] = {"database__url": database_url, "packs__enabled": ["backend"]}
    async with opened_kit(tmp_path, **settings) as opened:
        yield opened


async def store(kit: Kit, records: dict[str, dict[str, Any]]) -> None:
    documents = kit.app.documents.of("backend")
    async with kit.app.gate.database.transaction() as tx:
        await documents.write(tx, *(Create("users", uid, one) for uid, one in records.items()))


async def records(kit: Kit) -> dict[str, dict[str, Any]]:
    found = await kit.app.documents.of("backend").query(Query("users"))
    return {one.id: one.fields for one in found}


async def test_everyone_here_gets_a_whole_record_and_keeps_what_is_there(kit: Kit) -> None:
    odd = {"roles": ["admin"], "personal": {"name": "Anna"}, "api": {"clientId": "mine"}}
    await store(kit, {f"u{one:03}": {"team": one, **odd} for one in range(150)})
    await store(kit, {"null": {"flags": None, "email": "top@example.com", "subscription": {}}})
    for uid in ("holder", "u001", "ünï"):
        await kit.app.keys.create(role=Role.USER, user_id=uid)
    await kit.app.keys.create(agent_type=AgentType.WORKER, user_id="agents-user")
    await kit.app.keys.create(role=Role.USER, user_id="a/b")
    assert (await kit.call("sync_users")).body == {"processed": 153}
    after = await records(kit)
    assert len(after) == 153
    assert "agents-user" not in after
    assert set(after["holder"]) == set(new_record(""))
    assert after["holder"]["auth"]["uid"] == "holder"
    assert after["ünï"]["api"]["clientId"]
    for one in range(150):
        record = after[f"u{one:03}"]
        assert (record["team"], record["roles"]) == (one, ["admin"])
        assert record["personal"]["name"] == "Anna"
        assert record["personal"]["gender"] is None
        assert record["api"] == {"clientId": "mine"}
        assert record["consent"]["marketing"]["status"] is None
    assert after["null"]["flags"] is None
    assert after["null"]["subscription"]["product"] == {"id": "basic", "name": "Basic"}
    assert (await kit.call("sync_users")).body == {"processed": 153}
    assert await records(kit) == after, "the second run changes nothing"
    stats = await kit.app.documents.of("backend").get("meta", "stats")
    assert (stats or {})["syncUsers"]["lastPageToken"] is None


async def test_a_page_is_a_few_statements_however_many_it_has(kit: Kit) -> None:
    async def statements(users: int) -> dict[str, int]:
        await store(kit, {f"{users}-{one:03}": {"team": one} for one in range(users)})
        with noted_statements() as noted:
            assert (await kit.call("sync_users")).status == 200
        tables = ("documents", "document_index", "changes")
        writes = [f"{word} {name} " for name in tables for word in ("INSERT INTO", "UPDATE")]
        return {words: sum(words in one for one in noted) for words in writes}

    await statements(0)  # the document that says how far it is has been made
    few, many = await statements(10), await statements(89)
    assert many == few
    assert (few["UPDATE documents "], few["INSERT INTO document_index "]) == (1, 1)
    assert few["INSERT INTO changes "] == 1


async def test_a_private_key_survives(kit: Kit) -> None:
    key = "pk_0123456789abcdef0123456789abcdef"
    await store(kit, {"anna": {"api": {"privateKey": key}}})
    await kit.call("sync_users")
    holder = await kit.app.credentials.holder(key)
    assert holder is not None
    assert holder.user_id == "anna"


async def test_it_goes_on_from_the_stored_token(kit: Kit) -> None:
    await store(kit, {f"u{one}": {} for one in range(5)})
    left = {"lastPageToken": "u2", "processed": 3}
    async with kit.app.gate.database.transaction() as tx:
        documents = kit.app.documents.of("backend")
        await documents.write(tx, Merge("meta", "stats", {"syncUsers": left, "users": 7}))
    assert (await kit.call("sync_users")).body == {"processed": 5}
    after = await records(kit)
    assert [uid for uid, one in after.items() if one] == ["u3", "u4"]
    assert (await documents.get("meta", "stats") or {})["users"] == 7
    assert (await kit.call("sync_users")).body == {"processed": 5}
    assert all((await records(kit)).values())


async def test_two_at_once_are_one_run_and_progress_comes_before_the_end(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store(kit, {f"u{one:03}": {} for one in range(350)})
    told: list[float] = []
    page, seen = DirectoryHere.page, asyncio.Event()

    async def report(done: float, total: float | None, message: str | None) -> None:
        told.append(done)
        seen.set()

    async def page_once_told(self: DirectoryHere, token: str | None) -> AccountPage:
        if token is not None:
            await asyncio.wait_for(seen.wait(), PATIENT)
        return await page(self, token)

    monkeypatch.setattr(DirectoryHere, "page", page_once_told)

    def call() -> Call:
        return Call(
            tool="sync_users", arguments={}, principal=ADMIN, request_id="r", transport="test",
            report=report,
        )  # fmt: skip

    first, second = await asyncio.gather(*(kit.app.gate.execute(call()) for _ in range(2)))
    assert first.body == second.body == {"processed": 350}
    runs = await kit.app.site_of("backend").workflows.list("sync-users")
    assert len(runs) == 1
    assert told[0] == 100


async def test_who_may(kit: Kit, server: Server) -> None:
    dry = await kit.call("sync_users", dry_run=True)
    assert dry.status == 403
    route = "/backend-manager/admin/users/sync"
    with server.client("user") as user:
        assert user.post(route).status_code == 404
    with server.client() as admin:
        answer = admin.post(route)
        assert answer.status_code == 200
        assert answer.json()["processed"] >= 8


COUNT = 1000


@contextmanager
def process(data: Path, key: str) -> Generator[tuple[subprocess.Popen[str], str]]:
    flags = {"data": str(data), "admin_key": key, "packs.enabled": ["backend"]}
    command = [sys.executable, "-m", "tests.server_process", json.dumps(flags)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        url = json.loads(started.stdout.readline())["url"]
        wait_until_ready(url, started)
        try:
            yield started, url
        finally:
            stop(started)


def processed(data: Path) -> int:
    with closing(sqlite3.connect(data / "toolgate.db", timeout=PATIENT)) as connection:
        select = "SELECT fields FROM documents WHERE collection = 'meta' AND id = 'stats'"
        row = connection.execute(select).fetchone()
    return json.loads(row[0])["syncUsers"]["processed"] if row else 0


async def test_a_kill_in_the_middle_costs_nothing(tmp_path: Path) -> None:
    async with opened_kit(tmp_path, packs__enabled=["backend"]) as kit:
        await store(kit, {f"u{one:04}": {"team": one} for one in range(COUNT)})
    key = secrets.token_hex(16)
    bearer = {"Authorization": f"Bearer {key}"}

    def call(url: str) -> httpx2.Response:
        path = f"{url}/backend-manager/admin/users/sync"
        return httpx2.post(path, headers=bearer, timeout=PATIENT, trust_env=False)

    def call_and_lose(url: str) -> None:
        with pytest.raises(httpx2.TransportError):
            call(url)

    with process(tmp_path, key) as (first, url):
        caller = threading.Thread(target=call_and_lose, args=(url,))
        caller.start()
        while processed(tmp_path) < COUNT // 3:
            pause()
        first.kill()
        caller.join(PATIENT)
    done = processed(tmp_path)
    assert 0 < done < COUNT, "killed too late to show anything"
    with process(tmp_path, key) as (_, url):
        answer = call(url)
    holders = 1  # of a key that the server of tests makes
    assert (answer.status_code, answer.json()) == (200, {"processed": COUNT + holders})
    with closing(sqlite3.connect(tmp_path / "toolgate.db")) as connection:
        every = "SELECT path, COUNT(*) FROM changes WHERE path LIKE 'users/u%' GROUP BY path"
        changes = dict(connection.execute(every).fetchall())
    assert set(changes.values()) == {2}, "made, and completed once"
    async with opened_kit(tmp_path, packs__enabled=["backend"]) as kit:
        after = await records(kit)
        teams = [one["team"] for one in after.values() if "team" in one]
        assert teams == list(range(COUNT))
        assert all(set(new_record("")) <= set(one) for one in after.values())


DYING = """
import os, signal
from toolgate.packs.backend.directory import here
page, asked = here.DirectoryHere.page, []
async def dying(self, token):
    asked.append(token)
    if len(asked) == {page}:
        os.kill(os.getpid(), signal.SIGKILL)
    return await page(self, token)
here.DirectoryHere.page = dying
"""


@pytest.mark.parametrize("page", [1, 4, 6])
def test_killed_at_a_page_it_goes_on_from_there(
    tmp_path: Path, database_url: str, page: int
) -> None:
    users = {f"u{one:03}": {"team": one} for one in range(500)}
    settings: dict[str, Any] = {"packs__enabled": ["backend"], "database__url": database_url}

    async def prepare() -> None:
        async with opened_kit(tmp_path, **settings) as kit:
            await store(kit, users)

    async def found() -> tuple[dict[str, Any], dict[str, int]]:
        changed = select(changes.c.path, func.count()).where(changes.c.path.like("users/u%"))
        async with opened_kit(tmp_path, **settings) as kit:
            counts = await kit.app.gate.database.read(
                lambda c: {row[0]: row[1] for row in c.execute(changed.group_by(changes.c.path))}
            )
            return await records(kit), counts

    asyncio.run(prepare())
    more = {"packs__enabled": '["backend"]', "workflows__lease_seconds": "1"}
    more |= {"database__url": database_url}
    with served(tmp_path, DYING.format(page=page), **more) as first:
        with pytest.raises((http.client.HTTPException, OSError)):
            first.call("sync_users")
        assert first.process.wait() == -9
    with served(tmp_path, **more) as second:
        answer = second.call("sync_users")
        assert (answer.status, answer.body) == (200, {"processed": 500}), answer.text
    after, counts = asyncio.run(found())
    assert [after[uid]["team"] for uid in users] == list(range(500))
    assert all(set(new_record("")) <= set(after[uid]) for uid in users)
    assert set(counts.values()) == {2}, "made, and completed once"


class IdentityToolkit(BaseHTTPRequestHandler):
    """Firebase Auth's list of accounts, and the token endpoint of service accounts."""

    accounts: list[dict[str, Any]]
    status = 200
    seen: list[str]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.answer(200, {"access_token": "tok", "expires_in": 3600, "token_type": "Bearer"})

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        asked = {name: value[0] for name, value in parse_qs(url.query).items()}
        self.seen.append(f"{url.path} {self.headers['authorization']}")
        start, size = int(asked.get("nextPageToken", "0")), int(asked["maxResults"])
        some = self.accounts[start : start + size]
        more = {"nextPageToken": str(start + size)} if some else {}
        body = {"kind": "identitytoolkit#DownloadAccountResponse"}
        self.answer(self.status, body | ({"users": some} if some else {}) | more)

    def answer(self, status: int, body: dict[str, Any]) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def toolkit() -> Iterator[tuple[type[IdentityToolkit], str]]:
    provider = [{"providerId": "password"}]
    accounts: list[dict[str, Any]] = [
        {"localId": f"f{one:03}", "email": f"f{one}@example.com", "displayName": "Fay Fire",
         "providerUserInfo": provider, "createdAt": "1736937000000"}
        for one in range(230)
    ]  # fmt: skip
    accounts.insert(120, {"localId": "anonymous", "createdAt": "1736937000000"})
    handler = type("Handler", (IdentityToolkit,), {"accounts": accounts, "seen": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield handler, f"http://127.0.0.1:{listening.server_port}"
        listening.shutdown()


async def test_firebase_auth_by_setting(
    tmp_path: Path, toolkit: tuple[type[IdentityToolkit], str]
) -> None:
    handler, url = toolkit
    account = {
        "type": "service_account",
        "client_email": "toolgate@example.iam.gserviceaccount.com",
        "private_key": new_rsa_key(),
        "token_uri": f"{url}/token",
    }
    settings: dict[str, Any] = {
        "packs__enabled": ["backend"],
        "backend__directory": "firebase://demo-app",
        "backend__directory_url": url,
        "google__service_account": json.dumps(account),
        "documents__url": "database:",
    }
    async with opened_kit(tmp_path, **settings) as kit:
        await store(kit, {"f007": {"team": "bond"}, "only-here": {}})
        assert (await kit.call("sync_users")).body == {"processed": 230}
        after = await records(kit)
        assert "anonymous" not in after
        assert after["only-here"] == {}
        assert after["f007"]["team"] == "bond"
        assert after["f007"]["auth"]["email"] == "f7@example.com"
        assert after["f007"]["personal"]["name"] == {"first": "Fay", "last": "Fire"}
        assert after["f007"]["metadata"]["created"]["timestampUNIX"] == 1736937000
        path = "/v1/projects/demo-app/accounts:batchGet"
        assert set(handler.seen) == {f"{path} Bearer tok"}
        for status, told in ((403, "refuses the service account"), (500, "does not answer")):
            handler.status = status
            outcome = await kit.call("sync_users")
            assert outcome.status == 503
            assert told in outcome.body["error"]

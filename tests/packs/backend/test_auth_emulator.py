"""`sync_users` with Firebase Auth as its own emulator speaks it.

npm install firebase-tools && firebase emulators:start --only auth --project demo-toolgate
FIREBASE_AUTH_EMULATOR_HOST=127.0.0.1:9099 pytest tests/packs/backend/test_auth_emulator.py
"""

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.private_keys import new_rsa_key

from toolgate.ports.documents import Create, Query
from toolgate.testing import opened_kit

HOST = os.environ.get("FIREBASE_AUTH_EMULATOR_HOST")
PROJECT = "demo-toolgate"
COUNT = 230
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(HOST is None, reason="FIREBASE_AUTH_EMULATOR_HOST names no emulator"),
]


class Tokens(BaseHTTPRequestHandler):
    """The token endpoint of service accounts, which the emulator has not."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        text = b'{"access_token": "owner", "expires_in": 3600, "token_type": "Bearer"}'
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def token_url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Tokens) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{listening.server_port}/token"
        listening.shutdown()


@pytest.fixture
def api() -> Iterator[httpx2.Client]:
    """The emulator's API, with no accounts."""
    base = f"http://{HOST}/identitytoolkit.googleapis.com/v1"
    with httpx2.Client(
        base_url=base, headers={"Authorization": "Bearer owner"}, trust_env=False, timeout=60
    ) as client:
        url = f"http://{HOST}/emulator/v1/projects/{PROJECT}/accounts"
        assert client.delete(url).status_code == 200
        yield client


def add_accounts(api: httpx2.Client) -> None:
    users = [
        {"localId": f"e{one:03}", "email": f"e{one}@example.com", "displayName": "Ed Emu"}
        for one in range(COUNT)
    ]
    created = api.post(f"/projects/{PROJECT}/accounts:batchCreate", json={"users": users})
    assert created.json().get("error", []) == [], created.text
    google = {"providerId": "google.com", "rawId": "g1"}
    more = [
        {"localId": "phone", "phoneNumber": "+491700000000"},
        {"localId": "google", "providerUserInfo": [google]},
        {"localId": "unnamed"},
    ]
    created = api.post(f"/projects/{PROJECT}/accounts:batchCreate", json={"users": more})
    assert created.json().get("error", []) == [], created.text


async def test_every_account_of_the_emulator_gets_a_record(
    tmp_path: Path, api: httpx2.Client, token_url: str
) -> None:
    add_accounts(api)
    account = {
        "type": "service_account",
        "client_email": "toolgate@example.iam.gserviceaccount.com",
        "private_key": new_rsa_key(),
        "token_uri": token_url,
    }
    async with opened_kit(
        tmp_path,
        packs__enabled=["backend"],
        backend__directory=f"firebase://{PROJECT}",
        backend__directory_url=f"http://{HOST}/identitytoolkit.googleapis.com",
        google__service_account=json.dumps(account),
        documents__url="database:",
    ) as kit:
        documents = kit.app.documents.of("backend")
        async with kit.app.gate.database.transaction() as tx:
            await documents.write(tx, Create("users", "e007", {"team": "bond"}))
        answer = await kit.call("sync_users")
        assert answer.body == {"processed": COUNT + 2}, answer.text
        records = {one.id: one.fields for one in await documents.query(Query("users"))}
        assert records.keys() == {*(f"e{one:03}" for one in range(COUNT)), "phone", "google"}
        assert records["e007"]["team"] == "bond"
        assert records["e007"]["auth"]["email"] == "e7@example.com"
        assert records["e007"]["personal"]["name"] == {"first": "Ed", "last": "Emu"}
        assert records["e007"]["metadata"]["created"]["timestampUNIX"] > 0
        before = records
        assert (await kit.call("sync_users")).body == {"processed": COUNT + 2}
        after = {one.id: one.fields for one in await documents.query(Query("users"))}
        assert after == before, "the second run changes nothing"

"""A server that speaks FCM HTTP v1 and Google's token endpoint, and fails where it is told to.

It gives a token only for a statement that the account's key signed, and takes messages only with
that token. Errors have the shape of Google's: a status, and FCM's own code among the details.
"""

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import parse_qs

from joserfc import jwt
from joserfc.jwk import RSAKey
from tests.asgi_server import served_in_thread
from tests.private_keys import new_rsa_key

PROJECT = "demo-push"
FCM_ERROR = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest"
private_key = cache(new_rsa_key)


def error(status: int, name: str, code: str | None = None, field: str | None = None) -> Any:
    """An answer as Google words it."""
    details: list[Any] = [{"@type": FCM_ERROR, "errorCode": code}] if code else []
    if field:
        details.append({"@type": BAD_REQUEST, "fieldViolations": [{"field": field}]})
    told = {"code": status, "message": f"{name} of the stub", "status": name}
    return status, {"error": told | ({"details": details} if details else {})}


UNREGISTERED = error(404, "NOT_FOUND", "UNREGISTERED")
INVALID_TOKEN = error(400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", "message.token")
INVALID_LINK = error(400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", "message.webpush")
UNAVAILABLE = error(503, "UNAVAILABLE", "UNAVAILABLE")
MISMATCH = error(403, "PERMISSION_DENIED", "SENDER_ID_MISMATCH")
INTERNAL = error(500, "INTERNAL", "INTERNAL")
QUOTA = error(429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED")


@dataclass(slots=True)
class FcmServer:
    """What it was asked, and what it answers."""

    url: str = ""
    of_token: dict[str, Any] = field(default_factory=dict[str, Any])
    """What it answers to messages to a token."""
    of_all: Any = None
    """What it answers to every message."""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    token: str = "ya29.good"
    token_answer: Any = None
    token_seconds: int = 3600
    silent: bool = False
    """Whether it never answers a message."""
    hold_after: int | None = None
    """After so many messages, it takes others and answers none."""
    refuse_after: int | None = None
    """After so many messages, it says that the account may not send."""
    messages: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Those it took, in the order they came."""
    requests: int = 0
    token_requests: int = 0
    most_at_once: int = 0
    held: threading.Event = field(default_factory=threading.Event)
    """Set once a message is held."""
    _at_once: int = 0

    @property
    def sent(self) -> Counter[str]:
        """How often each token was sent to."""
        return Counter(one["token"] for one in self.messages)

    def account(self) -> dict[str, Any]:
        """The service account it knows."""
        return {
            "type": "service_account",
            "project_id": PROJECT,
            "client_email": f"push@{PROJECT}.iam.gserviceaccount.com",
            "private_key": private_key(),
            "private_key_id": "k1",
            "token_uri": f"{self.url}/token",
        }

    def settings(self) -> dict[str, Any]:
        """Settings of a gate that sends here."""
        return {
            "push__url": f"fcm://{PROJECT}",
            "push__fcm_url": self.url,
            "google__service_account": json.dumps(self.account()),
            "documents__url": "database:",
        }

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while True:
            event = await receive()
            body += event.get("body", b"")
            if not event.get("more_body"):
                break
        if scope["path"] == "/token":
            status, answer = self._token(body)
        else:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            try:
                status, answer = await self._message(scope, body)
            finally:
                self._at_once -= 1
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        headers = [(name.encode(), value.encode()) for name, value in self.headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    def _token(self, body: bytes) -> Any:
        self.token_requests += 1
        if self.token_answer is not None:
            return self.token_answer
        form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        claims = jwt.decode(form["assertion"], RSAKey.import_key(private_key())).claims
        assert form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
        assert claims["aud"] == f"{self.url}/token"
        assert claims["scope"] == "https://www.googleapis.com/auth/firebase.messaging"
        assert 0 < claims["exp"] - claims["iat"] <= 3600
        return 200, {"access_token": self.token, "expires_in": self.token_seconds}

    async def _message(self, scope: Any, body: bytes) -> Any:
        self.requests += 1
        await asyncio.sleep(0)
        if self.silent:
            await asyncio.sleep(3600)
        headers = dict(scope["headers"])
        if headers.get(b"authorization") != f"Bearer {self.token}".encode():
            return error(401, "UNAUTHENTICATED")
        if scope["path"] != f"/v1/projects/{PROJECT}/messages:send":
            return error(404, "NOT_FOUND")
        if self.of_all is not None:
            return self.of_all
        message = json.loads(body)["message"]
        if message["token"] in self.of_token:
            return self.of_token[message["token"]]
        if self.refuse_after is not None and len(self.messages) >= self.refuse_after:
            return error(403, "PERMISSION_DENIED")
        self.messages.append(message)
        if self.hold_after is not None and len(self.messages) > self.hold_after:
            self.held.set()
            await asyncio.sleep(3600)
        return 200, {"name": f"projects/{PROJECT}/messages/{len(self.messages)}"}


@contextmanager
def fcm_server() -> Iterator[FcmServer]:
    """One that runs for as long as the block lasts."""
    server = FcmServer()
    with served_in_thread(server, cut=True) as server.url:
        yield server

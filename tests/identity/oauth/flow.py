"""A client and a person with a browser, for tests of the OAuth server."""

import base64
import hashlib
import re
import secrets
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2

PREFIX = "/backend-manager/mcp"
REDIRECT = "http://127.0.0.1:7777/callback"


def challenge_of(verifier: str) -> str:
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def query_of(answer: httpx2.Response) -> dict[str, str]:
    """The query of the address a browser is sent to."""
    return dict(parse_qsl(urlsplit(answer.headers["location"]).query))


def hidden(answer: httpx2.Response) -> dict[str, str]:
    """The hidden fields of a page's form."""
    found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', answer.text)
    assert found, answer.text
    return dict(found)


@dataclass
class Flow:
    """One client on its way through the flow, with the browser of one person."""

    http: httpx2.AsyncClient
    client_id: str
    redirect: str = REDIRECT
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))

    def question(self, **changed: str | None) -> dict[str, str]:
        asked = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect,
            "code_challenge": challenge_of(self.verifier),
            "code_challenge_method": "S256",
            "state": "s t&a=te",
            **changed,
        }
        return {name: value for name, value in asked.items() if value is not None}

    async def authorize(
        self, headers: dict[str, str] | None = None, **changed: str | None
    ) -> httpx2.Response:
        question = self.question(**changed)
        return await self.http.get(f"{PREFIX}/authorize", params=question, headers=headers)

    async def sign_in(self, key: str, **changed: str | None) -> httpx2.Response:
        """Sign in with a key; the answer to the form."""
        sent = await self.authorize(**changed)
        assert sent.status_code == 303, sent.text
        page = await self.http.get(sent.headers["location"])
        assert page.status_code == 200, page.text
        return await self.http.post(f"{PREFIX}/sign-in", data={**hidden(page), "key": key})

    async def consent_page(self, key: str, **changed: str | None) -> httpx2.Response:
        answered = await self.sign_in(key, **changed)
        assert answered.status_code == 303, answered.text
        page = await self.http.get(answered.headers["location"])
        assert page.status_code == 200, page.text
        return page

    async def decide(self, page: httpx2.Response, decision: str = "allow") -> httpx2.Response:
        form = {**hidden(page), "decision": decision}
        return await self.http.post(f"{PREFIX}/consent", data=form)

    async def code(self, key: str, **changed: str | None) -> str:
        sent = await self.decide(await self.consent_page(key, **changed))
        assert sent.status_code == 303, sent.text
        return query_of(sent)["code"]

    async def exchange(
        self, code: str, headers: dict[str, str] | None = None, **changed: str | None
    ) -> httpx2.Response:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "client_id": self.client_id,
            "redirect_uri": self.redirect,
            "code_verifier": self.verifier,
            **changed,
        }
        sent = {name: value for name, value in form.items() if value is not None}
        return await self.http.post(f"{PREFIX}/token", data=sent, headers=headers)

    async def refresh(
        self, token: str, headers: dict[str, str] | None = None, **changed: str
    ) -> httpx2.Response:
        form = {
            "grant_type": "refresh_token",
            "refresh_token": token,
            "client_id": self.client_id,
            **changed,
        }
        return await self.http.post(f"{PREFIX}/token", data=form, headers=headers)

    async def tokens(self, key: str, **changed: str | None) -> dict[str, Any]:
        """The whole way, from the question to the tokens."""
        answer = await self.exchange(await self.code(key, **changed))
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def tools(self, token: str, **headers: str) -> httpx2.Response:
        """Use an access token."""
        sent = {"Authorization": f"Bearer {token}", **headers}
        return await self.http.get("/v1/tools", headers=sent)


async def registered(
    http: httpx2.AsyncClient, redirect: str = REDIRECT, name: str = "Example"
) -> Flow:
    """A new client."""
    told = {"redirect_uris": [redirect], "client_name": name}
    answer = await http.post(f"{PREFIX}/register", json=told)
    assert answer.status_code == 201, answer.text
    return Flow(http, answer.json()["client_id"], redirect)

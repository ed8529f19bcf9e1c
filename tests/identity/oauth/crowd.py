"""Many people who sign in at once, each with a key and a browser of their own."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
from tests.identity.oauth.flow import Flow, query_of, registered

from toolgate.db.engine import Database
from toolgate.gate.principal import Role
from toolgate.identity.keys import Keys

TRIES = 5
BEGINNINGS = 5


class Wire(httpx2.AsyncBaseTransport):
    """A connection for each request, so that any worker may get it; what was lost is sent again."""

    def __init__(self) -> None:
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
        self._inner = httpx2.AsyncHTTPTransport(limits=limits, trust_env=False)
        self.statuses: Counter[int] = Counter()
        self.lost = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        for _ in range(TRIES):
            try:
                answer = await self._inner.handle_async_request(request)
                await answer.aread()
            except httpx2.TransportError:
                self.lost += 1
                continue
            self.statuses[answer.status_code] += 1
            return answer
        raise AssertionError(f"{request.url} was not answered, {TRIES} times")

    async def close(self) -> None:
        await self._inner.aclose()


@dataclass
class Person:
    """Somebody with a key; `tokens` once signed in."""

    uid: str
    flow: Flow
    key: str
    tokens: dict[str, Any] = field(default_factory=dict[str, Any])
    beginnings: int = 0

    async def sign_in(self) -> None:
        """The whole way; begun again if the answer with the code or with the tokens was lost."""
        while not self.tokens:
            self.beginnings += 1
            assert self.beginnings <= BEGINNINGS
            allowed = await self.flow.decide(await self.flow.consent_page(self.key))
            if allowed.status_code != 303:
                assert "You have allowed this already" in allowed.text
                continue
            answer = await self.flow.exchange(query_of(allowed)["code"])
            if answer.status_code == 200:
                self.tokens = answer.json()
            else:
                assert answer.json()["error"] == "invalid_grant", answer.text

    async def refresh(self) -> None:
        """A new pair in the place of the old one."""
        answer = await self.flow.refresh(self.tokens["refresh_token"])
        assert answer.status_code == 200, answer.text
        self.tokens = answer.json()

    async def name(self) -> str:
        """Who the server thinks the token belongs to."""
        bearer = {"Authorization": f"Bearer {self.tokens['access_token']}"}
        answer = await self.flow.http.post("/v1/tools/get_user", headers=bearer, json={})
        assert answer.status_code == 200, answer.text
        return answer.json()["user"]["auth"]["uid"]


@dataclass
class Crowd:
    """The people, and the wire they share."""

    wire: Wire
    url: str
    keys: dict[str, str]

    @asynccontextmanager
    async def person(self, uid: str) -> AsyncIterator[Person]:
        """One of them, with a browser and a client of their own.

        Nobody gives up: how long so many at once take is up to the machine.
        """
        browser = httpx2.AsyncClient(transport=self.wire, base_url=self.url, timeout=None)
        yield Person(uid, await registered(browser, name=uid), self.keys[uid])


@asynccontextmanager
async def gathered(url: str, database: Database, many: int, name: str) -> AsyncIterator[Crowd]:
    """So many people with a key each; nobody of them may see an error of the server's."""
    keys = Keys(database)
    uids = [f"{name}-{number}" for number in range(many)]
    made = {uid: (await keys.create(role=Role.USER, user_id=uid)).key for uid in uids}
    wire = Wire()
    try:
        yield Crowd(wire, url, made)
    finally:
        await wire.close()
    assert not [status for status in wire.statuses if status >= 500]

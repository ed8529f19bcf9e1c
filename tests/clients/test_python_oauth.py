"""The official Python client signs a person in by itself, against a running server."""

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

import httpx2
import mcp
import pytest
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl
from tests.identity.oauth.flow import PREFIX, hidden, query_of
from tests.servers import Server

pytestmark = pytest.mark.anyio

REDIRECT = "http://localhost:3030/callback"
Mode = Literal["auto", "legacy"]


@dataclass
class Person:
    """Keeps a client's tokens, and goes through the pages whenever it asks."""

    key: str
    tokens: list[OAuthToken] = field(default_factory=list[OAuthToken])
    client: OAuthClientInformationFull | None = None
    sign_ins: int = 0
    answer: AuthorizationCodeResult | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens[-1] if self.tokens else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens.append(tokens)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info

    async def visit(self, url: str) -> None:
        """What a browser and a person do at the address the client opens."""
        self.sign_ins += 1
        async with httpx2.AsyncClient(trust_env=False, follow_redirects=True) as browser:
            page = await browser.get(url)
            form = {**hidden(page), "key": self.key}
            page = await browser.post(page.url.join(f"{PREFIX}/sign-in"), data=form)
            form = {**hidden(page), "decision": "allow"}
            where = page.url.join(f"{PREFIX}/consent")
            sent = await browser.post(where, data=form, follow_redirects=False)
        assert sent.headers["location"].startswith(f"{REDIRECT}?")
        told = query_of(sent)
        self.answer = AuthorizationCodeResult(
            code=told["code"], state=told["state"], iss=told["iss"]
        )

    async def answered(self) -> AuthorizationCodeResult:
        assert self.answer is not None
        return self.answer


@asynccontextmanager
async def connected(
    server: Server, person: Person, path: str, mode: Mode
) -> AsyncGenerator[tuple[mcp.Client, OAuthClientProvider], None]:
    provider = OAuthClientProvider(
        server_url=f"{server.url}{path}",
        client_metadata=OAuthClientMetadata(
            client_name="Python client", redirect_uris=[AnyUrl(REDIRECT)]
        ),
        storage=person,
        redirect_handler=person.visit,
        callback_handler=person.answered,
    )
    async with httpx2.AsyncClient(auth=provider, trust_env=False, timeout=30) as http:
        transport = streamable_http_client(f"{server.url}{path}", http_client=http)
        async with mcp.Client(transport, mode=mode) as client:
            yield client, provider


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("path", ["/mcp", "/backend-manager/mcp"])
async def test_the_client_goes_the_whole_way(server: Server, path: str, mode: Mode) -> None:
    person = Person(server.key_of("user"))
    async with connected(server, person, path, mode) as (client, provider):
        listed = [tool.name for tool in (await client.list_tools()).tools]
        assert listed == ["list_collections", "describe_collection", "get_user", "health_check"]
        assert (await client.call_tool("list_collections", {})).is_error is False
        assert (person.sign_ins, len(person.tokens)) == (1, 1)

        provider.context.token_expiry_time = time.time() - 1
        assert (await client.call_tool("list_collections", {})).is_error is False
        assert (person.sign_ins, len(person.tokens)) == (1, 2), "refreshed without the person"
        assert person.tokens[0].refresh_token != person.tokens[1].refresh_token

    await revoke(server, person)
    async with connected(server, person, path, mode) as (client, _):
        assert (await client.call_tool("list_collections", {})).is_error is False
    assert person.sign_ins == 2, "after the revocation the person has to sign in again"


async def revoke(server: Server, person: Person) -> None:
    """Give the grant back, and wait until no worker remembers its token."""
    token, client = person.tokens[-1], person.client
    assert client is not None
    async with httpx2.AsyncClient(base_url=server.url, trust_env=False) as http:
        form = {"token": str(token.refresh_token), "client_id": str(client.client_id)}
        assert (await http.post(f"{PREFIX}/revoke", data=form)).status_code == 200
        headers = {"Authorization": f"Bearer {token.access_token}"}
        deadline = time.monotonic() + 3
        while (await http.get("/v1/tools", headers=headers)).status_code != 401:
            assert time.monotonic() < deadline, "a revoked token ends within a second"


async def test_an_admin_signs_in_with_the_admin_key(server: Server) -> None:
    person = Person(server.admin_key)
    async with connected(server, person, "/mcp", "auto") as (client, _):
        assert "get_document" in [tool.name for tool in (await client.list_tools()).tools]

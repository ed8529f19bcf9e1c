"""The official Python client with a person who goes through the pages for it."""

import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

import httpx2
import mcp
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl
from tests.identity.oauth.flow import PREFIX, query_of
from tests.identity.pages import browsing, walk
from tests.patience import PATIENT
from tests.servers import Server

REDIRECT = "http://localhost:3030/callback"
Mode = Literal["auto", "legacy"]
USER_TOOLS = [
    "list_collections", "describe_collection", "get_user", "get_subscription", "health_check",
]  # fmt: skip
"""What a user sees: the tools for users, and those for everybody."""


class NotSignedIn(Exception):
    """The pages ended elsewhere than at the client; says what the last one said."""


@dataclass
class Person:
    """Keeps a client's tokens, and goes through the pages whenever it asks."""

    typed: Mapping[str, str]
    """What the person types into forms, by the name of the field."""
    request_id: str = "python-client"
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
        async with browsing(self.request_id) as browser:
            sent = await walk(browser, url, f"{REDIRECT}?", {**self.typed, "decision": "allow"})
        if not sent.is_redirect:
            raise NotSignedIn(f"{sent.status_code}: {sent.text}")
        told = query_of(sent)
        self.answer = AuthorizationCodeResult(
            code=told["code"], state=told["state"], iss=told["iss"]
        )

    async def answered(self) -> AuthorizationCodeResult:
        assert self.answer is not None
        return self.answer

    @property
    def access_token(self) -> str:
        return self.tokens[-1].access_token


@asynccontextmanager
async def connected(
    server: Server,
    person: Person,
    path: str = "/mcp",
    mode: Mode = "auto",
    document: str | None = None,
) -> AsyncGenerator[tuple[mcp.Client, OAuthClientProvider], None]:
    """The client, signed in; `document` is the address where it describes itself."""
    provider = OAuthClientProvider(
        server_url=f"{server.url}{path}",
        client_metadata=OAuthClientMetadata(
            client_name="Python client", redirect_uris=[AnyUrl(REDIRECT)]
        ),
        storage=person,
        redirect_handler=person.visit,
        callback_handler=person.answered,
        client_metadata_url=document,
    )
    async with httpx2.AsyncClient(auth=provider, trust_env=False, timeout=PATIENT) as http:
        transport = streamable_http_client(f"{server.url}{path}", http_client=http)
        async with mcp.Client(transport, mode=mode) as client:
            yield client, provider


async def tools_of(client: mcp.Client) -> list[str]:
    """The names of the tools a client sees."""
    return [tool.name for tool in (await client.list_tools()).tools]


async def revoke(server: Server, person: Person) -> None:
    """Give the grant back, and wait until no worker remembers its token."""
    token, client = person.tokens[-1], person.client
    assert client is not None
    async with httpx2.AsyncClient(base_url=server.url, trust_env=False) as http:
        form = {"token": str(token.refresh_token), "client_id": str(client.client_id)}
        assert (await http.post(f"{PREFIX}/revoke", data=form)).status_code == 200
        headers = {"Authorization": f"Bearer {token.access_token}"}
        deadline = time.monotonic() + PATIENT
        while (await http.get("/v1/tools", headers=headers)).status_code != 401:
            assert time.monotonic() < deadline, "a revoked token does not end"

"""The authorization server as a whole: which endpoint answers at which path."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from toolgate.db.engine import Database
from toolgate.gate.principal import Principal
from toolgate.identity.credentials import Credentials
from toolgate.identity.guesses import Guesses
from toolgate.identity.oauth import paths
from toolgate.identity.oauth.admin_client import AdminClients
from toolgate.identity.oauth.authorization import AuthorizationEndpoint
from toolgate.identity.oauth.callback import CallbackEndpoint
from toolgate.identity.oauth.clients import ClientDocumentSource, Clients
from toolgate.identity.oauth.consent import ConsentPage, Lifetimes, ToolCounts
from toolgate.identity.oauth.grants import Grants
from toolgate.identity.oauth.home import HomePage
from toolgate.identity.oauth.messages import Request, Response
from toolgate.identity.oauth.page_templates import FILES, file_at
from toolgate.identity.oauth.registration import RegistrationEndpoint
from toolgate.identity.oauth.resource_metadata import ResourceMetadata
from toolgate.identity.oauth.revocation import RevocationEndpoint
from toolgate.identity.oauth.server_metadata import ServerMetadata
from toolgate.identity.oauth.sign_in_page import SignInPage
from toolgate.identity.oauth.sign_ins import SignIns
from toolgate.identity.oauth.token import TokenEndpoint
from toolgate.identity.providers import Provider

ALIASES = {
    "/authorize": paths.AUTHORIZE,
    "/token": paths.TOKEN,
    "/register": paths.REGISTER,
    "/revoke": paths.REVOKE,
}
"""Where clients look that do not read our metadata."""


class Endpoint(Protocol):
    """Answers requests at one path."""

    @property
    def methods(self) -> tuple[str, ...]:
        """What it can be asked with."""
        ...

    async def __call__(self, request: Request) -> Response:
        """Answer one request."""
        ...


class File:
    """A file that our pages refer to."""

    methods = ("GET", "HEAD")

    def __init__(self, path: str) -> None:
        self._path = path

    async def __call__(self, request: Request) -> Response:  # noqa: ARG002 (always the same)
        """The same for everybody."""
        return file_at(self._path)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerParts:
    """What the authorization server is made of."""

    database: Database
    credentials: Credentials
    guesses: Guesses
    access_seconds: float
    refresh_seconds: float
    count_tools: Callable[[Principal], ToolCounts]
    registration: bool = True
    admin_key_client: bool = False
    provider: Provider | None = None
    """Who signs people in; None for a page of ours that asks for a key."""
    documents: ClientDocumentSource | None = None


def endpoints(parts: ServerParts) -> Mapping[str, Endpoint]:
    """Every endpoint by its path."""
    clients = Clients(parts.database, parts.documents)
    sign_ins = SignIns(parts.database)
    admins = AdminClients(parts.credentials.keys, parts.guesses, everywhere=parts.admin_key_client)
    grants = Grants(
        parts.database,
        parts.credentials.keys,
        access_seconds=parts.access_seconds,
        refresh_seconds=parts.refresh_seconds,
    )
    by_path: dict[str, Endpoint] = {
        paths.AUTHORIZE: AuthorizationEndpoint(
            clients,
            sign_ins,
            parts.provider,
            admins=admins,
            keys=parts.credentials.keys,
            grants=grants,
        ),
        paths.CONSENT: ConsentPage(
            parts.database,
            sign_ins,
            grants,
            parts.credentials,
            count_tools=parts.count_tools,
            lifetimes=Lifetimes(parts.access_seconds, parts.refresh_seconds),
        ),
        paths.TOKEN: TokenEndpoint(grants, clients, admins, parts.guesses),
        paths.REVOKE: RevocationEndpoint(grants, admins),
        paths.HOME: HomePage(),
        **{path: File(path) for path in FILES},
        **_metadata(parts),
    }
    if parts.registration:
        by_path[paths.REGISTER] = RegistrationEndpoint(clients)
    if parts.provider is None:
        by_path[paths.SIGN_IN] = SignInPage(sign_ins, parts.credentials.keys, parts.guesses)
    else:
        by_path[paths.CALLBACK] = CallbackEndpoint(
            sign_ins, parts.provider, parts.credentials.users
        )
    return by_path | {alias: by_path[path] for alias, path in ALIASES.items() if path in by_path}


def _metadata(parts: ServerParts) -> dict[str, Endpoint]:
    server = ServerMetadata(
        registration=parts.registration, client_documents=parts.documents is not None
    )
    by_path: dict[str, Endpoint] = {
        paths.RESOURCE_METADATA: ResourceMetadata(),
        paths.SERVER_METADATA: server,
    }
    for path in paths.MCP_PATHS:
        by_path[paths.RESOURCE_METADATA + path] = ResourceMetadata(path)
        by_path[paths.SERVER_METADATA + path] = server
    return by_path

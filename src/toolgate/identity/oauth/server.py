"""The authorization server as a whole: which endpoint answers at which path."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from toolgate.db.engine import Database
from toolgate.gate.limits import Limits
from toolgate.identity.credentials import Credentials
from toolgate.identity.oauth import paths
from toolgate.identity.oauth.authorize import Authorize
from toolgate.identity.oauth.callback import Callback
from toolgate.identity.oauth.clients import ClientDocuments, Clients
from toolgate.identity.oauth.consent import Consent
from toolgate.identity.oauth.grants import Grants
from toolgate.identity.oauth.messages import Answer, Request
from toolgate.identity.oauth.register import Register
from toolgate.identity.oauth.rendering import style
from toolgate.identity.oauth.resource_metadata import ResourceMetadata
from toolgate.identity.oauth.revoke import Revoke
from toolgate.identity.oauth.server_metadata import ServerMetadata
from toolgate.identity.oauth.sign_in import SignInPage
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

    async def __call__(self, request: Request) -> Answer:
        """Answer one request."""
        ...


class Style:
    """The style sheet of our pages."""

    methods = ("GET", "HEAD")

    async def __call__(self, request: Request) -> Answer:  # noqa: ARG002 (always the same)
        """The same for everybody."""
        return style()


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the authorization server is made of."""

    database: Database
    credentials: Credentials
    limits: Limits
    access_seconds: float
    refresh_seconds: float
    registration: bool = True
    provider: Provider | None = None
    """Who signs people in; None for a page of ours that asks for a key."""
    documents: ClientDocuments | None = None


def endpoints(parts: Parts) -> Mapping[str, Endpoint]:
    """Every endpoint by its path."""
    clients = Clients(parts.database, parts.documents)
    sign_ins = SignIns(parts.database)
    grants = Grants(
        parts.database,
        access_seconds=parts.access_seconds,
        refresh_seconds=parts.refresh_seconds,
    )
    found: dict[str, Endpoint] = {
        paths.AUTHORIZE: Authorize(clients, sign_ins, parts.provider),
        paths.CONSENT: Consent(sign_ins, grants),
        paths.TOKEN: TokenEndpoint(grants, clients),
        paths.REVOKE: Revoke(grants),
        paths.STYLE: Style(),
        **_metadata(parts),
    }
    if parts.registration:
        found[paths.REGISTER] = Register(clients)
    if parts.provider is None:
        found[paths.SIGN_IN] = SignInPage(sign_ins, parts.credentials.keys, parts.limits)
    else:
        found[paths.CALLBACK] = Callback(sign_ins, parts.provider, parts.credentials.users)
    return found | {alias: found[path] for alias, path in ALIASES.items() if path in found}


def _metadata(parts: Parts) -> dict[str, Endpoint]:
    server = ServerMetadata(
        registration=parts.registration, client_documents=parts.documents is not None
    )
    found: dict[str, Endpoint] = {
        paths.RESOURCE_METADATA: ResourceMetadata(),
        paths.SERVER_METADATA: server,
    }
    for path in paths.RESOURCES:
        found[paths.RESOURCE_METADATA + path] = ResourceMetadata(path)
        found[paths.SERVER_METADATA + path] = server
    return found

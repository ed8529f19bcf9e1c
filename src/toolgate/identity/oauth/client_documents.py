"""Clients that describe themselves: the client id is the address of a JSON document.

Rules of the draft "OAuth Client ID Metadata Document", as MCP asks for them. What is remembered is
only there to ask less often; problems are never remembered, as the draft demands.
"""

import time
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import SplitResult, urlsplit

from toolgate.gate.errors import printable
from toolgate.identity.oauth.client_names import shown_name
from toolgate.identity.oauth.clients import BadClient, Client
from toolgate.identity.oauth.redirects import broken_rule
from toolgate.identity.shared_requests import SharedRequests
from toolgate.outbound.json_fetcher import JsonFetcher, JsonObject
from toolgate.outbound.responses import FetchFailed

LEAST_SECONDS = 60.0
MAX_SECONDS = 3600.0
MAX_REMEMBERED = 1000
MAX_REDIRECTS = 20
MAX_ADDRESS = 2000
HTTP_PORT = 80


class ClientDocuments:
    """Finds clients by the address of their document."""

    def __init__(
        self, fetcher: JsonFetcher, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._fetcher = fetcher
        self._clock = clock
        self._remembered: dict[str, tuple[float, Client]] = {}
        self._asking = SharedRequests[Client]()

    async def client(self, client_id: str) -> Client:
        """The client whose document is at `client_id`; raise `BadClient` when it cannot be used."""
        remembered = self._remembered.get(client_id)
        if remembered and remembered[0] > self._clock():
            return remembered[1]
        self._check_id(client_id)
        return await self._asking.run(client_id, lambda: self._fetch(client_id))

    async def _fetch(self, client_id: str) -> Client:
        try:
            document = await self._fetcher.get(client_id)
        except FetchFailed as problem:
            raise BadClient(f"The client's document could not be fetched: {problem}") from problem
        client = client_from_document(client_id, document.body)
        self._remember(client, document)
        return client

    def _remember(self, client: Client, document: JsonObject) -> None:
        seconds = LEAST_SECONDS if document.fresh_seconds is None else document.fresh_seconds
        until = self._clock() + min(max(seconds, LEAST_SECONDS), MAX_SECONDS)
        self._remembered.pop(client.id, None)
        if len(self._remembered) >= MAX_REMEMBERED:
            del self._remembered[next(iter(self._remembered))]
        self._remembered[client.id] = (until, client)

    def _check_id(self, client_id: str) -> None:
        parts = _split("client_id", client_id)
        host, allows = parts.hostname, self._fetcher.outbound.allows
        plain = parts.scheme == "http" and host and allows(host, parts.port or HTTP_PORT)
        if not host or (parts.scheme != "https" and not plain):
            raise BadClient("client_id must be an address that begins with https://.")
        if parts.path in {"", "/"}:
            raise BadClient("client_id must have a path, as in https://app.example/client.json.")
        # A browser and a server may read %2e as a dot, so it counts as one.
        segments = parts.path.lower().replace("%2e", ".").split("/")
        if "." in segments or ".." in segments:
            raise BadClient("client_id must not have the path segments . or ..")


def client_from_document(client_id: str, document: dict[str, Any]) -> Client:
    """The client a document describes; raise `BadClient` naming the field that is wrong."""
    if document.get("client_id") != client_id:
        raise BadClient("client_id in the client's document must be the address it is at.")
    if document.get("token_endpoint_auth_method", "none") != "none":
        raise BadClient("token_endpoint_auth_method in the client's document must be none.")
    if "client_secret" in document:
        raise BadClient("client_secret must not be in the client's document: everybody reads it.")
    return Client(
        id=client_id,
        name=_name(document.get("client_name"), client_id),
        redirect_uris=_redirects(document.get("redirect_uris")),
        uri=_uri(document.get("client_uri")),
    )


def _name(value: object, client_id: str) -> str:
    if value is not None and not isinstance(value, str):
        raise BadClient("client_name in the client's document must be a text.")
    return shown_name(value or "") or printable(urlsplit(client_id).hostname or client_id)


def _uri(value: object) -> str | None:
    """The client's home page; one that cannot be shown safely is left out."""
    try:
        parts = _split("client_uri", value)
    except BadClient:
        return None
    return str(value) if parts.scheme == "https" and parts.hostname else None


def _redirects(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not 1 <= len(cast("list[Any]", value)) <= MAX_REDIRECTS:
        raise BadClient(f"redirect_uris must be a list of 1 to {MAX_REDIRECTS} addresses.")
    return tuple(_redirect(one) for one in cast("list[Any]", value))


def _redirect(value: object) -> str:
    """An address that answers may be sent to, by the rules of registration."""
    rule = broken_rule(value) if isinstance(value, str) else "must be texts"
    if rule:
        raise BadClient(f"redirect_uris {rule}.")
    return str(value)


def _split(field: str, value: object) -> SplitResult:
    """The parts of an address that every reader reads alike."""
    if not isinstance(value, str) or not value or len(value) > MAX_ADDRESS:
        raise BadClient(f"{field} must be an address of at most {MAX_ADDRESS} characters.")
    if not value.isascii() or not value.isprintable() or set(value) & set(' \\"<>^`{|}'):
        raise BadClient(f"{field} must not have spaces or characters that need escaping.")
    try:
        parts = urlsplit(value)
        _ = parts.port
    except ValueError:
        raise BadClient(f"{field} must be a valid address.") from None
    if "#" in value or parts.username is not None or parts.password is not None:
        raise BadClient(f"{field} must not have a fragment, a user or a password.")
    return parts

"""Clients register themselves (RFC 7591). All are public clients; unknown members are ignored."""

from typing import Any, cast

import orjson

from toolgate.identity.oauth.client_names import shown_name
from toolgate.identity.oauth.clients import Clients
from toolgate.identity.oauth.messages import Request, Response, error_response, json_response
from toolgate.identity.oauth.redirects import broken_rule

MAX_BYTES = 8 * 1024
MAX_REDIRECTS = 10
MAX_ADDRESS = 512
DEFAULT_NAME = "MCP Client"
RULE = "oauth-bad-registration"
GRANTS = ["authorization_code", "refresh_token"]


class InvalidClientMetadata(ValueError):
    """A member breaks a rule; the message says which."""

    def __init__(self, error: str, message: str) -> None:
        super().__init__(message)
        self.error = error


class RegistrationEndpoint:
    """Keeps a client and gives it an id."""

    methods = ("POST",)

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    async def __call__(self, request: Request) -> Response:
        """Register, or say what is wrong."""
        if len(request.body) > MAX_BYTES:
            message = f"A registration has at most {MAX_BYTES} bytes."
            return error_response("invalid_client_metadata", message, RULE, status=413)
        try:
            metadata = _object(request.body)
            redirects = _redirects(metadata.get("redirect_uris"))
            _check_public(metadata)
            name, uri = _name(metadata.get("client_name")), _uri(metadata.get("client_uri"))
        except InvalidClientMetadata as problem:
            return error_response(problem.error, str(problem), RULE)
        client = await self._clients.register(name, redirects, uri, request.note, peer=request.peer)
        body = {
            "client_id": client.id,
            "client_name": client.name,
            "redirect_uris": list(client.redirect_uris),
            "grant_types": GRANTS,
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "scope": "tools",
        }
        return json_response(body if uri is None else {**body, "client_uri": uri}, 201)


def _object(body: bytes) -> dict[str, Any]:
    try:
        metadata: Any = orjson.loads(body)
    except ValueError:
        metadata = None
    if not isinstance(metadata, dict):
        raise InvalidClientMetadata("invalid_client_metadata", "The body must be a JSON object.")
    return cast("dict[str, Any]", metadata)


def _redirects(value: Any) -> tuple[str, ...]:
    uris = cast("list[Any]", value) if isinstance(value, list) else []
    if not 1 <= len(uris) <= MAX_REDIRECTS or not all(isinstance(one, str) for one in uris):
        message = f"redirect_uris must be a list of 1 to {MAX_REDIRECTS} addresses."
        raise InvalidClientMetadata("invalid_redirect_uri", message)
    for number, uri in enumerate(uris):
        if len(uri) > MAX_ADDRESS:
            broken = f"must have at most {MAX_ADDRESS} characters"
        else:
            broken = broken_rule(uri)
        if broken:
            raise InvalidClientMetadata(
                "invalid_redirect_uri", f"redirect_uris[{number}] {broken}."
            )
    return tuple(uris)


def _check_public(metadata: dict[str, Any]) -> None:
    """Secrets are not given out; clients that want one learn here that they get none.

    RFC 7591 lets a server replace what a client asked for, and says so in the answer, so only
    what could never work is refused.
    """
    for name, needed in (("grant_types", "authorization_code"), ("response_types", "code")):
        value = metadata.get(name)
        if value is not None and not (isinstance(value, list) and needed in value):
            raise InvalidClientMetadata(
                "invalid_client_metadata", f"{name} must be a list with {needed}."
            )


def _name(value: Any) -> str:
    if value is None:
        return DEFAULT_NAME
    if not isinstance(value, str):
        raise InvalidClientMetadata("invalid_client_metadata", "client_name must be a text.")
    return shown_name(value) or DEFAULT_NAME


def _uri(value: Any) -> str | None:
    """The client's home page; one that cannot be shown safely is left out."""
    if not isinstance(value, str) or len(value) > MAX_ADDRESS:
        return None
    return value if value.startswith("https://") and not broken_rule(value) else None

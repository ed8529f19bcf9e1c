"""What an endpoint is asked and what it answers, free of any web server."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import parse_qsl, urlencode

import orjson

from toolgate.gate.principal import UNKNOWN_ACTOR, Actor
from toolgate.identity.oauth.audit_notes import Note

NO_STORE = ("cache-control", "no-store")
MAX_PARAMETERS = 50

Header = tuple[str, str]


class BadParameters(ValueError):
    """Parameters that are not valid form encoding, or far too many."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """Form-encoded parameters, from a query or a body."""

    values: Mapping[str, str] = field(default_factory=dict[str, str])
    repeated: frozenset[str] = frozenset()
    """Names given more than once, which RFC 6749 (section 3.1) forbids."""

    @classmethod
    def read(cls, text: bytes) -> Self:
        """Parse; an empty value counts as none."""
        try:
            pairs = parse_qsl(text.decode("ascii"), errors="strict", max_num_fields=MAX_PARAMETERS)
        except ValueError:
            raise BadParameters("The parameters are not valid form encoding.") from None
        names = [name for name, _ in pairs]
        return cls(dict(pairs), frozenset(name for name in names if names.count(name) > 1))

    def get(self, name: str) -> str | None:
        """One value, or None."""
        return self.values.get(name)

    def with_value(self, name: str, value: str) -> "Parameters":
        """The same with another value for one of them."""
        return Parameters({**self.values, name: value}, self.repeated)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One HTTP request, as far as OAuth looks at it."""

    method: str
    base: str
    """Our own address: the issuer."""
    resources: frozenset[str]
    peer: str
    """Whose guesses count together: an address, or the network it is in."""
    note: Note
    local: bool = False
    """Whether this machine itself sent it, and not through a proxy."""
    query: Parameters = Parameters()
    form: Parameters = Parameters()
    """The body, if it is form-encoded."""
    body: bytes = b""
    content_type: str = ""
    accept: str = ""
    cookies: Mapping[str, str] = field(default_factory=dict[str, str])
    cookie: str | None = None
    """The one cookie that comes through, where a setting names it."""

    @property
    def host(self) -> str:
        """Our name, as the caller knows it."""
        return self.base.partition("://")[2]

    @property
    def secure(self) -> bool:
        """Whether the browser speaks HTTPS."""
        return self.base.startswith("https://")


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """The answer; `rule` names why the request was refused, for the audit."""

    status: int = 200
    headers: tuple[Header, ...] = ()
    body: bytes = b""
    rule: str | None = None
    actor: Actor = UNKNOWN_ACTOR
    """Whose secret came with a request that was refused, for the audit too."""


def json_response(body: Mapping[str, Any], status: int = 200, *headers: Header) -> Response:
    """JSON that nobody may store."""
    all_headers = (("content-type", "application/json"), NO_STORE, *headers)
    return Response(status=status, headers=all_headers, body=orjson.dumps(body))


def error_response(
    error: str, description: str, rule: str, status: int = 400, actor: Actor = UNKNOWN_ACTOR
) -> Response:
    """An error as RFC 6749 (section 5.2) words it."""
    body = {"error": error, "error_description": description}
    headers = (("content-type", "application/json"), NO_STORE, ("pragma", "no-cache"))
    return Response(status=status, headers=headers, body=orjson.dumps(body), rule=rule, actor=actor)


def redirect(url: str, *headers: Header, rule: str | None = None) -> Response:
    """Send the browser elsewhere, always with GET."""
    all_headers = (("location", url), NO_STORE, ("referrer-policy", "no-referrer"), *headers)
    return Response(status=303, headers=all_headers, rule=rule)


def with_parameters(url: str, parameters: Mapping[str, str | None]) -> str:
    """The address with further query parameters; what it has already stays as it is."""
    query = urlencode({name: value for name, value in parameters.items() if value is not None})
    return f"{url}{'&' if '?' in url else '?'}{query}"

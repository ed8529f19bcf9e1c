"""Cross-origin resource sharing: what a browser needs before a page of an allowed origin may call.

The edge decides which origins are allowed. The headers are the same for every path, so that a
preflight, which comes without credentials, tells nothing about what exists. Cookies are never
asked for (`Access-Control-Allow-Credentials` is not sent): a caller is known by its bearer
credential alone.
"""

import re

from toolgate.gate.catalogue import Catalogue
from toolgate.transports.asgi import Headers, Scope, Send, header

REQUESTED_METHOD = b"access-control-request-method"
REQUESTED_HEADERS = b"access-control-request-headers"
METHODS = b"GET, HEAD, POST, PUT, PATCH, DELETE"
REQUEST_HEADERS = (
    "authorization",
    "content-type",
    "idempotency-key",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "x-dry-run",
    "x-request-id",
)
PARAMETER_HEADER = re.compile(r"mcp-param-[a-z0-9_-]{1,64}")
"""MCP mirrors arguments in headers whose names a tool's schema gives (`x-mcp-header`)."""
MAX_REQUESTED = 4096
ANSWER_HEADERS = b"Mcp-Session-Id, Retry-After, WWW-Authenticate, X-Dry-Run-Changes, X-Request-Id"
PREFLIGHT_SECONDS = b"7200"
VARY = (b"vary", b"Origin")


def is_preflight(scope: Scope) -> bool:
    """Whether a browser asks what it may send."""
    return scope["method"] == "OPTIONS" and header(scope, REQUESTED_METHOD) is not None


async def send_preflight(scope: Scope, send: Send, catalogue: Catalogue) -> None:
    """Answer what a browser may send, the headers that packs read included."""
    asked = (header(scope, REQUESTED_HEADERS) or "")[:MAX_REQUESTED].lower()
    names = [one.strip() for one in asked.split(",")]
    mirrored = [one for one in names if PARAMETER_HEADER.fullmatch(one)]
    of_packs = [
        one.name
        for offer in catalogue.offers
        for one in (offer.from_request.headers if offer.from_request else ())
    ]
    allowed = ", ".join((*REQUEST_HEADERS, *of_packs, *mirrored))
    headers = [
        (b"access-control-allow-methods", METHODS),
        (b"access-control-allow-headers", allowed.encode()),
        (b"access-control-max-age", PREFLIGHT_SECONDS),
    ]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def response_headers(origin: str) -> Headers:
    """What lets a page of this origin read an answer."""
    return [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-expose-headers", ANSWER_HEADERS),
        VARY,
    ]

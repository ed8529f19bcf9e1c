"""Cross-origin resource sharing: what a browser needs before a page of an allowed origin may call.

The edge decides which origins are allowed. The headers are the same for every path, so that a
preflight, which comes without credentials, tells nothing about what exists. Cookies are never
asked for (`Access-Control-Allow-Credentials` is not sent): a caller is known by its bearer
credential alone.
"""

import re

from toolgate.transports.asgi import Headers, Scope, header

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
    "x-project-id",
    "x-project-slug",
    "x-request-id",
)
PARAMETER_HEADER = re.compile(r"mcp-param-[a-z0-9_-]{1,64}")
"""MCP mirrors arguments in headers whose names a tool's schema gives (`x-mcp-header`)."""
MOST_REQUESTED = 4096
ANSWER_HEADERS = b"Mcp-Session-Id, Retry-After, WWW-Authenticate, X-Request-Id"
PREFLIGHT_SECONDS = b"7200"
VARY = (b"vary", b"Origin")


def is_preflight(scope: Scope) -> bool:
    """Whether a browser asks what it may send."""
    return scope["method"] == "OPTIONS" and header(scope, REQUESTED_METHOD) is not None


def preflight_headers(scope: Scope) -> Headers:
    """What a browser may send."""
    asked = (header(scope, REQUESTED_HEADERS) or "")[:MOST_REQUESTED].lower()
    names = [one.strip() for one in asked.split(",")]
    mirrored = [one for one in names if PARAMETER_HEADER.fullmatch(one)]
    return [
        (b"access-control-allow-methods", METHODS),
        (b"access-control-allow-headers", ", ".join((*REQUEST_HEADERS, *mirrored)).encode()),
        (b"access-control-max-age", PREFLIGHT_SECONDS),
    ]


def answer_headers(origin: str) -> Headers:
    """What lets a page of this origin read an answer."""
    return [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-expose-headers", ANSWER_HEADERS),
        VARY,
    ]

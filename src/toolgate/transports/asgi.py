"""The little ASGI that every HTTP transport needs."""

import gc
import json
import re
from collections.abc import Awaitable, Callable, Generator, Iterable, MutableMapping
from contextlib import contextmanager
from typing import Any, cast

import orjson
from pydantic_core import from_json

from toolgate.gate.attachments import Delivery
from toolgate.gate.calls import Call
from toolgate.gate.diffs import Diff
from toolgate.gate.errors import (
    GateError,
    InvalidArguments,
    MethodNotAllowed,
    Problem,
    RateLimited,
    TooLarge,
    WritesOff,
)
from toolgate.gate.from_request import RequestHeaders
from toolgate.gate.outcomes import Outcome
from toolgate.gate.principal import Principal

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = Iterable[tuple[bytes, bytes]]

DIGITS = b"0123456789"
LONG = 19
LONG_NUMBER = re.compile(rb"[0-9]{%d}" % LONG)
LARGE, FEW = 65536, 1000
MAX_VALUES = 200_000
"""In one body. Each takes fifty times the memory of its bytes, and a moment in which nobody else is
answered; a file is one value, so a body that may be larger than others for one holds `FEW`."""
LEAST_ROUNDED = 2.0**63
LEAST_INFINITE = 2**1024 - 2**970
"""From here on a number is rounded to infinity, and the quick parser refuses it."""
MAX_LENGTH_DIGITS = 20
"""In a `Content-Length`, as many as 64 bits can have."""
MAX_NESTED = 100
"""Levels; an answer that repeats a value has to fit the 254 that the serialiser takes."""
JSON = (b"content-type", b"application/json")
PRINCIPAL = "toolgate.principal"
UNAUTHENTICATED = "toolgate.unauthenticated"
"""Set where a request was refused because it brought no credential that is good."""
REQUEST_ID = "toolgate.request_id"
REQUEST_ID_HEADER = b"x-request-id"
HEADERS = "toolgate.headers"
HEAD = "toolgate.head"
SEND = "toolgate.send"
BODY_LIMIT = "toolgate.body_limit"
"""Set where a request may be larger than others."""
MORE_SECONDS = "toolgate.more_seconds"
"""How much longer the body of such a request may take to arrive."""
BECAME_CALL = "toolgate.became_call"
"""Set where a message for the SDK was counted and audited as a call, or refused as one."""
CHECK_CREDENTIAL = "toolgate.check_credential"
"""Raises `CredentialEnded` where the caller's credential is not good any more."""
DRY_RUN_HEADER = b"x-dry-run"
DIFF_HEADER = b"x-dry-run-changes"
DIFF_HEADER_BYTES = 4096
"""Proxies take 8 KiB of headers or more."""
WHITE_SPACE = " \t"
"""Around a header's value (RFC 9110, 5.6.3). Python strips far more by itself: a credential with a
no-break space after it is another credential."""


def principal_of(scope: Scope) -> Principal:
    """The caller, as the edge identified it."""
    return scope[PRINCIPAL]


def dry_run_of(scope: Scope) -> bool:
    """Whether the caller asks to be told what would happen, without storing it.

    Any value but `false` asks so: who wrote `1` or `yes` did not mean that it be stored. Where the
    header stands twice, one of them is enough: a proxy may have added the other.
    """
    if DRY_RUN_HEADER not in headers_of(scope):
        return False
    values = [value for name, value in scope["headers"] if name == DRY_RUN_HEADER]
    return any(value.decode("latin-1").strip(WHITE_SPACE).lower() != "false" for value in values)


def request_id_of(scope: Scope) -> str:
    """The request's id."""
    return scope[REQUEST_ID]


def call_of(
    scope: Scope,
    tool: str,
    arguments: Any = None,
    *,
    transport: str = "http",
    principal: Principal | None = None,
    attachments: Delivery = Delivery.PIECES,
    request: RequestHeaders | None = None,
) -> Call:
    """The call that a request makes, of its caller unless somebody else is named."""
    return Call(
        tool=tool,
        arguments=arguments,
        principal=principal or scope[PRINCIPAL],
        request_id=scope[REQUEST_ID],
        transport=transport,
        dry_run=dry_run_of(scope),
        attachments=attachments,
        request=request,
    )


def headers_of(scope: Scope) -> dict[bytes, bytes]:
    """The request's headers by name; the first where one stands twice."""
    known: dict[bytes, bytes] | None = scope.get(HEADERS)
    if known is None:
        known = scope[HEADERS] = dict(reversed(scope["headers"]))
    return known


def header(scope: Scope, name: bytes) -> str | None:
    """One request header without the white space around it, or None."""
    value = headers_of(scope).get(name)
    return None if value is None else value.decode("latin-1").strip(WHITE_SPACE)


def body_length(scope: Scope) -> int | None:
    """How many bytes the body of a request has; None where its head does not plainly say so.

    White space behind the number and zeros before it pass the parser, and stay in the header.
    """
    headers = headers_of(scope)
    if b"transfer-encoding" in headers:
        return None
    length = headers.get(b"content-length", b"0").strip(WHITE_SPACE.encode())
    return int(length) if length.isdigit() and len(length) <= MAX_LENGTH_DIGITS else None


def credential_of(scope: Scope) -> str | None:
    """The key or token that a request brings."""
    scheme, _, credential = (header(scope, b"authorization") or "").partition(" ")
    return credential.strip(WHITE_SPACE) or None if scheme.lower() == "bearer" else None


def replay(message: Message, receive: Receive) -> Receive:
    """A channel that gives a message once more, then what follows it."""
    pending = [message]

    async def receive_again() -> Message:
        return pending.pop() if pending else await receive()

    return receive_again


def cookies_of(scope: Scope) -> dict[str, str]:
    """The cookies as browsers send them (RFC 6265, 5.4), by name, without quotes around a value.

    Others' cookies may hold anything: the standard library gives up at the first it does not like.
    Of two with the same name the first counts: browsers put the one with the longer path there.
    """
    values = [value.decode("latin-1") for key, value in scope["headers"] if key == b"cookie"]
    found: dict[str, str] = {}
    for pair in ";".join(values).split(";"):
        name, equals, value = pair.partition("=")
        value = value.strip(WHITE_SPACE)
        if len(value) > 1 and value[0] == value[-1] == '"':
            value = value[1:-1]
        if equals:
            found.setdefault(name.strip(WHITE_SPACE), value)
    return found


class ClientGone(Exception):
    """The client left before its request was complete; there is nobody to answer."""


class CredentialEnded(Exception):
    """The caller's credential was revoked, or has expired, since the head of its request came."""


def too_large(most: int, what: str = "The request body") -> TooLarge:
    """What is said of a body over the limit."""
    settings = "settings limits.body_bytes and, for files, limits.attachment_bytes"
    return TooLarge(f"{what} is over the limit of {most} bytes ({settings}).")


async def read_body(scope: Scope, receive: Receive, most: int) -> bytes:
    """The whole body; raises `TooLarge` past `most` bytes.

    One that took a while may be of a caller that is none any more: that is looked at again.
    """
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body", False):
        body: bytes = message.get("body", b"")  # nearly always: all of it at once
    else:
        body = await _rest_of_body(message, receive, most)
        if check := scope.get(CHECK_CREDENTIAL):
            await check(scope)
    if len(body) > most:
        raise too_large(most)
    return body


async def _rest_of_body(message: Message, receive: Receive, most: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while message["type"] == "http.request":
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if not message.get("more_body", False):
            return b"".join(parts)
        if size > most:
            raise too_large(most)
        message = await receive()
    raise ClientGone


def parse_json(body: bytes, *, with_file: bool = False) -> Any:
    """The body as JSON; integers keep every digit. `with_file` if it is over the usual limit."""
    try:
        if len(body) > LARGE:
            return _parse_large(body, with_file)
        found = orjson.loads(body)  # says what is valid: UTF-8, whole characters, finite numbers
        if body.count(b"[") + body.count(b"{") > MAX_NESTED:
            _check_depth(found)
        # The quick parser rounds integers over 64 bits, which have 19 digits or more.
        digits = len(body) - len(body.translate(None, DIGITS))
        long = digits >= LONG and LONG_NUMBER.search(body) is not None
        return json.loads(body) if long else found
    except (ValueError, RecursionError) as problem:
        raise InvalidArguments(
            [Problem("body", "format", f"The request body is not valid JSON: {problem}")]
        ) from None


def _parse_large(body: bytes, with_file: bool) -> Any:
    """The same for a body that may hold very many values, or one that is very long."""
    separators = _separators(body)
    most = FEW if with_file else MAX_VALUES
    if separators > most and _has_many_values(body, most):
        size = " and is over limits.body_bytes" if with_file else ""
        message = f"The request body has more than {most} values{size}. Send fewer at once"
        raise InvalidArguments([Problem("body", "range", message)])
    if separators < FEW:
        return _parse_file(body)
    with _garbage_kept():
        found = orjson.loads(body)
        few = few_values(found)
        _check_depth(found)
        if few is not None:  # one of them is very long, as a file in base64 is
            long = any(isinstance(one, float) and abs(one) >= LEAST_ROUNDED for one in few)
        else:
            long = LONG_NUMBER.search(body) is not None
        return json.loads(body) if long else found


def _parse_file(body: bytes) -> Any:
    """The same for few values, of which one is very long, as a file in base64 is.

    The quick parser copies the body first; this one does not, and keeps every digit of an integer.
    """
    found = from_json(body, allow_inf_nan=False, cache_strings="none")
    _check_depth(found)
    numbers = (one for one in few_values(found) or () if isinstance(one, int | float))
    if any(abs(one) >= LEAST_INFINITE for one in numbers):
        raise ValueError("a number is too large")
    return found


def _has_many_values(body: bytes, most: int) -> bool:
    """Whether there are more, told from the bytes; those within texts do not count."""
    plain = body.replace(rb"\\", b"").replace(rb"\"", b"") if b"\\" in body else body
    if plain.count(b'"') > 4 * most:  # a name and a text for each
        return True
    return _separators(b"".join(plain.split(b'"')[::2])) > most


def _separators(text: bytes) -> int:
    """About as many as there are values."""
    return sum(_count(text, separator) for separator in (b",", b"[", b"{"))


def _count(text: bytes, byte: bytes) -> int:
    """How often a byte occurs; quickly where it hardly does: a file in base64 has none of them.

    `find` looks at many bytes at a time, and `count` at each.
    """
    at = -1
    for number in range(FEW):
        at = text.find(byte, at + 1)
        if at < 0:
            return number
    return FEW + text.count(byte, at + 1)


@contextmanager
def _garbage_kept() -> Generator[None]:
    """Parse without looking for garbage: there is none, and each look takes as long as all before.

    Nobody else runs meanwhile, so nobody else's garbage has to wait.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def few_values(value: Any) -> list[Any] | None:
    """The values in a value that are neither lists nor objects; None where there are many."""
    found: list[Any] = []
    left: list[Any] = [value]
    seen = 0
    while left:
        if seen + len(left) > FEW:
            return None
        seen += 1
        one = left.pop()
        if isinstance(one, dict):
            left.extend(cast("dict[str, Any]", one).values())
        elif isinstance(one, list):
            left.extend(cast("list[Any]", one))
        else:
            found.append(one)
    return found


def _check_depth(value: Any) -> None:
    """Refuse a value that is nested too deep; level by level, for it may be very deep."""
    level = [value]
    for _ in range(MAX_NESTED):
        level = [
            inner
            for outer in level
            if isinstance(outer, list | dict)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    if any(isinstance(one, list | dict) for one in level):
        message = f"The request body is nested more than {MAX_NESTED} levels deep"
        raise InvalidArguments([Problem("body", "range", message)])


async def send(
    to: Send, status: int, body: bytes, headers: Headers = (), *, content: Any = JSON
) -> None:
    """Answer with a body of known length."""
    length = (b"content-length", b"%d" % len(body))
    await to(
        {"type": "http.response.start", "status": status, "headers": [content, length, *headers]}
    )
    await to({"type": "http.response.body", "body": body})


async def respond_json(scope: Scope, status: int, body: bytes) -> None:
    """Answer with JSON, without going through those who look at every answer."""
    await send(scope[SEND], status, body, [(REQUEST_ID_HEADER, scope[REQUEST_ID].encode())])


async def send_json(to: Send, status: int, body: Any, headers: Headers = ()) -> None:
    """Answer with JSON."""
    await send(to, status, orjson.dumps(body), headers)


def outcome_headers(outcome: Outcome) -> Headers:
    """Headers of a call's answer: those that an error asks for, and what a dry run would change."""
    if outcome.diff is not None:
        return diff_headers(outcome.diff)
    return error_headers(outcome.error)


def diff_headers(diff: Diff) -> Headers:
    """What a dry run would change: a body is the tool's own answer, and has no place for it."""
    return [(DIFF_HEADER, diff.json(DIFF_HEADER_BYTES).encode())]


def error_headers(error: GateError | None) -> Headers:
    """Headers an error asks for."""
    if isinstance(error, RateLimited | WritesOff):
        return [(b"retry-after", b"%d" % error.retry_after)]
    if isinstance(error, MethodNotAllowed):
        return [(b"allow", error.allow.encode())]
    return []

"""The outermost layer of HTTP: right host, right origin, a request id, and who is calling.

Nothing behind it is reached without credentials, except `/healthz` and `/readyz`.
"""

import logging
import re
from collections.abc import Callable, Iterable

from sqlalchemy.exc import SQLAlchemyError

from toolgate.gate.dialects import NEUTRAL, Dialect
from toolgate.gate.errors import GateError, Unauthenticated
from toolgate.gate.ids import Ids
from toolgate.gate.pipeline import Call, Gate
from toolgate.gate.principal import ANONYMOUS
from toolgate.identity.keys import Keys
from toolgate.transports.asgi import (
    PRINCIPAL,
    REQUEST_ID,
    ASGIApp,
    ClientGone,
    Message,
    Receive,
    Scope,
    Send,
    header,
    send_json,
)

logger = logging.getLogger(__name__)
_ids = Ids()

OPEN_PATHS = {"/healthz", "/readyz"}
GOOD_REQUEST_ID = re.compile(r"[A-Za-z0-9._:/+=-]{1,128}")
CHALLENGE = (b"www-authenticate", b'Bearer realm="toolgate"')
CREDENTIALS_REQUIRED = "credentials-required"


class Edge:
    """Guards an ASGI app."""

    def __init__(
        self,
        inner: ASGIApp,
        gate: Gate,
        keys: Keys,
        *,
        allowed_hosts: Iterable[str],
        allowed_origins: Iterable[str],
        dialect: Callable[[str], Dialect | None],
    ) -> None:
        self._inner = inner
        self._gate = gate
        self._keys = keys
        self._hosts = frozenset(allowed_hosts)
        self._origins = frozenset(allowed_origins)
        self._dialect = dialect

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or say why not."""
        if scope["type"] != "http":
            return
        request_id = _request_id(scope)
        scope[REQUEST_ID] = request_id
        send = _stamped(send, request_id)
        if not self._host_allowed(header(scope, b"host")):
            told = "This host name is not served here (setting server.allowed_hosts)."
            return await send_json(send, 421, {"error": told})
        if not self._origin_allowed(header(scope, b"origin")):
            told = "This web origin may not call (setting server.allowed_origins)."
            return await send_json(send, 403, {"error": told})
        try:
            known = scope["path"] in OPEN_PATHS or await self._identified(scope)
        except SQLAlchemyError:
            logger.warning("%s: keys cannot be looked up", request_id, exc_info=True)
            return await send_json(send, 503, {"error": "Keys cannot be checked now. Try again."})
        if not known:
            return await self._challenge(scope, send)
        try:
            await self._inner(scope, receive, send)
        except ClientGone:
            logger.debug("%s: the client left before its request was complete", request_id)

    async def _identified(self, scope: Scope) -> bool:
        scheme, _, credential = (header(scope, b"authorization") or "").partition(" ")
        if scheme.lower() != "bearer" or not credential:
            return False
        principal = await self._keys.identify(credential.strip())
        if principal is not None:
            scope[PRINCIPAL] = principal
        return principal is not None

    async def _challenge(self, scope: Scope, send: Send) -> None:
        call = Call(
            tool=scope["path"],
            arguments=None,
            principal=ANONYMOUS,
            request_id=scope[REQUEST_ID],
            transport="http",
        )
        told = "Unauthorized. Send `Authorization: Bearer KEY`; `toolgate keys create` makes one."
        refused = Unauthenticated(told)
        try:
            await self._gate.limits.admit(ANONYMOUS, call.tool)
            self._gate.refuse(call, refused, CREDENTIALS_REQUIRED)
        except GateError:
            pass  # strangers must not be able to fill the audit
        dialect = self._dialect(scope["path"]) or NEUTRAL
        await send_json(send, 401, dialect.failure(refused, False), [CHALLENGE])

    def _host_allowed(self, host: str | None) -> bool:
        if "*" in self._hosts:
            return True
        return host is not None and (host in self._hosts or _without_port(host) in self._hosts)

    def _origin_allowed(self, origin: str | None) -> bool:
        if origin is None or origin in self._origins:
            return True
        scheme, _, host = origin.partition("://")
        return scheme in ("http", "https") and self._host_allowed(host)


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host


def _request_id(scope: Scope) -> str:
    given = header(scope, b"x-request-id")
    return given if given and GOOD_REQUEST_ID.fullmatch(given) else _ids.new()


def _stamped(send: Send, request_id: str) -> Send:
    async def stamped(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [
                *message.get("headers", ()),
                (b"x-request-id", request_id.encode()),
            ]
        await send(message)

    return stamped

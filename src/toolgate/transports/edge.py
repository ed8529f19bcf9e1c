"""The outermost layer of HTTP: right host, right origin, a request id, and who is calling.

Nothing behind it is reached without credentials, except `/healthz`, `/readyz` and the endpoints
that give credentials out. A caller without good credentials gets the same answer for every path,
so that nothing tells which paths and packs there are.
"""

import logging
import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from toolgate.gate.dialects import JSON_RPC, NEUTRAL
from toolgate.gate.errors import (
    Forbidden,
    GateError,
    RateLimited,
    TokenExpired,
    Unauthenticated,
    Unavailable,
)
from toolgate.gate.ids import OF_REQUESTS, Ids
from toolgate.gate.pipeline import Gate
from toolgate.gate.principal import UNKNOWN_ACTOR, Actor
from toolgate.identity.credentials import SCOPE, Credentials, InsufficientScope, ValidCredential
from toolgate.identity.guesses import Guesses, Unusable
from toolgate.identity.oauth import opaque
from toolgate.ports.documents import StoreUnavailable
from toolgate.transports.address import ADDRESS, Address, Addresses, Told
from toolgate.transports.asgi import (
    CHECK_CREDENTIAL,
    HEAD,
    PRINCIPAL,
    REQUEST_ID,
    REQUEST_ID_HEADER,
    SEND,
    UNAUTHENTICATED,
    ASGIApp,
    ClientGone,
    CredentialEnded,
    Message,
    Receive,
    Scope,
    Send,
    credential_of,
    error_headers,
    header,
    send_json,
)
from toolgate.transports.connection.heads import Head, Heads, UnknownCredential, key_of
from toolgate.transports.cors import is_preflight, response_headers, send_preflight
from toolgate.transports.jsonrpc import failure
from toolgate.transports.refusals import CREDENTIALS_REQUIRED, refuse_unauthenticated
from toolgate.transports.stream_credentials import validity_check

logger = logging.getLogger(__name__)
_ids = Ids(OF_REQUESTS)

GOOD_REQUEST_ID = re.compile(rf"(?!{OF_REQUESTS}[0-9a-f]{{32}}\Z)[A-Za-z0-9._:/+=-]{{1,128}}")
"""What a client may call its request; nothing that looks like an id of ours."""
PORT = re.compile(r":[0-9]{1,5}\Z")
MAX_SERVED = 1000
SCOPE_REQUIRED = "scope-required"
GUESS_LIMIT = "guess-limit"
COUNTERS_UNAVAILABLE = "counters-unavailable"
CHALLENGED = (401, 403)
RPC = "/rpc"
"""Where refusals are JSON-RPC, too: what is there is the same on every server."""
UNAUTHORIZED = "Unauthorized. Send `Authorization: Bearer KEY`; `toolgate keys create` makes one."
EXPIRED = "Unauthorized: the key or token has expired. Get a new one."
UNCHECKED = "Keys cannot be checked now. Try again."


class Edge:
    """Guards an ASGI app."""

    def __init__(
        self,
        inner: ASGIApp,
        gate: Gate,
        credentials: Credentials,
        guesses: Guesses,
        heads: Heads,
        *,
        peer: Callable[[Scope], str],
        addresses: Addresses,
        allowed_hosts: Iterable[str],
        allowed_origins: Iterable[str],
        is_open: Callable[[str], bool],
    ) -> None:
        self._inner = inner
        self._gate = gate
        self._credentials = credentials
        self._guesses = guesses
        self._peer = peer
        self._addresses = addresses
        public = {addresses.public_host} if addresses.public_host else set[str]()
        self._hosts = frozenset(allowed_hosts) | public
        self._origins = frozenset(allowed_origins)
        self._is_open = is_open
        self.heads = heads
        self._served: dict[Told, Address] = {}
        """Addresses that were found good."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or say why not."""
        if scope["type"] != "http":
            return
        head = self.heads.recall(key_of(scope))
        scope[REQUEST_ID] = request_id = _ids.new() if head else _request_id(scope)
        origin = header(scope, b"origin") if head is None else None
        if origin is not None and self._origin_allowed(origin):
            send = _with_cors_headers(send, origin)
        scope[SEND] = send
        scope[CHECK_CREDENTIAL] = self._check_credential
        send = _with_request_id(send, request_id)
        if head is not None:
            scope[HEAD] = head
            scope[PRINCIPAL], scope[ADDRESS] = head.principal, head.address
        elif not await self._let_in(scope, send, origin):
            return
        try:
            await self._inner(scope, receive, send)
        except ClientGone:
            logger.debug("%s: the client left before its request was complete", request_id)
        except CredentialEnded:
            await self._challenge(scope, send)

    async def _check_credential(self, scope: Scope) -> None:
        """Look again whether the caller may come in, for a request that has taken a while."""
        if PRINCIPAL not in scope:
            return
        try:
            good = await validity_check(self._credentials, scope)()
        except InsufficientScope:
            good = False
        except (SQLAlchemyError, StoreUnavailable):
            raise Unavailable(UNCHECKED) from None
        if not good:
            raise CredentialEnded

    async def _let_in(self, scope: Scope, send: Send, origin: str | None) -> bool:
        """Whether a request that comes in for the first time may; if not, it has been answered."""
        address = self._address(scope)
        if address is None or not self._origin_allowed(origin):
            await send_json(send, *_misdirected(scope, address))
            return False
        if origin is not None and is_preflight(scope):
            await send_preflight(scope, send, self._gate.catalogue)
            return False
        scope[ADDRESS] = address
        return self._is_open(scope["path"]) or await self._authenticated(scope, send, address)

    async def _authenticated(self, scope: Scope, send: Send, address: Address) -> bool:
        """Whether the caller is known; if not, it has been answered."""
        try:
            if await self._identify_caller(scope, address):
                return True
            await self._challenge(scope, send)
        except Unusable as genuine:
            await self._challenge(scope, send, genuine.actor, expired=await self._expired(scope))
        except InsufficientScope:
            await self._forbid(scope, send)
        except GateError as refused:  # too many wrong ones, or they cannot be counted
            limited = isinstance(refused, RateLimited)
            rule = GUESS_LIMIT if limited else COUNTERS_UNAVAILABLE
            await self._refuse(scope, send, refused, rule)
        except (SQLAlchemyError, StoreUnavailable):
            logger.debug("%s: keys cannot be looked up", scope[REQUEST_ID], exc_info=True)
            away = Unavailable(UNCHECKED)
            await send_json(send, away.status, _body(scope, away))
        return False

    async def _expired(self, scope: Scope) -> bool:
        """Whether a genuine credential is not good because its time is over."""
        try:
            return await self._credentials.has_expired(credential_of(scope) or "")
        except (SQLAlchemyError, StoreUnavailable):
            return False

    def _address(self, scope: Scope) -> Address | None:
        """Our address as the caller knows it; None where it is not served."""
        if _host_twice(scope):
            return None
        seen = self._addresses.requested(scope)
        known = self._served.get(seen)
        if known is None and self._host_allowed(seen[1]):
            known = self._addresses.address(*seen)
            if known is not None and len(self._served) < MAX_SERVED:
                self._served[seen] = known
        return known

    async def _identify_caller(self, scope: Scope, address: Address) -> bool:
        credential = credential_of(scope)
        if not credential:
            return False
        peer = self._peer(scope)
        known = await self._identify(credential, address, peer)
        if known is None:
            return False
        scope[PRINCIPAL] = known.principal
        # A request id that is given is new every time; the answer to a web page has more headers
        # than what is known of a head could say.
        if header(scope, REQUEST_ID_HEADER) is None and header(scope, b"origin") is None:
            scope[HEAD] = head = Head(
                known.principal, address, known.until, authenticate=self._authenticate, peer=peer
            )
            self.heads.keep(key_of(scope), head)
        return True

    def _authenticate(self, unknown: UnknownCredential) -> Head | Awaitable[Head | None]:
        """The head of a caller whose headers are known but for the credential.

        At once where that is remembered: as good as every call takes this way where thousands of
        keys take turns.
        """
        pattern, digest = unknown.pattern, opaque.digest(unknown.credential)
        if self._guesses.is_known_good(pattern.peer, digest):
            known = self._credentials.recall(digest, pattern.address.resources)
            if known is not None:
                return self._keep(unknown, known)
        return self._look_up(unknown, digest)

    async def _look_up(self, unknown: UnknownCredential, digest: bytes) -> Head | None:
        """The same by the database.

        None where there is something to refuse: then the request comes as a whole, is refused like
        any other, and its credential is not counted a second time.
        """
        pattern = unknown.pattern
        try:
            known = await self._identify(unknown.credential, pattern.address, pattern.peer, digest)
        except (Unusable, InsufficientScope, GateError, SQLAlchemyError, StoreUnavailable):
            return None
        return None if known is None else self._keep(unknown, known)

    def _keep(self, unknown: UnknownCredential, known: ValidCredential) -> Head:
        head = unknown.pattern.for_caller(known.principal, known.until)
        self.heads.keep(unknown.key, head)
        return head

    async def _identify(
        self, credential: str, address: Address, peer: str, digest: bytes | None = None
    ) -> ValidCredential | None:
        digest = digest or opaque.digest(credential)

        def find(given: str) -> Awaitable[ValidCredential | None]:
            return self._credentials.identify(given, address.resources, None, digest)

        return await self._guesses.look_up(credential, peer, find, digest)

    async def _challenge(
        self,
        scope: Scope,
        send: Send,
        actor: Actor = UNKNOWN_ACTOR,
        *,
        expired: bool = False,
    ) -> None:
        error = "invalid_token" if credential_of(scope) else None
        refused = TokenExpired(EXPIRED) if expired else Unauthenticated(UNAUTHORIZED)
        await self._refuse(scope, send, refused, CREDENTIALS_REQUIRED, error, actor=actor)

    async def _forbid(self, scope: Scope, send: Send) -> None:
        refused = Forbidden(f"The token was not given for this. Ask for the scope {SCOPE}.")
        await self._refuse(scope, send, refused, SCOPE_REQUIRED, "insufficient_scope")

    async def _refuse(
        self,
        scope: Scope,
        send: Send,
        refused: GateError,
        rule: str,
        error: str | None = None,
        *,
        actor: Actor = UNKNOWN_ACTOR,
    ) -> None:
        scope[UNAUTHENTICATED] = True
        scope.pop(PRINCIPAL, None)  # it may have been good when the request began
        peer = self._peer(scope)
        problem = refuse_unauthenticated(self._gate, scope, refused, rule, peer, actor=actor)
        if credential_of(scope) is None:
            # Nothing was looked up, and a client signs in only when it is challenged.
            problem = refused
        headers = [*error_headers(problem)]
        if problem.status in CHALLENGED:
            headers.append((b"www-authenticate", _challenge_text(scope, error).encode()))
        await send_json(send, problem.status, _body(scope, problem), headers)

    def _host_allowed(self, host: str | None) -> bool:
        if "*" in self._hosts:
            return bool(host)
        return host is not None and (host in self._hosts or _without_port(host) in self._hosts)

    def _origin_allowed(self, origin: str | None) -> bool:
        if origin is None or origin in self._origins:
            return True
        scheme, _, host = origin.partition("://")
        return scheme in ("http", "https") and self._host_allowed(host)


def _body(scope: Scope, refused: GateError) -> dict[str, Any]:
    """A refusal in words that the caller of this path can read, whoever it is."""
    if scope["path"] != RPC:
        return NEUTRAL.failure(refused, False)
    told = JSON_RPC.failure(refused, False)
    return failure(None, told["code"], told["message"], told["data"])


def _host_twice(scope: Scope) -> bool:
    return sum(name == b"host" for name, _ in scope["headers"]) > 1


def _misdirected(scope: Scope, address: Address | None) -> tuple[int, dict[str, str]]:
    """The status and the body for a request that was not meant for us."""
    if _host_twice(scope):
        return 400, {"error": "The header Host is there more than once. Send one."}
    if address is None:
        message = "This host name is not served here (setting server.allowed_hosts)."
        return 421, {"error": message}
    return 403, {"error": "This web origin may not call (setting server.allowed_origins)."}


def _challenge_text(scope: Scope, error: str | None) -> str:
    """How to get credentials (RFC 6750, RFC 9728)."""
    address: Address = scope[ADDRESS]
    why = f'error="{error}", ' if error else ""
    where = address.metadata_url(scope["path"])
    return f'Bearer realm="toolgate", {why}resource_metadata="{where}", scope="{SCOPE}"'


def _without_port(host: str) -> str:
    return PORT.sub("", host)


def _request_id(scope: Scope) -> str:
    given = header(scope, REQUEST_ID_HEADER)
    return given if given and GOOD_REQUEST_ID.fullmatch(given) else _ids.new()


def _with_request_id(send: Send, request_id: str) -> Send:
    async def stamped(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [
                *message.get("headers", ()),
                (REQUEST_ID_HEADER, request_id.encode()),
            ]
        await send(message)

    return stamped


def _with_cors_headers(send: Send, origin: str) -> Send:
    """Answers that a page of an allowed origin may read."""

    async def shared(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *response_headers(origin)]
        await send(message)

    return shared

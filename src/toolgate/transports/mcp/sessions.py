"""The SDK's Streamable HTTP: stateless wherever the client allows it.

A client of the older protocol that declares sampling, elicitation or roots can be asked
questions while a tool runs. Its answer comes in another request, so it gets a session, which
lives in this process and belongs to the caller that opened it. Where tools may change while the
server runs, every older client gets one: only then does it open the stream that tells it so.
"""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import anyio
from mcp.server import Server
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import INVALID_REQUEST

from toolgate.gate.pipeline import Gate
from toolgate.identity.credentials import Credentials
from toolgate.sections import Settings
from toolgate.transports.asgi import (
    ASGIApp,
    Message,
    Receive,
    Scope,
    Send,
    dry_run_of,
    header,
    principal_of,
    replay,
    request_id_of,
    send_json,
)
from toolgate.transports.attachments import held_until_sent, in_pieces
from toolgate.transports.mcp.handshake import opening_request, request_in
from toolgate.transports.mcp.listing import TRANSPORT
from toolgate.transports.mcp.quotas import QuotaReached, SessionQuota, StreamQuota
from toolgate.transports.mcp.sdk_requests import Caller, SdkContext
from toolgate.transports.mcp.server import build_server
from toolgate.transports.stream_credentials import stream_while_valid, validity_check

TOOLS_CHANGED = (
    b'event: message\r\ndata: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\r\n\r\n'
)
PATIENCE = 1.0
IDLE_SECONDS = 1800.0
"""How long a session lives without a request."""
MAX_SESSIONS = 10_000
"""Of all callers together, in this process."""
RETRY_LATER = [(b"retry-after", b"60")]
OK = 200


def sessions(gate: Gate, credentials: Credentials, settings: Settings) -> "Sessions":
    """The SDK's ASGI app for this gate."""

    def who(raw: SdkContext) -> Caller:
        assert raw.request is not None
        scope = raw.request.scope
        good = validity_check(credentials, scope)
        return Caller(principal_of(scope), request_id_of(scope), dry_run_of(scope), good)

    names = settings.mcp.underscore_names
    streams = StreamQuota(settings.mcp.streams)
    server = build_server(gate, who, transport=TRANSPORT, underscore_names=names, streams=streams)
    # With several processes a session would be found only by luck, so few clients get one.
    for_all = gate.catalogue.changing and settings.server.workers == 1
    quota = SessionQuota(settings.mcp.sessions, IDLE_SECONDS)
    most = gate.limits.largest_body(gate.catalogue)
    made = Sessions(server, credentials, most, quota, streams, for_all=for_all)
    gate.catalogue.listeners.append(made.standing.announce)
    return made


class OpenStreams:
    """The streams that older clients keep open to be told of changes."""

    def __init__(self) -> None:
        self._open: set[Send] = set()

    async def serve(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one such stream; what is announced meanwhile goes into it too."""

        async def watched(message: Message) -> None:
            await send(message)
            if message["type"] == "http.response.start" and message["status"] == OK:
                self._open.add(send)

        try:
            await app(scope, receive, watched)
        finally:
            self._open.discard(send)

    async def announce(self) -> None:
        """Tell every stream that the list of tools has changed; none is waited for long."""
        async with anyio.create_task_group() as tasks:
            for to in self._open:
                tasks.start_soon(self._tell, to)

    async def _tell(self, to: Send) -> None:
        with suppress(OSError, RuntimeError), anyio.move_on_after(PATIENCE):
            await to({"type": "http.response.body", "body": TOOLS_CHANGED, "more_body": True})


class Sessions:
    """Chooses between a request without a session and one with."""

    def __init__(
        self,
        server: Server[Any],
        credentials: Credentials,
        body_bytes: int,
        quota: SessionQuota,
        streams: StreamQuota,
        *,
        for_all: bool,
    ) -> None:
        self.standing = OpenStreams()
        self._credentials = credentials
        self._quota = quota
        self._streams = streams
        self._for_all = for_all
        self._stateless, self._stateful, self._reading = (
            StreamableHTTPSessionManager(
                server,
                json_response=json_response,
                stateless=stateless,
                # The edge has checked host and origin already.
                security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
                max_request_body_size=body_bytes,
                session_idle_timeout=IDLE_SECONDS,
                max_sessions=MAX_SESSIONS,
            )
            for stateless, json_response in ((True, False), (False, False), (True, True))
        )

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None, None]:
        """Keep the managers alive."""
        async with AsyncExitStack() as stack:
            for manager in (self._stateless, self._stateful, self._reading):
                await stack.enter_async_context(manager.run())
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request whose body `receive` gives in one piece."""
        with held_until_sent(scope):
            await self._serve(scope, receive, in_pieces(send))

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        principal = principal_of(scope)
        # A grant is a caller of its own: another client of the same person gets none of its
        # sessions. The SDK binds a session to this user, and answers everybody else with 404.
        caller = f"{principal.id} {principal.grant_id}" if principal.grant_id else principal.id
        scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=caller, scopes=[]))
        scope["headers"] = [(key, value.strip(b" \t")) for key, value in scope["headers"]]
        session_id = header(scope, b"mcp-session-id")
        try:
            if scope["method"] == "GET":
                with self._streams.reserve(caller):
                    return await stream_while_valid(
                        validity_check(self._credentials, scope),
                        lambda to: self._of_session(caller, session_id, scope, receive, to),
                        send,
                    )
            body, rest = b"", receive
            if scope["method"] == "POST":
                message = await receive()
                receive, body = replay(message, receive), message.get("body", b"")
            if request_in(body, "resources/read"):
                return await self._read(caller, session_id, scope, receive, send)
            if session_id is not None:
                return await self._of_session(caller, session_id, scope, receive, send)
            if opening := opening_request(body, any_client=self._for_all):
                shortened: Message = {"type": "http.request", "body": opening, "more_body": False}
                return await self._open(caller, scope, replay(shortened, rest), send)
        except QuotaReached as reached:
            return await send_json(send, 429, _error_response(str(reached)), RETRY_LATER)
        await StreamableHTTPASGIApp(self._stateless)(scope, receive, send)

    async def _of_session(
        self, caller: str, session_id: str | None, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Serve a request of an open session, or a stream without one."""
        if session_id is None:
            return await StreamableHTTPASGIApp(self._stateless)(scope, receive, send)
        app = StreamableHTTPASGIApp(self._stateful)
        with self._quota.using(caller, session_id):
            if scope["method"] == "GET":
                return await self.standing.serve(app, scope, receive, send)
            await app(scope, receive, send)
        if scope["method"] == "DELETE":
            self._quota.forget(caller, session_id)
        return None

    async def _read(
        self, caller: str, session_id: str | None, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Read a resource, answered as JSON: clients limit the size of an event."""
        if session_id is not None and not self._quota.has(caller, session_id):
            return await self._of_session(caller, session_id, scope, receive, send)
        scope["headers"] = [one for one in scope["headers"] if one[0] != b"mcp-session-id"]
        with self._quota.using(caller, session_id or ""):
            await StreamableHTTPASGIApp(self._reading)(scope, receive, send)

    async def _open(self, caller: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Open a session; the caller's longest idle one ends where it has too many."""
        with self._quota.reserve(caller) as opening:
            if opening.replaces is not None:
                await self._end(opening.replaces, scope)

            async def noticing(message: Message) -> None:
                if message["type"] == "http.response.start" and message["status"] == OK:
                    for name, value in message["headers"]:
                        if name.lower() == b"mcp-session-id":
                            opening.confirm(value.decode("latin-1"))
                await send(message)

            await StreamableHTTPASGIApp(self._stateful)(scope, receive, noticing)

    async def _end(self, session_id: str, scope: Scope) -> None:
        """End a session as its client would, with DELETE."""
        headers = [(b"mcp-session-id", session_id.encode("latin-1"))]
        delete = {
            "type": "http",
            "method": "DELETE",
            "path": scope["path"],
            "query_string": b"",
            "headers": headers,
            "user": scope["user"],
        }

        async def nothing() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def discard(message: Message) -> None:
            del message

        await StreamableHTTPASGIApp(self._stateful)(delete, nothing, discard)


def _error_response(message: str) -> dict[str, Any]:
    """A JSON-RPC error that answers no request in particular."""
    return {"jsonrpc": "2.0", "id": None, "error": {"code": INVALID_REQUEST, "message": message}}

"""The server's end of the bridge: Streamable HTTP of both protocol eras.

A request that never reached the server is sent again, for a while. One that may have begun is
repeated only if it cannot change anything; a call of a tool never is.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import httpx2
import orjson

from toolgate.transports.jsonrpc import failure_line
from toolgate.transports.mcp.bridge.faults import (
    Fault,
    NotReached,
    SessionLost,
    connection_lost,
    refusal,
    unreachable,
)
from toolgate.transports.mcp.bridge.messages import HEADER_MISMATCH, Message, inner
from toolgate.transports.mcp.bridge.messages import one_line as in_one_line
from toolgate.transports.mcp.bridge.mirrors import MARK, Mirrors, header_value
from toolgate.transports.mcp.bridge.sessions import INITIALIZED, BridgeSession

Out = Callable[[bytes], Awaitable[None]]
Say = Callable[[str], None]

FIRST_PATIENCE = 5.0
"""Seconds to wait for a server that never answered: its address may be wrong."""
PATIENCE = 30.0
"""Seconds to wait for one that did: it may be starting again."""
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 2.0
CLOSE_SECONDS = 2.0
MAX_RENEWALS = 3
MAX_PAGES = 100
SESSION = "mcp-session-id"
VERSION = "mcp-protocol-version"
HARMLESS = {
    "initialize",
    "notifications/initialized",
    "notifications/cancelled",
    "ping",
    "server/discover",
    "tools/list",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "completion/complete",
    "logging/setLevel",
}
"""What may be sent twice."""


class Remote:
    """A server, as messages are sent to it."""

    def __init__(
        self, url: str, client: httpx2.AsyncClient, *, ca: Path | None, longest: int, say: Say
    ) -> None:
        self.url = url
        self.session = BridgeSession()
        self._client = client
        self._ca = ca
        self._longest = longest
        self._say = say
        self._mirrors = Mirrors()
        self._newest: str | None = None
        self._met = False
        self._renewing = anyio.Lock()

    async def deliver(self, message: Message, out: Out) -> None:
        """Send a message and pass on what comes back; raises `Fault` when nothing can."""
        self.session.keep(message)
        patience = PATIENCE if self._met else FIRST_PATIENCE
        deadline = anyio.current_time() + patience
        pause, renewals = FIRST_PAUSE, 0
        while True:
            try:
                return await self._exchange(message, out)
            except SessionLost as lost:
                renewals += 1
                if renewals > MAX_RENEWALS:
                    why = "does not keep its sessions. With several workers, older clients need one"
                    raise Fault(f"{self.url} {why} (setting server.workers).") from None
                problem = await self._renew(lost.session)
            except NotReached as fault:
                problem = fault
            if problem is None:
                continue
            if anyio.current_time() + pause > deadline:
                raise Fault(str(problem))
            self._say(f"{problem} Trying for {patience:g} s.")
            await anyio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def listen(self, out: Out) -> None:
        """Pass on what the server sends to a session by itself, as long as there is one."""
        lost = 0
        while (session := self.session.id) and lost <= MAX_RENEWALS:
            try:
                if not await self._listen_once(session, out):
                    return
                lost = 0
            except SessionLost:
                lost += 1
                await self._renew(session)
            except (httpx2.TransportError, httpx2.SSEError):
                pass
            await anyio.sleep(LONGEST_PAUSE / 2)

    async def close(self) -> None:
        """Tell the server that the session is over, if it can be told."""
        if self.session.id is None:
            return
        # A session that cannot be ended now ends by itself later.
        with anyio.move_on_after(CLOSE_SECONDS), suppress(httpx2.HTTPError):
            await self._client.delete(self.url, headers=self._of_session(self.session.id))

    async def _exchange(self, message: Message, out: Out) -> None:
        """One HTTP request."""
        headers = self._headers(message)
        try:
            posted = self._client.stream("POST", self.url, content=message.raw, headers=headers)
            async with posted as answer:
                self._met = True
                self._say("")
                await self._pass_on(message, answer, self._observed(message, answer, out))
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise unreachable(error, self.url, self._ca) from error
        except (httpx2.TransportError, httpx2.SSEError) as error:
            fault = connection_lost(self.url, message.method, error)
            raise NotReached(str(fault)) if message.method in HARMLESS else fault from error

    async def _pass_on(self, message: Message, answer: httpx2.Response, out: Out) -> None:
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if answer.is_success and kind == "text/event-stream" and message.is_request:
            return await self._pass_stream(message, answer, out)
        body = await self._body(answer)
        if answer.status_code == 404 and (session := answer.request.headers.get(SESSION)):
            raise SessionLost(session)
        if not answer.is_success:
            return await self._pass_error(message, answer, body, out)
        if not message.is_request:
            return None
        if kind != "application/json":
            raise Fault(f"{self.url} answered {kind or 'nothing'}; it is no MCP endpoint.")
        await out(_line(body, self.url))

    async def _pass_stream(self, message: Message, answer: httpx2.Response, out: Out) -> None:
        async for event in httpx2.EventSource(answer, max_event_size=self._longest):
            if not event.data:
                continue
            line = _line(event.data.encode(), self.url)
            await out(line)
            read: Any = orjson.loads(line)
            if inner(read, "method") is None and inner(read, "id") == message.id:
                return
        raise httpx2.ReadError("the stream ended without an answer")

    async def _pass_error(
        self, message: Message, answer: httpx2.Response, body: bytes, out: Out
    ) -> None:
        """An error in the protocol's own form keeps it; its id may be missing."""
        error = _protocol_error(body)
        if error is None or not message.is_request or answer.status_code == 401:
            known = "authorization" in answer.request.headers
            raise refusal(answer, body, self.url, known)
        if error["code"] == HEADER_MISMATCH and not self._mirrors.headers(message):
            await self._learn(message)
            if self._mirrors.headers(message):
                return await self._exchange(message, out)
        await out(failure_line(message.id, error["code"], error["message"], error.get("data")))

    async def _body(self, answer: httpx2.Response) -> bytes:
        found = bytearray()
        async for chunk in answer.aiter_bytes():
            found += chunk
            if len(found) > self._longest:
                raise Fault(f"{self.url} answered with more than {self._longest} bytes.")
        return bytes(found)

    def _observed(self, message: Message, answer: httpx2.Response, out: Out) -> Out:
        """`out`, with an eye on what later requests depend on."""
        if message.method == "initialize":

            async def agreed(line: bytes) -> None:
                version = inner(inner(orjson.loads(line), "result"), "protocolVersion")
                if isinstance(version, str):
                    kept = self.session.kept
                    self.session = BridgeSession(
                        message, answer.headers.get(SESSION), version, kept
                    )
                await out(line)

            return agreed
        if message.method == "tools/list" and message.version:

            async def listed(line: bytes) -> None:
                if MARK in line:
                    self._mirrors.learn(line)
                await out(line)

            return listed
        return out

    async def _learn(self, call: Message) -> None:
        """List the tools ourselves: the client called one without having seen its schema."""
        meta = inner(call.params, "_meta")
        cursor: Any = None
        for _ in range(MAX_PAGES):
            params = {"_meta": meta} | ({"cursor": cursor} if cursor else {})
            asked = {"jsonrpc": "2.0", "id": 0, "method": "tools/list", "params": params}
            page: list[bytes] = []
            wanted = Message(orjson.dumps(asked), 0, "tools/list", params)
            await self._exchange(wanted, _into(page))
            cursor = self._mirrors.learn(page[-1])
            if not cursor:
                return

    async def _renew(self, lost: str) -> NotReached | None:
        """Shake hands again for a session that is gone; tells when the server is not there."""
        async with self._renewing:
            hello = self.session.hello
            if hello is None or self.session.id != lost:
                return None
            answers: list[bytes] = []
            try:
                await self._exchange(hello, _into(answers))
                if self.session.id == lost:
                    raise Fault(f"{self.url} ended the session and does not begin another.")
                for message in (INITIALIZED, *self.session.kept.values()):
                    await self._exchange(message, _into(answers))
            except NotReached as problem:
                return problem
            return None

    async def _listen_once(self, session: str, out: Out) -> bool:
        """One stream to its end; False when the server offers none."""
        headers = self._of_session(session)
        async with self._client.stream("GET", self.url, headers=headers) as answer:
            if answer.status_code == 404:
                raise SessionLost(session)
            if not answer.is_success:
                return False
            async for event in httpx2.EventSource(answer, max_event_size=self._longest):
                if event.data:
                    await out(_line(event.data.encode(), self.url))
        return True

    def _headers(self, message: Message) -> dict[str, str]:
        """Where the message goes; the newer protocol repeats parts of the body here."""
        if version := message.version:
            self._newest = version
            headers = {VERSION: version, "mcp-method": message.method or ""}
            if message.target is not None:
                headers["mcp-name"] = message.target
            encoded = {name: header_value(value) for name, value in headers.items()}
            return encoded | self._mirrors.headers(message)
        if message.method == "initialize":
            return {}
        if self.session.hello is None and self._newest:
            return {VERSION: header_value(self._newest)}
        return self._of_session(self.session.id)

    def _of_session(self, session: str | None) -> dict[str, str]:
        agreed = {VERSION: self.session.version, SESSION: session}
        return {name: header_value(value) for name, value in agreed.items() if value}


def _into(lines: list[bytes]) -> Out:
    async def take(line: bytes) -> None:
        lines.append(line)

    return take


def _line(body: bytes, url: str) -> bytes:
    try:
        return in_one_line(body)
    except ValueError:
        raise Fault(f"{url} answered with something that is no JSON-RPC message.") from None


def _protocol_error(body: bytes) -> dict[str, Any] | None:
    """The `error` of a JSON-RPC answer; None when it is something else."""
    try:
        error = inner(orjson.loads(body), "error")
    except orjson.JSONDecodeError:
        return None
    fits = isinstance(inner(error, "code"), int) and isinstance(inner(error, "message"), str)
    return error if fits else None

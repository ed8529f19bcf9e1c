"""The client's end of the bridge: lines in, lines out, many requests at once."""

import logging
import ssl
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import httpx2
import orjson
from anyio.abc import TaskGroup

from toolgate.transports.jsonrpc import INTERNAL_ERROR, PARSE_ERROR, failure_line, id_around, is_id
from toolgate.transports.mcp.bridge.faults import Fault
from toolgate.transports.mcp.bridge.lines import Lines
from toolgate.transports.mcp.bridge.messages import (
    Message,
    UnreadableLine,
    inner,
    read,
)
from toolgate.transports.mcp.bridge.remote import Remote, Say
from toolgate.transports.mcp.lines import Line, LineTooLong

logger = logging.getLogger(__name__)

CONNECT_SECONDS = 10.0
SILENT_SECONDS = 600.0
GRACE_SECONDS = 5.0
LONGEST_ANSWER = 64 * 1024 * 1024
HANDSHAKE = {"initialize", "notifications/initialized"}
ENDLESS = {"subscriptions/listen"}
LOCAL = ("localhost", "127.0.0.1", "::1")


async def bridge(
    url: str, credential: str | None, *, ca: Path | None, longest: int, say: Say
) -> None:
    """Serve one client on standard input and output from the server at `url`."""
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    if credential:
        headers["authorization"] = f"Bearer {credential}"
    say_once = OnceOnly(say)
    client = httpx2.AsyncClient(
        headers=headers,
        verify=ssl.create_default_context(cafile=ca) if ca else True,
        timeout=httpx2.Timeout(SILENT_SECONDS, connect=CONNECT_SECONDS, pool=None),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=16),
        # A proxy of the environment is for other machines, never for this one.
        trust_env=httpx2.URL(url).host not in LOCAL,
    )
    async with client:
        remote = Remote(url, client, ca=ca, longest=LONGEST_ANSWER, say=say_once)
        await Relay(Lines(longest), remote, say_once).run()


class OnceOnly:
    """Says a thing once, until something else happened."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._last = ""

    def __call__(self, text: str) -> None:
        """Say a sentence; an empty one means that all is well again."""
        if text and text != self._last:
            self._say(text)
        self._last = text


@dataclass(slots=True, eq=False)
class RunningMessage:
    """A message on its way."""

    message: Message
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)


class Relay:
    """Passes messages between a client's lines and a server."""

    def __init__(self, lines: Lines, remote: Remote, say: Say) -> None:
        self._lines = lines
        self._remote = remote
        self._say = say
        self._running: dict[bytes, RunningMessage] = {}
        self._busy: set[RunningMessage] = set()
        self._settled = anyio.Event()
        self._settled.set()
        self._idle = anyio.Event()
        self._ending = False
        self._listening = False
        self._tasks: TaskGroup | None = None

    async def run(self) -> None:
        """Go on until the client closes its end and what runs had a moment to finish."""
        async with anyio.create_task_group() as self._tasks:
            async for line in self._lines.read():
                await self._take(self._tasks, line)
            self._ending = True
            self._note_end()
            with anyio.move_on_after(GRACE_SECONDS):
                await self._idle.wait()
            self._tasks.cancel_scope.cancel()
        await self._remote.close()

    async def _take(self, tasks: TaskGroup, line: Line) -> None:
        if isinstance(line, LineTooLong):
            sentence = f"This line is longer than {self._lines.longest} bytes and was left out."
            self._say(sentence)
            unread = id_around(line.beginning, line.ending)
            return await self._lines.write(failure_line(unread, PARSE_ERROR, sentence))
        try:
            message = read(line)
        except UnreadableLine as problem:
            return await self._lines.write(failure_line(problem.id, problem.code, str(problem)))
        if message.method == "notifications/cancelled" and self._cancel(message):
            return None
        running = RunningMessage(message)
        if message.is_request:
            self._running[message.key] = running
        if message.method not in ENDLESS:
            self._busy.add(running)
        before = self._settled
        if message.method in HANDSHAKE:
            self._settled = anyio.Event()
        tasks.start_soon(self._pass, running, before, self._settled)

    def _cancel(self, message: Message) -> bool:
        """End a running request; True when the server needs no word of it.

        To the newer protocol, and to a server that keeps no session, the end of the HTTP request
        is the cancellation.
        """
        wanted = inner(message.params, "requestId")
        running = self._running.get(orjson.dumps(wanted)) if is_id(wanted) else None
        if running and (running.message.version or self._remote.session.id is None):
            running.scope.cancel()
            return True
        return running is None and self._remote.session.id is None

    async def _pass(
        self, running: RunningMessage, before: anyio.Event, settled: anyio.Event
    ) -> None:
        message = running.message
        try:
            with running.scope:
                if message.version is None:
                    # A request must not overtake the handshake before it.
                    await before.wait()
                await self._deliver(message)
        except OSError:
            self._stop()  # the client does not read any more
        finally:
            if message.method in HANDSHAKE:
                settled.set()
            if message.is_request and self._running.get(message.key) is running:
                del self._running[message.key]
            self._busy.discard(running)
            self._note_end()

    async def _deliver(self, message: Message) -> None:
        try:
            await self._remote.deliver(message, self._lines.write)
            if message.method == "notifications/initialized":
                self._listen()
        except Fault as fault:
            self._say(str(fault))
            await self._fail(message, str(fault))
        except OSError:
            raise
        except Exception:
            logger.exception("a message could not be passed on")
            await self._fail(message, "The bridge failed; see its standard error.")

    async def _fail(self, message: Message, sentence: str) -> None:
        if message.is_request:
            await self._lines.write(failure_line(message.id, INTERNAL_ERROR, sentence))

    def _listen(self) -> None:
        if self._tasks and self._remote.session.id and not self._listening:
            self._listening = True
            self._tasks.start_soon(self._listen_again)

    async def _listen_again(self) -> None:
        try:
            await self._remote.listen(self._lines.write)
        except Fault as fault:
            self._say(str(fault))
        except OSError:
            self._stop()
        finally:
            self._listening = False

    def _note_end(self) -> None:
        if self._ending and not self._busy:
            self._idle.set()

    def _stop(self) -> None:
        if self._tasks:
            self._tasks.cancel_scope.cancel()

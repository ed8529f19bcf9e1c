"""Requests that are not small: how much of them waits in this process, and of whom.

Up to 64 KiB nobody asks. A larger body takes room before it is read and gives it back when its
call has ended, so that many that come slowly do not fill the memory; who has no calls left is told
so unread. A request with a file, which is larger than others may be, goes to a temporary file as it
comes, however slowly, and is read when it is its turn: one at a time, caller by caller. Only who
may call a tool that takes files may send one, with a `Content-Length` that says so.
"""

import asyncio
from collections.abc import Awaitable, Collection
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from toolgate.gate.errors import GateError, RateLimited, Unavailable
from toolgate.gate.pipeline import Gate
from toolgate.gate.principal import Principal
from toolgate.gate.turns import Turns
from toolgate.gate.unsent import RETRY_SECONDS, UnsentBytes
from toolgate.transports.asgi import (
    BODY_LIMIT,
    CHECK_CREDENTIAL,
    LARGE,
    MORE_SECONDS,
    PRINCIPAL,
    REQUEST_ID,
    SEND,
    ASGIApp,
    ClientGone,
    Message,
    Receive,
    Scope,
    Send,
    body_length,
    replay,
    too_large,
)
from toolgate.transports.body_files import BodyFile

MAX_IN_MEMORY = 128 * 1024 * 1024
MAX_IN_FILES = 512 * 1024 * 1024
"""Of all callers in this process, each: one holds about half at most."""
LEAST_FILE = MAX_IN_FILES // 32
"""What a file counts for, however small it is: each takes one of the process's open files, too."""
BODY_METHODS = ("PUT", "PATCH", "DELETE")
NOT_STORED = "Requests with a file cannot be taken now: it cannot be stored. Try again later."
NO_TURN = "Other requests with files take long. Try again later."


class PendingBytes(UnsentBytes):
    """Room for bodies whose calls have not ended."""

    def refusal(self, held: int) -> RateLimited:
        """What is said to who finds none."""
        why = (
            f"Your requests that are not answered yet have {held} bytes. Send fewer at once"
            if held
            else "Other callers' requests take all room for large ones"
        )
        return RateLimited(f"{why}. Try again in {RETRY_SECONDS} s.", RETRY_SECONDS)


class LargeBodies:
    """Stands before the transports."""

    def __init__(
        self, inner: ASGIApp, gate: Gate, folder: Path, *, tools: str, any_tool: Collection[str]
    ) -> None:
        self._inner = inner
        self._folder = folder
        """For the temporary files, which have no name there."""
        self._gate = gate
        self._tools = tools
        """Where the path ends with the tool's name."""
        self._any_tool = any_tool
        """Paths where only the body names the tool."""
        self._usual = gate.limits.settings.body_bytes
        self._small = min(LARGE, self._usual)
        self._in_memory = PendingBytes(MAX_IN_MEMORY)
        self._in_files = PendingBytes(MAX_IN_FILES)
        self._turns = Turns(1)

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Hand a request on; one that is not small, when there is room for it."""
        length = body_length(scope)
        small = length is not None and length <= self._small
        if small or PRINCIPAL not in scope or not self._reads(scope):
            return self._inner(scope, receive, send)
        return self._take(scope, receive, send, length)

    def _reads(self, scope: Scope) -> bool:
        """Whether a body is read at all there; where none is, no more comes than fits a buffer."""
        method: str = scope["method"]
        return method == "POST" or (method in BODY_METHODS and scope["path"] not in self._any_tool)

    async def _take(self, scope: Scope, receive: Receive, send: Send, length: int | None) -> None:
        """Hand a request on with what it takes; or with nothing but why it is not taken."""
        principal: Principal = scope[PRINCIPAL]
        with ExitStack() as held:
            try:
                await self._gate.limits.check_left(principal)
                if length is not None and length > self._usual:
                    receive = await self._from_file(scope, receive, length, held)
                else:
                    room = Room(self._in_memory, principal.id, held)
                    room.take(LARGE if length is None else length)
                    receive = receive if length is not None else room.counting(receive)
            except GateError as refused:
                held.close()
                receive = _refusing(refused, receive)
            await self._inner(scope, receive, _ending(scope, send, held))

    async def _from_file(
        self, scope: Scope, receive: Receive, length: int, held: ExitStack
    ) -> Receive:
        """Keep a body in a file until it is its turn; a channel that gives it as a whole."""
        most, caller = self._most(scope), scope[PRINCIPAL].id
        scope[BODY_LIMIT] = most
        if length > most:
            raise too_large(most)
        settings = self._gate.limits.settings
        scope[MORE_SECONDS] = settings.body_seconds * (length / self._usual - 1)
        try:
            with (
                self._in_files.take(caller, max(length, LEAST_FILE)),
                BodyFile(self._folder, length) as file,
            ):
                await _keep(file, receive)
                await self._wait_for_turn(caller, receive)
                held.callback(self._turns.release, caller)
                body = file.read()
        except OSError as problem:
            self._gate.failures.note(scope[REQUEST_ID], "a request with a file", problem)
            raise Unavailable(NOT_STORED) from None
        finally:
            scope.pop(MORE_SECONDS, None)
        await scope[CHECK_CREDENTIAL](scope)
        # Whatever a call does for longer than a call may take, it does not keep others waiting.
        timer = asyncio.get_running_loop().call_later(settings.seconds, held.close)
        held.callback(timer.cancel)
        # Whoever reads it holds it, and nobody else.
        return replay({"type": "http.request", "body": body, "more_body": False}, receive)

    def _most(self, scope: Scope) -> int:
        """Largest request of this caller at this path."""
        principal, path, limits = scope[PRINCIPAL], scope["path"], self._gate.limits
        if scope["method"] != "POST":
            return self._usual
        if path in self._any_tool:
            return limits.largest_body(self._gate.visible(principal))
        name = path.removeprefix(self._tools)
        tool = self._gate.catalogue.find(name) if name != path else None
        if tool is None or not self._gate.policy.decide(principal, tool).visible:
            return self._usual
        return limits.body_bytes(tool)

    async def _wait_for_turn(self, caller: str, receive: Receive) -> None:
        """Wait for a turn, but neither for long nor for a client that has left."""
        if self._turns.free:
            self._turns.free -= 1
            return
        gone = asyncio.ensure_future(receive())  # nothing else comes after a whole body
        turn = asyncio.ensure_future(self._turns.wait(caller))
        taken, seconds = False, self._gate.limits.settings.seconds
        try:
            await asyncio.wait({gone, turn}, timeout=seconds, return_when="FIRST_COMPLETED")
            if gone.done():
                raise ClientGone
            if not turn.done():
                raise Unavailable(NO_TURN)
            taken = True
        finally:
            gone.cancel()
            if not taken and turn.done():
                self._turns.release(caller)
            elif not taken:
                turn.cancel()


class Room:
    """What one request takes of the room in memory."""

    def __init__(self, pending: PendingBytes, caller: str, held: ExitStack) -> None:
        self._pending = pending
        self._caller = caller
        self._held = held
        self._left = 0

    def take(self, size: int) -> None:
        """Take more; raises `RateLimited` where there is none."""
        self._held.enter_context(self._pending.take(self._caller, size))
        self._left += size

    def counting(self, receive: Receive) -> Receive:
        """A channel that takes room as bytes come, where nobody said how many."""

        async def counted() -> Message:
            message = await receive()
            self._left -= len(message.get("body", b""))
            if self._left < 0:
                self.take(LARGE - self._left)
            return message

        return counted


def _refusing(refused: GateError, receive: Receive) -> Receive:
    """A channel that gives an error in place of a body, so that each transport words it."""
    pending = [refused]

    async def refuse() -> Message:
        if pending:
            raise pending.pop()
        return await receive()

    return refuse


def _ending(scope: Scope, send: Send, held: ExitStack) -> Send:
    """Give back what is held when the answer begins: its reader may take as long as it likes."""

    def noting(to: Send) -> Send:
        async def noted(message: Message) -> None:
            held.close()
            await to(message)

        return noted

    scope[SEND] = noting(scope[SEND])
    return noting(send)


async def _keep(file: BodyFile, receive: Receive) -> None:
    """Write a body to a file; the server sees to it that it is as long as it is said to be."""
    more = True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientGone
        file.write(message.get("body", b""))
        more = message.get("more_body", False)


def most_bytes(gate: Gate, tool: str) -> int:
    """Largest request that calls a tool; one that is unknown takes no file."""
    found = gate.catalogue.find(tool)
    return gate.limits.settings.body_bytes if found is None else gate.limits.body_bytes(found)


def tool_called(message: Any) -> str:
    """The tool that a message of MCP calls; nothing where it calls none."""
    match message:
        case {"method": "tools/call", "params": {"name": str() as name}}:
            return name
        case _:
            return ""

"""Connections to one SMTP server, kept open between mails, never more than so many."""

import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import anyio
from aiosmtplib import SMTP, SMTPException

MAX_MAILS = 500
"""Over one connection; many servers end one after some hundreds."""
IDLE_SECONDS = 60.0
"""Servers close connections that are idle for some minutes."""
QUIT_SECONDS = 2.0

Connect = Callable[[], Awaitable[SMTP]]


@dataclass(slots=True)
class Connection:
    """A connection while one mail uses it."""

    client: SMTP
    connect: Connect
    used: int = 0
    """Mails that went over it."""
    is_new: bool = True
    """Nothing was said on it before, so the server cannot have closed it for being idle."""
    idle_since: float = 0.0

    def drop(self) -> None:
        """Use it no more: who knows what the server believes."""
        self.client.close()

    async def reset(self) -> None:
        """End a mail that was not handed over, so that the next can begin."""
        try:
            await self.client.rset()
        except SMTPException:
            self.drop()

    async def renew(self) -> None:
        """Another connection in its place."""
        self.drop()
        self.client = await self.connect()
        self.used, self.is_new = 0, True


class NoTurn(Exception):
    """All connections were in use for as long as a mail may wait; nothing was handed over."""


class Pool:
    """The connections that are kept; a mail waits where all are in use.

    Mails of campaigns leave one connection to the others, so that nobody waits behind a campaign;
    where there is only one, at most one of them is before a single mail.
    """

    def __init__(self, connect: Connect, size: int, seconds: float) -> None:
        self._connect = connect
        self._seconds = seconds
        """How long a single mail waits for its turn."""
        self._turns = anyio.Semaphore(size)
        self._of_campaigns = anyio.Semaphore(max(1, size - 1))
        self._idle: deque[Connection] = deque()

    @asynccontextmanager
    async def connection(self, *, of_campaign: bool = False) -> AsyncGenerator[Connection]:
        """A connection for one mail; it is kept unless it was dropped or the mail was cancelled.

        Raises `NoTurn` where a single mail does not get one in time: nothing was sent.
        """
        async with self._turn(of_campaign=of_campaign):
            connection = self._kept() or Connection(await self._connect(), self._connect)
            try:
                yield connection
            except BaseException:
                connection.drop()
                raise
            self._keep(connection)

    @asynccontextmanager
    async def _turn(self, *, of_campaign: bool) -> AsyncGenerator[None]:
        if of_campaign:
            async with self._of_campaigns, self._turns:
                yield
            return
        try:
            self._turns.acquire_nowait()
        except anyio.WouldBlock:
            with anyio.move_on_after(self._seconds) as waiting:
                await self._turns.acquire()
            if waiting.cancelled_caught:
                raise NoTurn from None
        try:
            yield
        finally:
            self._turns.release()

    async def close(self) -> None:
        """Say goodbye on the connections that are kept."""
        while self._idle:
            client = self._idle.pop().client
            with anyio.move_on_after(QUIT_SECONDS), suppress(SMTPException):
                await client.quit()
            client.close()

    def _kept(self) -> Connection | None:
        """The connection used last; those that were idle for long are closed."""
        too_old = time.monotonic() - IDLE_SECONDS
        while self._idle and self._idle[0].idle_since < too_old:
            self._idle.popleft().drop()
        while self._idle:
            connection = self._idle.pop()
            if connection.client.is_connected:
                connection.is_new = False
                return connection
        return None

    def _keep(self, connection: Connection) -> None:
        if connection.client.is_connected and connection.used < MAX_MAILS:
            connection.idle_since = time.monotonic()
            self._idle.append(connection)
        else:
            connection.drop()

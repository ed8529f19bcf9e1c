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


class Pool:
    """The connections that are kept; a mail waits where all are in use."""

    def __init__(self, connect: Connect, size: int) -> None:
        self._connect = connect
        self._turns = anyio.Semaphore(size)
        self._idle: deque[Connection] = deque()

    @asynccontextmanager
    async def connection(self) -> AsyncGenerator[Connection]:
        """A connection for one mail; it is kept unless it was dropped or the mail was cancelled."""
        async with self._turns:
            connection = self._kept() or Connection(await self._connect(), self._connect)
            try:
                yield connection
            except BaseException:
                connection.drop()
                raise
            self._keep(connection)

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

"""A line to a database that can go silent: bytes stop, connections stay."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from sqlalchemy import URL, make_url


class SilentLine:
    """Passes bytes on to PostgreSQL, until it is told not to."""

    def __init__(self, database: URL) -> None:
        self._database = database
        self._up = asyncio.Event()
        self._down = asyncio.Event()
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.asked = asyncio.Event()
        """Set when bytes came from the client that were not passed on, or whose answer is not."""
        self.watch_for = b""
        """When the client sends this, answers are withheld from then on."""
        self.came = asyncio.Event()
        """Set when it did."""
        self.resume()

    def freeze(self) -> None:
        """Pass nothing on, in neither direction."""
        self._up.clear()
        self._down.clear()
        self.asked.clear()

    def withhold_answers(self) -> None:
        """Pass on what is asked, but no answer."""
        self._down.clear()
        self.asked.clear()

    def resume(self) -> None:
        """Pass everything on."""
        self._up.set()
        self._down.set()

    def cut(self) -> None:
        """End every connection."""
        for one in self._open:
            one.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of a client."""
        self._tasks.add(task := asyncio.current_task())  # type: ignore[arg-type]
        folder, port = self._database.query.get("host"), self._database.port or 5432
        try:
            if folder:
                there = await asyncio.open_unix_connection(f"{folder}/.s.PGSQL.{port}")
            else:
                there = await asyncio.open_connection(self._database.host, port)
            self._open |= {writer, there[1]}
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pass(reader, there[1], self._up))
                both.create_task(self._pass(there[0], writer, self._down))
        except* (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()
            self._tasks.discard(task)  # type: ignore[arg-type]

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, going: asyncio.Event
    ) -> None:
        try:
            while data := await reader.read(65536):
                if going is self._up:
                    if self.watch_for and self.watch_for in data:
                        self.withhold_answers()
                        self.came.set()
                    if not (self._up.is_set() and self._down.is_set()):
                        self.asked.set()
                await going.wait()
                writer.write(data)
                await writer.drain()
        finally:
            with suppress(OSError):
                writer.transport.abort()

    async def close(self) -> None:
        """End what is left."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def silent_line(database_url: str) -> AsyncIterator[tuple[SilentLine, str]]:
    """A line to a database, and the address of its near end."""
    there = make_url(database_url)
    line = SilentLine(there)
    server = await asyncio.start_server(line.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    near = URL.create(
        there.drivername, there.username, there.password, "127.0.0.1", port, there.database
    )
    try:
        yield line, near.render_as_string(hide_password=False)
    finally:
        server.close()
        await line.close()

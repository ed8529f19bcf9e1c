"""Small writes to PostgreSQL on the event loop: those that wait go in one statement, which commits.

A write takes one round trip this way, and shares it with those that come while another is under
way. What does not succeed here stores nothing and goes the usual way, which knows how to tell what
is wrong: a record that is there already or was changed meanwhile, a row that somebody holds, a
value that the server refuses. Who shares a statement with one that waits for a row waits with it,
for a tenth of a second at most; and who comes for that row then does not share one.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import anyio
import asyncpg  # pyright: ignore[reportMissingTypeStubs]
from sqlalchemy import URL
from sqlalchemy.exc import OperationalError

from toolgate.db.connections import session_settings
from toolgate.db.grouped_writes import MAX_TOGETHER, WaitingWrite
from toolgate.db.held_records import HeldRecords, WrittenRecord
from toolgate.db.outages import DatabaseTimeout, is_rejected_by_server, is_statement_cancelled
from toolgate.db.postgres_lines import FAILURES, Line, Lines
from toolgate.db.row_writes import RowWrite, combine, record_of, weight_of_rows
from toolgate.db.threads import GRACE_SECONDS, has_ended

WAIT_FOR_ROWS = "SET lock_timeout = '100ms'"
"""Who waits longer for a row that others hold waits alone."""
MAX_WRITE_BYTES = 256 * 1024
"""A larger one goes the usual way: the event loop would stand still while it is put into words."""
MAX_GROUP_BYTES = 1024 * 1024
Waiting = WaitingWrite[Sequence[RowWrite]]


class PostgresWrites:
    """Takes writes in the order in which they come."""

    def __init__(self, url: URL, *, patience: float, seconds: float) -> None:
        set_up = f"{session_settings(seconds)}; {WAIT_FOR_ROWS}"
        self.lines = Lines(url, set_up, patience=patience, most=1)
        self._patience = patience
        self._records = HeldRecords(patience)
        self._waiting: list[Waiting] = []
        self._drain: asyncio.Task[None] | None = None

    def writing(self, rows: Sequence[RowWrite]) -> AbstractContextManager[WrittenRecord]:
        """The record that a write is about, until it is stored, here or the usual way."""
        return self._records.writing(rows)

    async def store(self, write: Waiting) -> bool:
        """Return once it is stored, or False where it has to go the usual way.

        Raises where nobody knows whether it is stored.
        """
        write.weight = weight_of_rows(write.what, MAX_WRITE_BYTES)
        if write.weight > MAX_WRITE_BYTES:
            return False
        self._waiting.append(write)
        if self._drain is None or self._drain.done():
            self._drain = asyncio.create_task(self._store_all())
        try:
            await asyncio.shield(write.done)
        except asyncio.CancelledError:
            if not write.withdraw():
                with anyio.CancelScope(shield=True):
                    await has_ended(write.done, GRACE_SECONDS)
            raise
        except Exception:
            if write.rejected:
                return False
            raise
        return True

    async def close(self) -> None:
        """What waits goes the usual way, which is closed too; what is under way may end."""
        closing = asyncio.create_task(self.lines.close())
        if self._drain is not None and not await has_ended(self._drain, GRACE_SECONDS):
            self._drain.cancel()
        await closing

    async def _store_all(self) -> None:
        # First whoever else is about to write in this turn of the event loop.
        await asyncio.sleep(0)
        while self._waiting:
            group = self._next_group()
            if not group:
                continue
            try:
                await self._store_group(group)
            except BaseException as error:
                for one in group:
                    if one.error is None and not one.stored:
                        one.fail(error, rejected=False)
                if not isinstance(error, Exception):
                    raise
            finally:
                for one in group:
                    one.tell()

    def _next_group(self) -> list[Waiting]:
        """The first of those that wait; of several that write one record, only one."""
        group: list[Waiting] = []
        left: list[Waiting] = []
        records: set[Any] = set()
        weight = 0
        for one in self._waiting:
            record = record_of(one.what)
            full = len(group) == MAX_TOGETHER or weight + one.weight > MAX_GROUP_BYTES
            if self._records.is_held(record):
                _reject([one], LookupError("held by others"))
                one.tell()
            elif full or record in records:
                left.append(one)
            elif one.claim():
                group.append(one)
                weight += one.weight
            if record is not None:
                records.add(record)
        self._waiting = left
        return group

    async def _store_group(self, group: Sequence[Waiting]) -> None:
        try:
            statement = combine([one.what for one in group])
        except Exception as problem:
            return _reject(group, problem)  # a value that cannot be told: the usual way tells whose
        if any(one.connection.is_closed() for one in self.lines.free):
            self.lines.drop_free()
        sending = _Sending(*statement, self._patience)
        try:
            rows = await self.lines.use(sending.send)
        except (*FAILURES, TimeoutError) as problem:
            rejection = sending.rejection(problem)
            if isinstance(problem, asyncpg.LockNotAvailableError):
                for one in group:
                    self._records.note_held(one.what)
            return _reject(group, rejection)
        stored = {row[0] for row in rows}
        for number, one in enumerate(group):
            one.stored = number in stored
        return _reject([one for one in group if not one.stored], LookupError("another state"))


class _Sending:
    """A statement, and whether the server may have got it."""

    def __init__(self, text: str, values: Sequence[str], patience: float) -> None:
        self._text = text
        self._values = values
        self._patience = patience
        self._begun = False

    async def send(self, line: Line) -> Sequence[Any]:
        """Have it done."""
        self._begun = True
        async with asyncio.timeout(self._patience):
            return await line.rows(self._text, self._values)

    def rejection(self, problem: Exception) -> Exception:
        """The error of a statement that stored nothing; raises where that is not known."""
        error = OperationalError("a group of writes", None, problem, hide_parameters=True)
        if not self._begun or is_rejected_by_server(error) or is_statement_cancelled(error):
            return error
        if isinstance(problem, TimeoutError):
            raise DatabaseTimeout(f"no answer within {self._patience:g} s") from problem
        raise error from problem


def _reject(group: Sequence[Waiting], error: Exception) -> None:
    """Nothing of these is stored, which is known."""
    for one in group:
        one.fail(error, rejected=True)

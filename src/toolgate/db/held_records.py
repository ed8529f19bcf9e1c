"""Records that small writes to PostgreSQL found held by others.

A write that waits for such a record takes a turn and a connection. So one waits there, and those
that come after it for the same record wait here, where that costs nobody anything.
"""

import asyncio
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from sqlalchemy import Connection, text

from toolgate.db.row_writes import RowWrite, record_of

BOUND = "SET LOCAL lock_timeout = {milliseconds:d}"


class WrittenRecord:
    """A record, as long as there are writes of it."""

    def __init__(self, patience: float) -> None:
        self.held = False
        """Whether the last who wanted it had to wait too long for it."""
        self.writes = 0
        self._turn = asyncio.Lock()
        self._bound = text(BOUND.format(milliseconds=int(1000 * patience)))

    def bound_wait(self, connection: Connection) -> None:
        """Let a transaction wait for it no longer than the gate waits for its database."""
        connection.execute(self._bound)

    @asynccontextmanager
    async def in_turn(self) -> AsyncGenerator[None, None]:
        """Write it the usual way: where it is held, one after another."""
        if not self.held:
            yield
            return
        async with self._turn:
            yield
            self.held = False


class HeldRecords:
    """The records that are being written."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._records: dict[Any, WrittenRecord] = {}

    @contextmanager
    def writing(self, rows: Sequence[RowWrite]) -> Generator[WrittenRecord, None, None]:
        """The record that a write is about; one of its own where it is about none."""
        name = record_of(rows)
        record = self._records.get(name) or WrittenRecord(self._patience)
        if name is not None:
            self._records[name] = record
        record.writes += 1
        try:
            yield record
        finally:
            record.writes -= 1
            if not record.writes:
                self._records.pop(name, None)

    def note_held(self, rows: Sequence[RowWrite]) -> None:
        """A write, alone or with others, had to wait too long."""
        if record := self._records.get(record_of(rows)):
            record.held = True

    def is_held(self, name: Any) -> bool:
        """Whether writes of this record go one after another at present."""
        record = self._records.get(name)
        return record is not None and record.held

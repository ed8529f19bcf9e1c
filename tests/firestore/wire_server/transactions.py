"""Transactions that nobody waits for: what was read is compared at the end."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import grpc
from tests.firestore.wire_server.refusals import Message, Refusal, invalid


@dataclass(slots=True)
class Reads:
    """What a transaction has read: how to read it again, and what was there."""

    read_only: bool
    seen: list[tuple[Callable[[], Any], Any]] = field(
        default_factory=list[tuple[Callable[[], Any], Any]]
    )

    def are_as_before(self) -> bool:
        """Whether everything that was read would be read again as it was."""
        return all(read() == before for read, before in self.seen)


class Transactions:
    """Those that are in progress."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self.begun_anew: list[bytes] = []
        """Those that others say they take the place of."""
        self._open: dict[bytes, Reads] = {}

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, options: Message) -> bytes:
        """A new one."""
        name = f"transaction-{next(self._numbers)}".encode()
        self._open[name] = Reads(options.HasField("read_only"))
        if before := options.read_write.retry_transaction:
            self.begun_anew.append(before)
        return name

    def note(self, name: bytes, read: Callable[[], Any]) -> None:
        """Remember what is read in a transaction, if it is in one."""
        if name:
            self._of(name).seen.append((read, read()))

    def end(self, name: bytes) -> Reads:
        """No longer in progress, whatever comes of it."""
        reads = self._of(name)
        del self._open[name]
        return reads

    def commit(self, name: bytes, writes: int) -> None:
        """Refuse to end one that read what others have changed since."""
        if not name:
            return
        reads = self.end(name)
        if writes and reads.read_only:
            raise invalid("Cannot modify entities in a read-only transaction.")
        if not reads.are_as_before():
            text = "Aborted due to cross-transaction contention. This occurs when multiple "
            text += "transactions attempt to access the same data."
            raise Refusal(grpc.StatusCode.ABORTED, text)

    def _of(self, name: bytes) -> Reads:
        if name not in self._open:
            raise invalid("The referenced transaction has expired or is no longer valid.")
        return self._open[name]

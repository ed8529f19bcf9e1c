"""What was begun at a processor: stored before, so that after a crash it is known to ask."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from toolgate.db.transactions import Transaction

Json = dict[str, Any]
OPEN, DONE, REFUSED, NOT_DONE = "open", "done", "refused", "not done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """One cancellation or refund, from before it is asked for until its end is known."""

    id: str
    kind: str
    """`cancel` or `refund`."""
    uid: str
    processor: str
    resource_id: str
    request: Json = field(default_factory=dict[str, Any])
    """What the caller said, and what was worked out before."""

    @property
    def open_for(self) -> str:
        """What only one may be open for at a time."""
        return f"{self.kind} {self.processor} {self.resource_id}"

    @property
    def key(self) -> str:
        """The idempotency key of its requests."""
        return f"toolgate-{self.id}"


class Forgotten(NamedTuple):
    """How many rows went."""

    events: int
    intents: int


class Intents(Protocol):
    """Stores intents, and what processors have told."""

    async def begin(self, intent: Intent) -> Intent:
        """Store it, in a commit of its own; where one for the same is open, return that one."""
        ...

    async def end(self, tx: Transaction, intent: Intent, state: str, answer: Json) -> None:
        """It is not open any more once the transaction commits."""
        ...

    async def give_up(self, intent: Intent, state: str, answer: Json) -> None:
        """The same, in a commit of its own."""
        ...

    async def open_since(self, before: str, after: str, limit: int) -> Sequence[Intent]:
        """Open ones that began before a time, by their ids, behind `after`."""
        ...

    async def is_newest(
        self, tx: Transaction, processor: str, resource_id: str, read_at: int
    ) -> bool:
        """Whether nothing was asked for later than this; from now on, nothing was."""
        ...

    async def is_new_event(self, tx: Transaction, id: str, kind: str, created: int) -> bool:
        """Whether an event was never taken in before; once the transaction commits, it is."""
        ...

    async def forget(self, before: str, limit: int) -> Forgotten:
        """Forget events and ended intents from before a time, at most so many of each."""
        ...

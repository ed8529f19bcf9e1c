"""The recipients of a campaign, each once, and what became of the message to each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from toolgate.db.transactions import Transaction


class State(StrEnum):
    """What became of one message."""

    WAITING = "waiting"
    SENDING = "sending"
    """About to be handed over; the journal says whether it was."""
    ACCEPTED = "accepted"
    KEPT = "kept"
    """Not sent: there is only the outbox, as long as `mail.url` or `push.url` name no service."""
    REFUSED = "refused"
    SKIPPED = "skipped"
    """Not sent: consent was revoked."""
    UNKNOWN = "unknown"
    """Handed over and not confirmed: it may have been taken, so it is not sent again."""


@dataclass(frozen=True, slots=True)
class Addressee:
    """Somebody a campaign is for."""

    address: str
    uid: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Queued:
    """A message of a campaign that is to be sent."""

    number: int
    to: Addressee


Settled = tuple[int, State, str | None]
"""The number of a message, what became of it, and the server's words."""


class Deliveries(Protocol):
    """Keeps them."""

    async def add(
        self, tx: Transaction, campaign: str, first: int, addressees: Sequence[Addressee]
    ) -> None:
        """Store those that are not there yet, numbered from `first` on."""
        ...

    async def kept(self) -> Sequence[str]:
        """The campaigns of which messages are kept in the outbox."""
        ...

    async def release(self, tx: Transaction, campaign: str) -> int:
        """Let what was kept wait to be sent; how many recipients the campaign has."""
        ...

    async def next(self, campaign: str, limit: int) -> Sequence[Queued]:
        """Those that wait, in their order."""
        ...

    async def in_state(self, campaign: str, state: State) -> Sequence[int]:
        """The numbers of those in a state."""
        ...

    async def settle(self, tx: Transaction, campaign: str, settled: Sequence[Settled]) -> None:
        """Store what became of some."""
        ...

    async def counts(self, campaign: str) -> Mapping[State, int]:
        """How many there are in each state."""
        ...

    async def prune(self, tx: Transaction, campaign: str) -> int:
        """Forget the recipients of a campaign; how many there were."""
        ...

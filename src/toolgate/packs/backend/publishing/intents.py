"""Commits that are about to be made: stored first, so that after a crash it can be told.

A commit names the call it belongs to. An intent that is left says that somebody was stopped
between the commit and its record; the history of the branch says whether the commit was made.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from toolgate.db.transactions import Transaction

TRAILER = "Toolgate-Call"
Check: TypeAlias = Callable[[Transaction], Awaitable[None]]
"""Raises where a commit is not wanted any more."""


@dataclass(frozen=True, slots=True)
class PostIntent:
    """A commit that is about to be made."""

    call: str
    """The id of the audit row of its call."""
    digest: str
    """Of the caller, the repository and the arguments: a retry has the same."""
    slug: str
    created_at: str


class PostIntents(Protocol):
    """Keeps intents; each method but `finish` commits at once."""

    async def begin(self, intent: PostIntent, check: Check | None = None) -> None:
        """Store an intent, unless a check in the same transaction raises."""
        ...

    async def drop(self, calls: Sequence[str]) -> None:
        """Nothing more is to be found out about these."""
        ...

    async def finish(self, tx: Transaction, calls: Sequence[str]) -> None:
        """These are done, and known to be, once the transaction commits."""
        ...

    async def like(self, digest: str) -> list[PostIntent]:
        """What is left of the same call, made before."""
        ...

    async def before(self, time: str, most: int) -> list[PostIntent]:
        """What was begun before a time, the oldest first."""
        ...


def trailer(call: str) -> str:
    """The line of a commit message that names its call."""
    return f"{TRAILER}: {call}"


def call_of(message: str) -> str | None:
    """The call that a commit message names."""
    for line in reversed(message.splitlines()):
        name, _, value = line.partition(": ")
        if name == TRAILER:
            return value.strip()
    return None

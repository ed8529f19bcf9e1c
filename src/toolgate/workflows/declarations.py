"""How background work is declared, and what it is given while it runs."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

from toolgate.db.transactions import Transaction

World = TypeVar("World")
"""The ports of the pack that brings the workflow."""
Clock = Callable[[], datetime]


class RunStatus(StrEnum):
    """Where a run stands."""

    QUEUED = "queued"
    """Waits for its turn, or for its next attempt."""
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class RunFailed(Exception):
    """Raised by a workflow that cannot succeed, however often it is tried; told to whoever asks."""


class RunStopped(Exception):
    """The run does not go on here. Let it through."""


class RunCancelled(RunStopped):
    """Somebody cancelled it; its last checkpoint is stored."""


class RunReleased(RunStopped):
    """The server stops; another one goes on from the last checkpoint, which is stored."""


class RunLost(RunStopped):
    """Another worker has it, because the lease ended here. This checkpoint is not stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One run, as it is stored. Times are UTC in ISO 8601."""

    id: str
    workflow: str
    """With its pack: `backend/sync-users`."""
    status: RunStatus
    arguments: dict[str, Any]
    attempts: int
    cancelling: bool
    """Whether it is asked to stop at its next checkpoint."""
    done: float | None
    total: float | None
    message: str | None
    """What it says about its progress."""
    result: dict[str, Any] | None
    error: str | None
    """One sentence: why it failed, or why its last attempt did."""
    call: str | None
    """The id of the audit row of the call that started it."""
    created_at: str
    started_at: str | None
    updated_at: str
    ended_at: str | None
    due_at: str | None
    """When it is tried (next); None once it has ended."""

    @property
    def ended(self) -> bool:
        """Whether nothing more comes."""
        return self.ended_at is not None


class Leased(Protocol):
    """Stores what a run has come to, as long as its worker holds the lease."""

    async def checkpoint(
        self,
        state: dict[str, Any],
        *,
        done: float | None = None,
        total: float | None = None,
        message: str | None = None,
    ) -> None:
        """Store a checkpoint in a commit of its own."""
        ...

    async def checkpoint_in(
        self,
        tx: Transaction,
        state: dict[str, Any],
        *,
        done: float | None = None,
        total: float | None = None,
        message: str | None = None,
    ) -> None:
        """Store a checkpoint in this transaction."""
        ...

    def transaction(self) -> Transaction:
        """A transaction whose changes are the run's."""
        ...


@dataclass(kw_only=True)
class Run(Generic[World]):
    """What a workflow's function is given."""

    id: str
    arguments: dict[str, Any]
    world: World
    attempt: int
    """1 at first."""
    state: dict[str, Any]
    """The last checkpoint; empty at first."""
    leased: Leased = field(repr=False)

    async def checkpoint(
        self,
        state: dict[str, Any],
        *,
        done: float | None = None,
        total: float | None = None,
        message: str | None = None,
    ) -> None:
        """Store how far it has come: after a crash it goes on from here.

        Raises `RunStopped` where it is not to go on; the checkpoint is stored all the same, unless
        another worker has taken the run (`RunLost`).
        """
        self.state = state
        await self.leased.checkpoint(state, done=done, total=total, message=message)

    async def checkpoint_in(
        self,
        tx: Transaction,
        state: dict[str, Any],
        *,
        done: float | None = None,
        total: float | None = None,
        message: str | None = None,
    ) -> None:
        """The same in a transaction, of which both are stored or neither; its end raises."""
        self.state = state
        await self.leased.checkpoint_in(tx, state, done=done, total=total, message=message)

    def transaction(self) -> Transaction:
        """A transaction of the gate's database; what changes in it is logged as this run's."""
        return self.leased.transaction()


@dataclass(frozen=True, kw_only=True)
class Workflow(Generic[World]):
    """Background work that goes on after a crash, done by one worker at a time."""

    name: str
    """Unique within the pack, such as `sync-users` or `daily/reset-usage`."""
    summary: str
    run: Callable[[Run[World]], Coroutine[Any, Any, dict[str, Any]]]
    """Does it from `run.state` on, as often as it takes; returns its result, as JSON."""
    schedule: str | None = None
    """A cron expression, in UTC: when it starts by itself."""
    when: Callable[[World], Coroutine[Any, Any, bool]] | None = None
    """Asked then whether there is something to do: without it, no run, and no row in the audit."""
    alone: bool = True
    """At most one at a time; starting it again joins the one that is under way."""
    alike: str | None = None
    """Instead of `alone`: the argument of which there is at most one run at a time for each value;
    starting it again with the same value joins the one that is under way."""
    acts_as: tuple[str, ...] = ()
    """The tools whose work it does: while one of them is switched off, its runs wait. Where there
    are none, while its pack is."""
    attempts: int = 5
    """After so many it has failed; one that a clean stop interrupts does not count."""

    def alone_as(self, name: str, arguments: dict[str, Any]) -> str | None:
        """What only one run under way may be called; None where any number may be."""
        if self.alike is not None:
            value = arguments.get(self.alike)
            return None if value is None else f"{name} {value}"
        return name if self.alone else None


def utc_now() -> datetime:
    """The time."""
    return datetime.now(UTC)


def stamp(moment: datetime) -> str:
    """A moment as it is stored."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")

"""The open connections of this process: how many there may be, and which have to go.

Every process may open a limited number of files, and a connection is one. Before that limit is
reached, connections that have not sent a good credential are closed, the oldest first, so that
health checks and clients with credentials always get in. Where all have sent one, idle ones go,
then those whose requests are not complete: who has a key must not lock others out either.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from toolgate.sections import LimitSettings
from toolgate.throttled_log import ThrottledLog
from toolgate.transports.connection.log import RequestLog
from toolgate.transports.connection.unread import UnreadAnswers

logger = logging.getLogger(__name__)

CONNECTION_TABLE = "toolgate.connections"
"""Where connections find their table, in the state of the server's lifespan."""
MAX_DEFAULT = 10_000
MAX_BACKLOG = 2048
OTHER_FILES = 64
"""Files that are no connections of clients: the database, the log, the event loop's own."""
SWEEP_SECONDS = 1.0
CALM_SECONDS = 60.0


class Closable(Protocol):
    """A connection as the table sees it."""

    @property
    def caller(self) -> str | None:
        """Whose credential was accepted here; None for a stranger."""
        ...

    @property
    def is_answering(self) -> bool:
        """Whether an answer is being waited for: never closed for others."""
        ...

    @property
    def is_idle(self) -> bool:
        """Whether it is between requests."""
        ...

    def check_deadline(self, now: float) -> None:
        """Close if the client took too long."""

    def stop_reading(self) -> None:
        """Wait for no more of a request."""

    def drop(self) -> None:
        """Close at once."""


@dataclass(slots=True)
class _Place:
    """Whose a connection is."""

    peer: str | None
    """None for a peer that is not counted."""
    caller: str | None = None
    """None for a stranger."""


class _Groups(dict[str, dict[Closable, None]]):
    """Connections that have something in common, each group the oldest first; none is empty."""

    def put(self, name: str | None, connection: Closable) -> None:
        """Enter a connection, unless it belongs to no group."""
        if name is not None:
            self.setdefault(name, {})[connection] = None

    def take(self, name: str | None, connection: Closable) -> None:
        """Take a connection out, if it is there."""
        group = self.get(name) if name is not None else None
        if group is not None:
            group.pop(connection, None)
            if not group:
                del self[name]  # pyright: ignore[reportArgumentType]


class ConnectionTable:
    """Knows every open connection, closes those that are late and those that are too many."""

    def __init__(
        self,
        limits: LimitSettings,
        peer_of: Callable[[str], str | None] = str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limits = limits
        self.peer_of = peer_of
        """Whom an address stands for; None for one that stands for many."""
        self.capacity = limits.connections or default_capacity(open_files())
        self.share = max(1, self.capacity // 2)
        """How many of them one peer may have without credentials; a caller that has more with them
        gives some up before other callers do."""
        self.reserve = max(1, self.capacity // 8)
        """How many of them are kept for newcomers: else who holds all others, and connects again
        and again, closes every newcomer's before its first request has come."""
        self.unread = UnreadAnswers(limits.unsent_attachment_bytes, clock)
        self._clock = clock
        self._open: dict[Closable, _Place] = {}
        """Every connection, the oldest first."""
        self._newcomers: dict[Closable, None] = {}
        """Those of which no request has come yet."""
        self._strangers: dict[Closable, None] = {}
        """Those whose requests had no credentials."""
        self._of_peer = _Groups()
        """Those without credentials, by peer."""
        self._of_caller = _Groups()
        """Those with credentials."""
        self._full = ThrottledLog(logger, clock=clock)
        self._crowded = ThrottledLog(logger, clock=clock)
        self._refused = RequestLog()
        self._calm_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: Closable, peer: str | None) -> bool:
        """Enter a new connection, at the expense of older ones if need be; False if none can go."""
        if peer is not None and self._has_its_share(peer) and not self._make_room_for(peer):
            return False
        if len(self._open) >= self.capacity and not self._make_room(peer):
            return False
        self._open[connection] = _Place(peer)
        self._newcomers[connection] = None
        self._of_peer.put(peer, connection)
        return True

    def remove(self, connection: Closable) -> None:
        """Forget a connection that is closed."""
        self.unread.release(connection)
        place = self._open.pop(connection, None)
        if place is not None:
            self._leave_groups(connection, place)

    def note_request(self, connection: Closable) -> None:
        """Note that a request has come, of a caller that is not known: it is no newcomer's."""
        if connection in self._newcomers:
            del self._newcomers[connection]
            self._strangers[connection] = None

    def set_caller(self, connection: Closable, caller: str | None) -> None:
        """Note whose connection this is; None once its credential is good no more."""
        place = self._open.get(connection)
        if place is None:
            return
        self._leave_groups(connection, place)
        place.caller = caller
        if caller is None:
            self._strangers[connection] = None
            self._of_peer.put(place.peer, connection)
        else:
            self._of_caller.put(caller, connection)

    def _leave_groups(self, connection: Closable, place: _Place) -> None:
        self._newcomers.pop(connection, None)
        self._strangers.pop(connection, None)
        self._of_peer.take(place.peer, connection)
        self._of_caller.take(place.caller, connection)

    def sweep(self, now: float) -> None:
        """Close what is late; called every second with the event loop's time."""
        for connection in list(self._open):
            connection.check_deadline(now)
        if self._clock() >= self._calm_at:
            self._full.end("There is room for connections again.")
            self._crowded.end("No address has too many connections without credentials any more.")

    def start(self) -> None:
        """Sweep every second from now on."""
        self._refused.install()
        loop = asyncio.get_running_loop()

        def tick() -> None:
            self._timer = loop.call_later(SWEEP_SECONDS, tick)
            self.sweep(loop.time())
            self._refused.flush()
            self.unread.flush()

        self._timer = loop.call_later(SWEEP_SECONDS, tick)

    def stop(self) -> None:
        """Sweep no more."""
        self._refused.remove()
        if self._timer is not None:
            self._timer.cancel()

    def stop_reading(self) -> None:
        """Answer requests whose bodies are incomplete: the server is about to end."""
        for connection in list(self._open):
            connection.stop_reading()

    def _has_its_share(self, peer: str) -> bool:
        return len(self._of_peer.get(peer, ())) >= self.share

    def _make_room_for(self, peer: str) -> bool:
        self._calm_at = self._clock() + CALM_SECONDS
        self._crowded.record(
            "%s has %d connections without credentials (half of limits.connections); "
            "its oldest are closed.",
            peer,
            self.share,
        )
        return self._drop_first(self._of_peer[peer]) or not self._has_its_share(peer)

    def _make_room(self, peer: str | None) -> bool:
        self._calm_at = self._clock() + CALM_SECONDS
        self._full.record(
            "All %d connections are taken (setting limits.connections); the oldest without "
            "credentials are closed, then those that are idle or send slowly, of the caller with "
            "the most first.",
            self.capacity,
        )
        if self._drop_first(self._strangers):
            return True
        if len(self._newcomers) < self.reserve and self._drop_of_callers():
            return True
        return self._drop_newcomer(peer) or self._drop_of_callers()

    def _drop_newcomer(self, peer: str | None) -> bool:
        """Close the oldest; a peer that has many without credentials gives up its own."""
        own = self._of_peer.get(peer or "", {})
        has_many = len(own) >= max(1, self.reserve // 2)
        return (has_many and self._drop_first(own)) or self._drop_first(self._newcomers)

    def _drop_of_callers(self) -> bool:
        """Close one that is idle, else one within a request; of the caller with the most first."""
        none: dict[Closable, None] = {}
        most = max(self._of_caller.values(), key=len, default=none)
        return (
            self._drop_idle(most)
            or (len(most) > self.share and self._drop_first(most))
            or self._drop_idle(self._with_callers())
            or self._drop_first(most)
            or self._drop_first(self._with_callers())
        )

    def _with_callers(self) -> Iterator[Closable]:
        return (one for one, place in self._open.items() if place.caller is not None)

    def _drop_idle(self, candidates: Iterable[Closable]) -> bool:
        """Close the first that is between requests."""
        return self._drop_first(one for one in candidates if one.is_idle)

    def _drop_first(self, candidates: Iterable[Closable]) -> bool:
        """Close the first of these that can be closed."""
        known: list[tuple[Closable, str]] = []
        found = None
        for one in candidates:
            if self._open[one].caller is None and (caller := one.caller) is not None:
                known.append((one, caller))
            elif not one.is_answering:
                found = one
                break
        for one, caller in known:
            self.set_caller(one, caller)
        if found is None:
            return False
        self.remove(found)
        found.drop()
        return True


def open_files() -> int | None:
    """How many files this process may have open; None where nothing limits them."""
    with contextlib.suppress(ImportError):  # not on Windows
        import resource  # noqa: PLC0415

        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return None if soft == resource.RLIM_INFINITY else soft
    return None


def backlog(files: int | None) -> int:
    """How many connections the system may hold for us until we accept them.

    All of them may be accepted at once, before a single one can be closed, so there have to be
    files for them.
    """
    return MAX_BACKLOG if files is None else max(16, min(MAX_BACKLOG, files // 4))


def default_capacity(files: int | None) -> int:
    """How many connections there may be, unless it is set."""
    if files is None:
        return MAX_DEFAULT
    return max(16, min(MAX_DEFAULT, files - backlog(files) - OTHER_FILES))

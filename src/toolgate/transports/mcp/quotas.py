"""How many sessions and event streams one caller may hold open in this process.

Both cost memory and a connection for as long as a client likes, so they are counted for each
principal: one caller cannot take the room of the others.
"""

import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field


class QuotaReached(Exception):
    """The caller holds as many open as it may; the message says what to do."""


@dataclass(slots=True)
class OpenSession:
    """One open session."""

    used: float
    """When its last request ended."""
    requests: int = 0
    """How many of its requests are being served now, open streams included."""


@dataclass(slots=True)
class Reservation:
    """A session that is about to be opened."""

    sessions: dict[str, OpenSession]
    now: Callable[[], float]
    replaces: str | None = None
    """The session that has to end first."""

    def confirm(self, session_id: str) -> None:
        """The client was given this session."""
        self.sessions[session_id] = OpenSession(self.now())


@dataclass(slots=True)
class SessionQuota:
    """The open sessions of every caller; the one idle for longest makes room for a new one."""

    most: int
    idle_seconds: float
    now: Callable[[], float] = time.monotonic
    _open: dict[str, dict[str, OpenSession]] = field(
        default_factory=dict[str, dict[str, OpenSession]]
    )
    _opening: Counter[str] = field(default_factory=Counter[str])

    @contextmanager
    def reserve(self, caller: str) -> Generator[Reservation, None, None]:
        """Room for one more session while it is opened; raise `QuotaReached` if there is none."""
        self._drop_expired()
        sessions = self._open.setdefault(caller, {})
        replaces = self._to_replace(caller, sessions)
        self._opening[caller] += 1
        try:
            yield Reservation(sessions, self.now, replaces)
        finally:
            self._opening[caller] -= 1
            self._forget_if_empty(caller)

    def _to_replace(self, caller: str, sessions: dict[str, OpenSession]) -> str | None:
        if len(sessions) + self._opening[caller] < self.most:
            return None
        idle = [name for name, one in sessions.items() if not one.requests]
        if not idle:
            raise QuotaReached(
                f"You have {self.most} MCP sessions open, and all are in use. End one (DELETE with "
                "its Mcp-Session-Id), or let the operator raise the setting mcp.sessions."
            )
        longest = min(idle, key=lambda name: sessions[name].used)
        del sessions[longest]
        return longest

    def has(self, caller: str, session_id: str) -> bool:
        """Whether the caller has this session open."""
        return session_id in self._open.get(caller, {})

    @contextmanager
    def using(self, caller: str, session_id: str) -> Generator[None, None, None]:
        """While a request of a session is served, the session is not idle."""
        session = self._open.get(caller, {}).get(session_id)
        if session is None:  # ended, or another caller's: the SDK says so
            yield
            return
        session.requests += 1
        try:
            yield
        finally:
            session.requests -= 1
            session.used = self.now()

    def forget(self, caller: str, session_id: str) -> None:
        """The session is no more."""
        self._open.get(caller, {}).pop(session_id, None)
        self._forget_if_empty(caller)

    def _drop_expired(self) -> None:
        """Forget what the SDK has ended by its idle timeout, which is the same."""
        before = self.now() - self.idle_seconds
        for caller, sessions in list(self._open.items()):
            for name, one in list(sessions.items()):
                if not one.requests and one.used < before:
                    del sessions[name]
            self._forget_if_empty(caller)

    def _forget_if_empty(self, caller: str) -> None:
        if not self._opening[caller]:
            del self._opening[caller]
            if not self._open.get(caller, True):
                del self._open[caller]


@dataclass(slots=True)
class StreamQuota:
    """The open event streams of every caller."""

    most: int
    _open: Counter[str] = field(default_factory=Counter[str])

    @contextmanager
    def reserve(self, caller: str) -> Generator[None, None, None]:
        """Count a stream while it is open; raise `QuotaReached` if it is one too many."""
        if self._open[caller] >= self.most:
            raise QuotaReached(
                f"You have {self.most} event streams open. Close one, or let the operator raise "
                "the setting mcp.streams."
            )
        self._open[caller] += 1
        try:
            yield
        finally:
            self._open[caller] -= 1
            if not self._open[caller]:
                del self._open[caller]

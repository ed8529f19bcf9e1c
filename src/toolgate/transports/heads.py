"""What follows from a request's headers, worked out once for all requests that have the same.

A client sends the same headers with nearly every call. Who it is and under which address it reached
us are remembered with them, for no longer than its credential is, so for a second at most.
"""

import time
from dataclasses import dataclass
from typing import Any

from toolgate.gate.principal import Principal
from toolgate.identity.credentials import REMEMBERED_SECONDS, Credentials
from toolgate.transports.address import Address
from toolgate.transports.asgi import Scope

MOST_KEPT = 10_000


@dataclass(slots=True)
class Head:
    """What is known of a request before its body is read."""

    principal: Principal
    address: Address
    until: float
    routing: Any = None
    """What MCP's headers say, once that was asked for."""


class Heads:
    """The headers that were found good a moment ago."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._known: dict[tuple[Any, ...], Head] = {}
        self._empty_at = 0.0
        self._ended: tuple[int, int] = (0, 0)

    def recall(self, scope: Scope) -> Head | None:
        """What is known of a request with these headers from this place."""
        now = time.monotonic()
        ended = (self._credentials.keys.revocations, self._credentials.forgotten)
        if now >= self._empty_at or ended != self._ended:
            # Everything, so that no credential stays in memory when its holder is gone.
            self._known = {}
            self._empty_at, self._ended = now + REMEMBERED_SECONDS, ended
            return None
        head = self._known.get(_key(scope))
        return head if head is not None and head.until > now else None

    def keep(self, scope: Scope, head: Head) -> None:
        """Remember a request that was let in."""
        if len(self._known) < MOST_KEPT:
            self._known[_key(scope)] = head


def _key(scope: Scope) -> tuple[Any, ...]:
    peer: tuple[str, int] | None = scope.get("client")
    return (peer and peer[0], scope.get("scheme"), *scope["headers"])

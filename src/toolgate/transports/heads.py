"""What follows from a request's headers, worked out once for all requests that have the same.

A client sends the same headers with nearly every call. Who it is and under which address it reached
us are remembered with them, for no longer than its credential is, so for a second at most.
"""

import time
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple

from toolgate.gate.principal import Principal
from toolgate.identity.credentials import REMEMBERED_SECONDS, Credentials
from toolgate.transports.address import Address
from toolgate.transports.asgi import Scope

MOST_KEPT = 10_000
RAW_HEAD = "toolgate.raw_head"
"""Where a connection says by which key it would know a request's head again, byte for byte."""
STATE = "toolgate.heads"
"""Where connections find what is known, in the state of the server's lifespan."""
LENGTH = b"content-length"
LIVELY = {b"transfer-encoding", b"expect", b"upgrade"}


class Answer(NamedTuple):
    """What goes back, as JSON."""

    status: int
    body: bytes
    request_id: str


Begun = Answer | Coroutine[Any, Any, Answer] | None


@dataclass(slots=True)
class Head:
    """What is known of a request before its body is read."""

    principal: Principal
    address: Address
    until: float
    routing: Any = None
    """What MCP's headers say, once that was asked for."""
    begin: "Callable[[Head, bytes], Begun] | None" = None
    """Answers the bodies of such requests, but for those (None) that have to go another way."""


class Heads:
    """The headers that were found good a moment ago."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._known: dict[Hashable, Head] = {}
        self._empty_at = 0.0
        self._ended: tuple[int, int] = (0, 0)

    def recall(self, key: Hashable) -> Head | None:
        """What is known of requests with this key."""
        now = time.monotonic()
        ended = (self._credentials.keys.revocations, self._credentials.forgotten)
        if now >= self._empty_at or ended != self._ended:
            # Everything, so that no credential stays in memory when its holder is gone.
            self.forget()
            self._empty_at, self._ended = now + REMEMBERED_SECONDS, ended
            return None
        head = self._known.get(key)
        return head if head is not None and head.until > now else None

    def forget(self) -> None:
        """Know nothing any more."""
        self._known = {}

    def keep(self, key: Hashable, head: Head) -> None:
        """Remember a request that was let in."""
        if len(self._known) < MOST_KEPT:
            self._known[key] = head


def place_of(scope: Scope) -> Hashable:
    """Where a request comes from."""
    peer: tuple[str, int] | None = scope.get("client")
    return (peer and peer[0], scope.get("scheme"))


def key_of(scope: Scope) -> Hashable:
    """The same for all requests from one place with the same headers."""
    return (place_of(scope), *scope["headers"])


def raw_key_of(scope: Scope) -> Hashable | None:
    """The key of a head that means the same whenever it comes; None if it does not, or not surely.

    Such a head announces nothing but a body of a known length, on a connection that stays.
    """
    raw: Hashable | None = scope.get(RAW_HEAD)
    if raw is None or scope["http_version"] != "1.1":
        return None
    names = [name for name, _ in scope["headers"]]
    stays = all(
        one.lower() == b"keep-alive" for name, one in scope["headers"] if name == b"connection"
    )
    plain = stays and names.count(LENGTH) == 1 and LIVELY.isdisjoint(names)
    return raw if plain else None

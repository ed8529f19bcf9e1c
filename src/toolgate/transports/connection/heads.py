"""What follows from a request's headers, worked out once for all requests that have the same.

A client sends the same headers with nearly every call. Who it is and under which address it reached
us are remembered with them, for no longer than its credential is, so for a second at most.
"""

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple

from toolgate.gate.principal import Principal
from toolgate.identity.credentials import REMEMBERED_SECONDS, Credentials
from toolgate.transports.address import Address
from toolgate.transports.asgi import Scope

RawKey = tuple[Hashable, bytes]
"""Where a request comes from, and its head without the number of its body's bytes."""
MAX_HEADS = 10_000
MAX_HEAD_BYTES = 8192
"""Of a head that is kept byte for byte; clients' usual ones have less than a thousand."""
RAW_HEAD = "toolgate.raw_head"
"""Where a connection says by which key it would know a request's head again, byte for byte."""
KNOWN_HEADS = "toolgate.heads"
"""Where connections find what is known, in the state of the server's lifespan."""
LENGTH, CREDENTIAL = b"content-length", b"authorization"
BEARER = b"uthorization: Bearer "
NOT_REPEATABLE = {b"transfer-encoding", b"expect", b"upgrade", b"proxy-connection"}
"""Headers that say how a request goes on; the parser reads the last one like `Connection`."""


class JsonResponse(NamedTuple):
    """What goes back, as JSON."""

    status: int
    body: bytes
    request_id: str
    retry_after: int = 0
    """Seconds, with 429."""


Pending = JsonResponse | Coroutine[Any, Any, JsonResponse | None] | None


@dataclass(slots=True)
class Head:
    """What is known of a request before its body is read."""

    principal: Principal
    address: Address
    until: float
    routing: Any = None
    """What MCP's headers say, once that was asked for."""
    respond: "Callable[[Head, bytes], Pending] | None" = None
    """Answers the bodies of such requests, but for those (None) that have to go another way."""
    authenticate: "Callable[[UnknownCredential], Head | Awaitable[Head | None]] | None" = None
    """Looks up another credential in such a head, at once where it is remembered; None where the
    whole request is needed."""
    peer: str = ""
    """Against what wrong credentials in such a head are counted."""

    def for_caller(self, principal: Principal, until: float) -> "Head":
        """The same head of somebody else."""
        # Not `replace`, which costs as much as the look-up of a credential.
        return Head(
            principal,
            self.address,
            until,
            self.routing,
            self.respond,
            self.authenticate,
            self.peer,
        )


class SeenKeys:
    """Which keys were seen before, lately: their hashes, so no credential is kept with them.

    Two keys may have the same hash: then one is taken for seen at its first sight, which only
    costs its place.
    """

    def __init__(self) -> None:
        self._recent: set[int] = set()
        self._older: set[int] = set()

    def check_and_add(self, key: Hashable) -> bool:
        """Whether a key was seen before; from now on, it was."""
        seen = hash(key)
        if seen in self._recent:
            return True
        if len(self._recent) >= MAX_HEADS:
            self._recent, self._older = set(), self._recent
        self._recent.add(seen)
        return seen in self._older


class Heads:
    """The headers that were found good a moment ago.

    Only what comes a second time is kept: a header that is new in each request, such as
    `traceparent`, would fill the table with heads that never come back.
    """

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self.sightings = SeenKeys()
        self._known: OrderedDict[Hashable, Head] = OrderedDict()
        self._patterns: OrderedDict[RawKey, Head] = OrderedDict()
        """By heads without their credential: all but the caller is the same for any credential."""
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
        self._known, self._patterns = OrderedDict(), OrderedDict()

    def keep(self, key: Hashable, head: Head) -> None:
        """Remember a request that was let in, if it came before."""
        if self.sightings.check_and_add(key):
            _put(self._known, key, head)

    def keep_raw(self, key: "RawKey", head: Head) -> None:
        """Remember a head byte for byte, and for other callers what it looks like."""
        peer, raw = key
        if len(raw) > MAX_HEAD_BYTES:
            return
        self.keep(key, head)
        if (parts := split_credential(raw)) and self.sightings.check_and_add((peer, parts[0])):
            _put(self._patterns, (peer, parts[0]), head)

    def without_credential(self, key: "RawKey") -> "UnknownCredential | None":
        """For a head that is not known, but looks like one that is: how to get to know it."""
        peer, raw = key
        parts = split_credential(raw)
        pattern = self._patterns.get((peer, parts[0])) if parts else None
        return UnknownCredential(key, pattern, parts[1]) if pattern and parts else None


def _put(table: OrderedDict[Any, Head], key: Hashable, head: Head) -> None:
    """Enter a head; the oldest one goes where there is no room."""
    if len(table) >= MAX_HEADS and key not in table:
        table.popitem(last=False)
    table[key] = head


@dataclass(slots=True)
class UnknownCredential:
    """A caller with a head that is known but for the credential."""

    key: "RawKey"
    pattern: Head
    credential: str
    principal: Principal | None = None
    """The caller, once known."""

    def respond(self, _: "UnknownCredential", body: bytes) -> Pending:
        """Answer a request once the caller is known."""
        authenticate = self.pattern.authenticate
        found = authenticate(self) if authenticate else None
        if found is None or isinstance(found, Head):
            return self._pass_on(found, body)
        return self._respond(found, body)

    def _pass_on(self, head: Head | None, body: bytes) -> Pending:
        self.principal = head.principal if head else None
        return head.respond(head, body) if head and head.respond else None

    async def _respond(self, found: Awaitable[Head | None], body: bytes) -> JsonResponse | None:
        pending = self._pass_on(await found, body)
        return pending if pending is None or isinstance(pending, JsonResponse) else await pending


def split_credential(raw: bytes) -> tuple[bytes, str] | None:
    """A head without its credential, and the credential; None where it has none of the usual form.

    What is left still says where the credential was.
    """
    at = raw.find(BEARER) + len(BEARER)
    if raw[at - len(BEARER) - 3 : at - len(BEARER)].lower() != b"\r\na":
        return None
    after = raw.find(b"\r", at)
    credential = raw[at:after].strip(b" \t")
    return (raw[:at] + raw[after:], credential.decode("latin-1")) if credential else None


def peer_of(scope: Scope) -> Hashable:
    """Where a request comes from."""
    peer: tuple[str, int] | None = scope.get("client")
    return (peer and peer[0], scope.get("scheme"))


def key_of(scope: Scope) -> Hashable:
    """The same for all requests from one peer with the same headers."""
    return (peer_of(scope), *scope["headers"])


def raw_key_of(scope: Scope) -> RawKey | None:
    """The key of a head that means the same whenever it comes; None if it does not, or not surely.

    Such a head announces nothing but a body of a known length, on a connection that stays, and its
    bytes are the lines that the parser saw, no more and no less.
    """
    key: RawKey | None = scope.get(RAW_HEAD)
    if key is None or scope["http_version"] != "1.1":
        return None
    headers: list[tuple[bytes, bytes]] = scope["headers"]
    lines = 1 + len(headers) + 1
    names = [name for name, _ in headers]
    stays = all(one.lower() == b"keep-alive" for name, one in headers if name == b"connection")
    once = names.count(LENGTH) == 1 == names.count(CREDENTIAL)
    whole = key[1].count(b"\r\n") == lines == key[1].count(b"\n")
    return key if stays and once and whole and NOT_REPEATABLE.isdisjoint(names) else None

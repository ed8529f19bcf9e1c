"""Looks credentials up for callers who are not known yet: a few wrong ones a minute from one peer.

Past that limit a credential is looked up only if this process has seen it to be good, from the same
peer, before. So guessing does not go on behind the limit, and who works from the same address keeps
working (docs/decisions/0023). Bearer credentials, keys typed into the sign-in page and keys used as
a client id are all tried here, so there is one count for them.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TypeVar

from toolgate.gate.errors import GateError, RateLimited
from toolgate.gate.limits import Limits
from toolgate.gate.principal import Actor
from toolgate.identity.credentials import InsufficientScope
from toolgate.identity.oauth import opaque

PURPOSE = "credential"
MAX_REMEMBERED = 30_000

Attempt = tuple[str, bytes]
"""A peer, and the digest of a credential that came from it."""
Holder = TypeVar("Holder")


class Unusable(Exception):
    """A genuine credential, but not good: it has ended, or is for something else."""

    def __init__(self, actor: Actor) -> None:
        super().__init__()
        self.actor = actor


class Guesses:
    """Limits how many wrong credentials a peer may try.

    `origin` says what a credential belongs to, good or not. Who knows the secret does not guess.
    """

    def __init__(self, limits: Limits, origin: Callable[[str], Awaitable[Actor | None]]) -> None:
        self._limits = limits
        self._origin = origin
        self._good: OrderedDict[Attempt, None] = OrderedDict()
        self._wrong: OrderedDict[Attempt, None] = OrderedDict()
        """A client that repeats one wrong credential guesses only once."""
        self._in_flight: dict[str, dict[bytes, int]] = {}
        """By peer: what is being looked up now, and how many requests wait for each of them."""

    def is_known_good(self, peer: str, digest: bytes) -> bool:
        """Whether a credential was found to be good from this peer: it is no guess."""
        return (peer, digest) in self._good

    async def look_up(
        self,
        credential: str,
        peer: str,
        find: Callable[[str], Awaitable[Holder | None]],
        digest: bytes | None = None,
    ) -> Holder | None:
        """What `find` says of a credential; None is a wrong one, and counted.

        Raises `Unusable` for one that is not wrong, but not good either, and `RateLimited` where
        too many wrong ones came from this peer. Each one that is being
        looked up may turn out wrong, so those count too: otherwise all that are sent at once
        would be looked up before the first is counted. `digest` is for who has it already.
        """
        digest = digest or opaque.digest(credential)
        attempt = (peer, digest)
        if attempt in self._good:
            return await self._find(attempt, credential, find)
        pending = self._in_flight.setdefault(peer, {})
        pending[digest] = pending.get(digest, 0) + 1
        try:
            others = list(pending).index(digest)  # that came before it
            most = self._limits.settings.guesses_per_minute
            await self._limits.peers.check(PURPOSE, peer, most, besides=others)
            return await self._find(attempt, credential, find)
        finally:
            pending[digest] -= 1
            if not pending[digest]:
                del pending[digest]
            if not pending:
                self._in_flight.pop(peer, None)

    async def _find(
        self, attempt: Attempt, credential: str, find: Callable[[str], Awaitable[Holder | None]]
    ) -> Holder | None:
        try:
            holder = await find(credential)
        except InsufficientScope:
            _remember(self._good, attempt)
            raise
        if holder is not None:
            _remember(self._good, attempt)
            return holder
        self._good.pop(attempt, None)
        if attempt in self._wrong:
            return None
        if actor := await self._origin(credential):
            raise Unusable(actor)
        if attempt not in self._wrong:
            await self._count(attempt)
        return None

    def note_issued(self, credential: str, peer: str) -> None:
        """A token was given to a peer: there it is known to be good."""
        _remember(self._good, (peer, opaque.digest(credential)))

    async def _count(self, attempt: Attempt) -> None:
        _remember(self._wrong, attempt)  # before anything is awaited, so that it is counted once
        most = self._limits.settings.guesses_per_minute
        try:
            await self._limits.peers.admit(PURPOSE, attempt[0], most)
        except GateError as error:
            self._wrong.pop(attempt, None)
            if not isinstance(error, RateLimited):  # reached meanwhile: the next one is refused
                raise


def _remember(table: OrderedDict[Attempt, None], attempt: Attempt) -> None:
    """Keep it; the oldest go where there are too many."""
    if attempt not in table and len(table) >= MAX_REMEMBERED:
        table.popitem(last=False)
    table[attempt] = None

"""How much one caller may ask for."""

import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, NamedTuple, cast

from limits import RateLimitItemPerMinute
from limits.aio.storage import Storage
from limits.aio.strategies import SlidingWindowCounterRateLimiter
from limits.errors import ConfigurationError, StorageError
from limits.storage import storage_from_string

from toolgate.db.outages import Outage
from toolgate.gate.catalogue import AnyTool
from toolgate.gate.deadlines import Deadlines
from toolgate.gate.errors import RateLimited, Unavailable
from toolgate.gate.peer_limits import MAX_KEYS, PeerLimits, too_many
from toolgate.gate.principal import Kind, Principal
from toolgate.gate.sliding_window import WindowCounter
from toolgate.gate.tool import ToolLimits
from toolgate.gate.turns import SharedTurns, Turns
from toolgate.gate.unsent import UnsentBytes
from toolgate.sections import LimitSettings

logger = logging.getLogger(__name__)

Ask = Callable[..., Awaitable[bool]]
MEMORY = "async+memory://"
REDIS_SECONDS = 5.0
"""How long the counter store may take to answer."""


class Allowance(NamedTuple):
    """What one call gets: its declaration's limits, lowered by the settings."""

    turns: Turns
    deadlines: Deadlines
    result_bytes: int
    attachment_bytes: int
    """Before base64; the tool's `result_bytes` lowers it too."""
    unsent: UnsentBytes
    """Room for attachments, shared by all tools."""


class Allowances(dict[ToolLimits, Allowance]):
    """By declaration; tools that say the same share turns, and a timer."""

    def __init__(self, settings: LimitSettings, turns: Turns, deadlines: Deadlines) -> None:
        super().__init__()
        self._settings = settings
        self._turns = turns
        self._slow_turns = SharedTurns(settings.slow_concurrency)
        self._unsent = UnsentBytes(settings.unsent_attachment_bytes)
        self._deadlines = {deadlines.seconds: deadlines}
        self._stopping = False

    def __missing__(self, limits: ToolLimits) -> Allowance:
        settings = self._settings
        most_seconds = settings.slow_seconds if limits.slow else settings.seconds
        self[limits] = Allowance(
            self._slow_turns if limits.slow else self._turns,
            self._within(
                most_seconds if limits.seconds is None else min(limits.seconds, most_seconds)
            ),
            min(limits.result_bytes or settings.result_bytes, settings.result_bytes),
            min(limits.result_bytes or settings.attachment_bytes, settings.attachment_bytes),
            self._unsent,
        )
        return self[limits]

    def _within(self, seconds: float) -> Deadlines:
        if seconds not in self._deadlines:
            self._deadlines[seconds] = Deadlines(seconds)
            if self._stopping:
                self._deadlines[seconds].stop()
        return self._deadlines[seconds]

    def stop(self) -> None:
        """Wait for no call any longer, neither for those that run nor for those that come."""
        self._stopping = True
        for deadlines in self._deadlines.values():
            deadlines.stop()


class Limits:
    """Rate per caller and tool, and how many calls run at once.

    Counts live in memory, or in Redis or Valkey when several processes share them.
    """

    def __init__(self, settings: LimitSettings) -> None:
        self.settings = settings
        store_url = settings.store
        options, self._close = _connection(store_url)
        store = storage_from_string(store_url, wrap_exceptions=True, **options)
        self._counters = SlidingWindowCounterRateLimiter(cast(Storage, store))
        self._per_caller = RateLimitItemPerMinute(max(settings.calls_per_minute, 1))
        self._per_tool = {
            name: RateLimitItemPerMinute(number)
            for name, number in settings.tool_calls_per_minute.items()
            if number
        }
        self._own = WindowCounter() if store_url == MEMORY else None
        self._refusals = WindowCounter()
        self._anonymous_refusals = WindowCounter(MAX_KEYS)
        self._outage = Outage(logger, "The counter store")
        self.peers = PeerLimits(None if store_url == MEMORY else self._counters, self._outage)
        self.turns = Turns(settings.concurrency)
        self.deadlines = Deadlines(settings.seconds)
        """Of tools that say nothing of their own."""
        self.allowances = Allowances(settings, self.turns, self.deadlines)

    def body_bytes(self, tool: AnyTool) -> int:
        """Largest request that calls a tool: one that takes files says so, and settings lower it.

        Files are base64 there, four characters for three bytes.
        """
        usual, said = self.settings.body_bytes, tool.limits.body_bytes
        with_a_file = usual + (self.settings.attachment_bytes + 2) // 3 * 4
        return usual if said is None else max(usual, min(said, with_a_file))

    def largest_body(self, tools: Iterable[AnyTool]) -> int:
        """Largest request that calls one of these tools, or none."""
        return max((self.body_bytes(tool) for tool in tools), default=self.settings.body_bytes)

    def admit(self, principal: Principal, tool: str) -> Awaitable[None] | None:
        """Count this call; raise `RateLimited` when it is one too many.

        Where the count is elsewhere, what to wait for: a call that waits for nothing is quicker.
        """
        if self._own is None:
            return self._admit_shared(principal, tool)
        if self.settings.calls_per_minute:
            wait = self._own.hit((principal.id,), self.settings.calls_per_minute)
            if wait is not None:
                raise _too_many(self._per_caller, (principal.id,), wait)
        if tool in self._per_tool:
            key, item = (principal.id, tool), self._per_tool[tool]
            wait = self._own.hit(key, item.amount)
            if wait is not None:
                raise _too_many(item, key, wait)
        return None

    async def check_left(self, principal: Principal) -> None:
        """Raise `RateLimited` where a caller has no call or refusal left; nothing is counted."""
        wait = self._refusals.test(principal.id, self.settings.refusals_per_minute)
        if wait is not None:
            raise too_many(wait)
        item, key = self._per_caller, (principal.id,)
        if not self.settings.calls_per_minute:
            return
        if self._own is None:
            return await self._count(item, key, ask=self._counters.test)
        wait = self._own.test(key, item.amount)
        if wait is not None:
            raise _too_many(item, key, wait)

    async def _admit_shared(self, principal: Principal, tool: str) -> None:
        if self.settings.calls_per_minute:
            await self._count(self._per_caller, (principal.id,))
        if tool in self._per_tool:
            await self._count(self._per_tool[tool], (principal.id, tool))

    def count_refusal(self, principal: Principal) -> None:
        """Count a refusal; raise `RateLimited` when there were too many.

        Always in this process: it is about what refusals cost here, and nobody waits for a store.
        """
        anonymous = principal.kind is Kind.ANONYMOUS
        counter = self._anonymous_refusals if anonymous else self._refusals
        wait = counter.hit(principal.id, self.settings.refusals_per_minute)
        if wait is not None:
            raise too_many(wait)

    def _unavailable(self, what: str, problem: StorageError) -> Unavailable:
        self._outage.note_failure(problem)
        return Unavailable(f"{what} cannot be counted now, so none is answered.")

    async def check(self) -> None:
        """Raise `Unavailable` unless calls can be counted."""
        if not await self._counters.storage.check():
            raise Unavailable("The counter store does not answer.")

    async def close(self) -> None:
        """Give the counter's connections back."""
        if self._close:
            await self._close()

    async def _count(
        self, item: RateLimitItemPerMinute, key: tuple[str, ...], ask: Ask | None = None
    ) -> None:
        try:
            counted = await (ask or self._counters.hit)(item, *key)
            if self._outage.on:
                self._outage.note_success()
            if counted:
                return
            window = await self._counters.get_window_stats(item, *key)
        except StorageError as problem:
            raise self._unavailable("Calls", problem) from None
        raise _too_many(item, key, window.reset_time - time.time())


def _too_many(item: RateLimitItemPerMinute, key: tuple[str, ...], wait: float) -> RateLimited:
    seconds = max(1, round(wait))
    of_tool = f" of {key[1]}" if len(key) > 1 else ""
    message = (
        f"Rate limit exceeded: {item.amount} calls{of_tool} a minute. Try again in {seconds} s."
    )
    return RateLimited(message, retry_after=seconds)


def _connection(url: str) -> tuple[dict[str, Any], Callable[[], Awaitable[None]] | None]:
    """Options for the counter's store, and what closes it."""
    if not url.startswith("async+redis"):
        return {}, None
    try:
        # Imported only when it is configured.
        from redis.asyncio import ConnectionPool  # noqa: PLC0415
    except ImportError as missing:
        raise ConfigurationError("redis is not installed") from missing
    wait = {"socket_timeout": REDIS_SECONDS, "socket_connect_timeout": REDIS_SECONDS}
    pool: Any = ConnectionPool.from_url(url.removeprefix("async+"), **wait)  # pyright: ignore[reportUnknownMemberType]
    return {"implementation": "redispy", "connection_pool": pool}, pool.aclose

"""One run for all who ask for the same thing at the same time."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import anyio

T = TypeVar("T")


@dataclass(slots=True)
class _Run(Generic[T]):
    done: anyio.Event = field(default_factory=anyio.Event)
    result: list[T] = field(default_factory=list[T])
    problem: Exception | None = None


class SharedRequests(Generic[T]):
    """Runs work once for everybody who asks while it runs; nothing is kept afterwards."""

    def __init__(self) -> None:
        self._running: dict[str, _Run[T]] = {}

    async def run(self, key: str, work: Callable[[], Awaitable[T]]) -> T:
        """The result of `work`, or of the run for the same key that is under way."""
        while (other := self._running.get(key)) is not None:
            await other.done.wait()
            if other.problem is not None:
                raise other.problem
            if other.result:
                return other.result[0]
            # Who ran it was cancelled: the next one runs it.
        return await self._run(key, work)

    async def _run(self, key: str, work: Callable[[], Awaitable[T]]) -> T:
        mine = self._running[key] = _Run[T]()
        try:
            mine.result.append(await work())
        except Exception as problem:
            mine.problem = problem
            raise
        finally:
            del self._running[key]
            mine.done.set()
        return mine.result[0]

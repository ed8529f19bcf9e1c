"""Blocking work in threads, which can be ended from outside.

A thread that waits for a silent database cannot be interrupted itself, but what it waits for can:
the work says how, and who no longer waits for the work uses it.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, TypeVar

import anyio
from sqlalchemy.exc import SQLAlchemyError

GRACE_SECONDS = 0.5
"""How long work may go on when its caller is cancelled, and then to end once interrupted."""

T = TypeVar("T")
P = ParamSpec("P")
Interrupt = Callable[[], None]
_thread = threading.local()


class ThreadsClosed(SQLAlchemyError):
    """The threads are ended; there is no new work."""


class JobStopped(Exception):
    """Nobody waits for this work any more."""


class Job:
    """One piece of work, and how to interrupt what it waits for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._interrupt: Interrupt | None = None
        self.stopped = False

    def set_interrupt(self, interrupt: Interrupt) -> None:
        """From now on the work is interrupted like this."""
        with self._lock:
            if self.stopped:
                raise JobStopped
            self._interrupt = interrupt

    def clear_interrupt(self) -> None:
        """What it used may be another's from now on."""
        with self._lock:
            self._interrupt = None

    def stop(self) -> None:
        """Interrupt the work."""
        with self._lock:
            self.stopped = True
            if self._interrupt is not None:
                self._interrupt()

    def run(self, work: Callable[[], T]) -> T:
        """Do the work, in a thread."""
        _thread.job = self
        try:
            return work()
        finally:
            self.clear_interrupt()
            _thread.job = None


def current_job() -> Job | None:
    """The work of this thread; None in a thread that is not one of ours."""
    return getattr(_thread, "job", None)


class Threads:
    """A few threads for the database.

    However a call is cancelled, by a scope or by the event loop itself, its work may end by itself
    for a moment, and is then interrupted. If even that does not end it, it is left alone: the work
    has to give back what it uses by itself.
    """

    def __init__(self, most: int, *, grace: float = GRACE_SECONDS) -> None:
        self._pool = ThreadPoolExecutor(most, thread_name_prefix="toolgate-database")
        self._grace = grace
        self._running: dict[Future[Any], Job] = {}

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function in a thread; if cancelled before it begins, it does not."""
        future, job = self._submit(partial(work, *args, **kwargs))
        return await self._result_of(future, job, needed=False)

    async def finish(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same for work that has to be done even when its caller is cancelled."""
        future, job = self._submit(partial(work, *args, **kwargs))
        return await self._result_of(future, job, needed=True)

    def _submit(self, work: Callable[[], T]) -> tuple[Future[T], Job]:
        job = Job()
        try:
            future = self._pool.submit(job.run, work)
        except RuntimeError as error:
            raise ThreadsClosed("The database is closed.") from error
        self._running[future] = job
        future.add_done_callback(self._forget)
        return future, job

    def _forget(self, future: "Future[Any]") -> None:
        self._running.pop(future, None)

    async def _result_of(self, future: "Future[T]", job: Job, *, needed: bool) -> T:
        result = asyncio.wrap_future(future)
        try:
            return await asyncio.shield(result)
        except asyncio.CancelledError:
            if future.cancelled():
                raise ThreadsClosed("The database is closed.") from None
            if needed or not future.cancel():
                with anyio.CancelScope(shield=True):
                    await self._stop(result, job)
            raise

    async def _stop(self, result: "asyncio.Future[Any]", job: Job) -> None:
        if await has_ended(result, self._grace):
            return
        job.stop()
        if not await has_ended(result, self._grace):
            result.cancel()

    async def close(self) -> None:
        """Take no new work, and end what runs."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        running = dict(self._running)
        left = [asyncio.wrap_future(one) for one in running if not one.done()]
        for _ in range(2):
            if left:
                await asyncio.wait(left, timeout=self._grace)
            for job in running.values():
                job.stop()
        for one in left:
            if not one.done():
                one.cancel()
            elif not one.cancelled():
                one.exception()


async def has_ended(work: "asyncio.Future[Any]", seconds: float) -> bool:
    """Wait for the end, however often the wait is cancelled; what it came to is nobody's."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while not work.done() and loop.time() < until:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([work], timeout=until - loop.time())
    if work.done() and not work.cancelled():
        work.exception()
    return work.done()

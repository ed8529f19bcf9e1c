"""Stops calls that take too long, with one timer for all that have the same time.

The oldest of them is the first to be over. A timer of its own for each call would cost more than
most calls do themselves.
"""

import asyncio
import logging
import time
from types import TracebackType
from typing import Any

from toolgate.throttled_log import ThrottledLog

logger = logging.getLogger(__name__)

OVER = "the call is over its time"
"""What its cancellation says; a handler may have timeouts of its own, which are its business."""


class ServerStopping(TimeoutError):
    """The server is stopping, and waits for the call no longer."""


class Deadlines:
    """The calls that are running, oldest first."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.running: dict[Deadline, None] = {}
        self.timer: asyncio.TimerHandle | None = None
        self.stopping = False
        self._ignored: dict[str, ThrottledLog] = {}

    def note_ignored(self, tool: str) -> None:
        """Log that a tool went on after it was cancelled."""
        log = self._ignored.setdefault(tool, ThrottledLog(logger))
        log.record(
            "%s went on after it was cancelled, and was ended. Let CancelledError pass in it.", tool
        )

    def stop(self) -> None:
        """Wait for no call any longer, neither for those that run nor for those that come."""
        self.stopping = True
        self.seconds = 0.0
        if self.timer is not None:  # it would look far too late for those that come
            self.timer.cancel()
            self.timer = None
        for one in self.running:
            one.over = True
            one.task.cancel(OVER)
        self.running.clear()

    def wake_in(self, seconds: float) -> None:
        """Look then whether the oldest call is over its time."""
        self.timer = asyncio.get_running_loop().call_later(seconds, self._wake)

    def _wake(self) -> None:
        """Stop what is over; look again when the next one will be."""
        self.timer = None
        now = time.monotonic()
        for one in list(self.running):
            if one.ends > now:
                return self.wake_in(one.ends - now)
            del self.running[one]
            one.over = True
            one.task.cancel(OVER)
        return None


class Deadline:
    """One call's time; over it, its task is cancelled and the block raises `TimeoutError`."""

    __slots__ = ("_all", "_before", "ends", "over", "task")

    def __init__(self, deadlines: Deadlines) -> None:
        self._all = deadlines
        self.over = False

    def __enter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.task: asyncio.Task[Any] = task
        self._before = task.cancelling()
        self.ends = time.monotonic() + self._all.seconds
        self._all.running[self] = None
        if self._all.timer is None:
            self._all.wake_in(self._all.seconds)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._all.running.pop(self, None)
        # Whoever else cancelled the task meanwhile is to be obeyed.
        if self.over and self.task.uncancel() <= self._before and kind is asyncio.CancelledError:
            raise (ServerStopping if self._all.stopping else TimeoutError) from error

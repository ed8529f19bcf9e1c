"""SIGTERM and Ctrl-C while the server starts: they end the process, with exit code 0.

Once it runs, uvicorn takes these signals, and the server drains (`shutdown.py`).
"""

import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType


class StopSignals:
    """The signals that came before the server could take them.

    A handler that raises is not enough: the exception appears in whatever runs, and some code
    drops it, such as the callbacks of a parser written in C, or `__del__`. So each signal is also
    kept, and looked for before the start goes on.
    """

    def __init__(self) -> None:
        self.received: list[int] = []
        self._held = False

    def install(self) -> None:
        """End the process from now on when one of the signals comes."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 (the library's)
        self.received.append(number)
        if not self._held:
            sys.exit(0)

    @contextmanager
    def held(self) -> Generator[None]:
        """Interrupt nothing in this block: what comes meanwhile ends the process after it."""
        self._held = True
        try:
            self._end_if_received()
            yield
        finally:
            self._held = False
        self._end_if_received()

    def _end_if_received(self) -> None:
        if self.received:
            sys.exit(0)

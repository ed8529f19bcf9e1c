"""Stopping: running calls get time to end, the others are told, and nobody is left waiting.

At SIGTERM a process closes its listening socket at once. An idle connection stays open for a moment
more: a request that is on its way is answered, and that answer closes it. Calls that still run at
the end of the drain time are answered as unavailable, each in the words of its transport, and
audited.
"""

import asyncio
import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.server import HANDLED_SIGNALS
from uvicorn.supervisors import Multiprocess

logger = logging.getLogger(__name__)

ANSWER_SECONDS = 2
"""After the drain time: for the answers of the calls that were stopped to be sent."""
CLOSE_SECONDS = 10
"""After that: for what waits to be stored. A process that takes longer hangs, and is ended."""


def on_stop_signal(begin: Callable[[], object]) -> None:
    """Run a function on the event loop once a signal asks this process to stop.

    Beside what uvicorn does then: it says nothing to an application before everything has ended.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    loop = asyncio.get_running_loop()
    for number in HANDLED_SIGNALS:
        before: Any = signal.getsignal(number)
        if not callable(before):
            continue

        def handle(signum: int, frame: FrameType | None, before: Any = before) -> None:
            before(signum, frame)
            loop.call_soon_threadsafe(begin)

        signal.signal(number, handle)


def end_with_parent(drain_seconds: float) -> None:
    """In a worker: stop when the process that started it is gone, however it went."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()  # a pipe from the parent, which the system closes when it dies
        last = threading.Timer(drain_seconds + ANSWER_SECONDS + CLOSE_SECONDS, os._exit, [1])
        last.daemon = True
        last.start()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="toolgate-parent", daemon=True).start()


class StoppableServer(uvicorn.Server):
    """Serves in this process, and stops for signals that came before it could take them."""

    def __init__(self, config: uvicorn.Config, received: Sequence[int]) -> None:
        super().__init__(config)
        self._received = received

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Take the signals from now on, and those that came before."""
        with super().capture_signals():
            for number in tuple(self._received):
                self.handle_exit(number, None)
            yield


class Supervisor(Multiprocess):
    """Starts the workers and keeps them alive; at its end nothing listens and nothing hangs."""

    def terminate_all(self) -> None:
        """Ask every worker to stop; new connections are refused from now on."""
        for listening in self.sockets:
            # As long as one process has it open, the system would accept connections for nobody.
            listening.close()
        super().terminate_all()

    def keep_subprocess_alive(self) -> None:
        """Start a new worker in the place of each that has ended or hangs, and say so."""
        before = list(self.processes)
        super().keep_subprocess_alive()
        for gone in before:
            if gone not in self.processes:
                logger.warning(
                    "worker %s ended with exit code %s and was replaced",
                    gone.pid,
                    gone.exitcode,
                )

    def join_all(self) -> None:
        """Wait for the workers; one that hangs is killed."""
        drain = self.config.timeout_graceful_shutdown or 0
        deadline = time.monotonic() + drain + CLOSE_SECONDS
        for worker in self.processes:
            worker.process.join(max(0.0, deadline - time.monotonic()))
            if worker.process.is_alive():
                logger.error("worker %s did not stop in time and is killed", worker.pid)
                worker.process.kill()
                worker.process.join()

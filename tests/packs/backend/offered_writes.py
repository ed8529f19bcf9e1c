"""Writes that come at a given rate, whatever the server does: nobody waits for an answer before."""

import http.client
import itertools
import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

from tests.faults.server import Answer, ask
from tests.patience import PATIENT

CLIENTS = 24


class OfferedWrites:
    """Clients that write documents, each at its time."""

    def __init__(self, port: int, rate: int) -> None:
        self._port = port
        self._rate = rate
        self._numbers = itertools.count()
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._write) for _ in range(CLIENTS)]
        self._began = 0.0
        self.acknowledged: list[tuple[float, float]] = []
        """When each was acknowledged, and how long that was after its time."""
        self.refused: list[Answer] = []

    @property
    def count(self) -> int:
        return len(self.acknowledged)

    def during(self, what: str, work: Callable[[], Any]) -> float:
        """The writes a second that were acknowledged while something was done, which is told."""
        began = time.monotonic()
        work()
        ended = time.monotonic()
        some = [late for at, late in self.acknowledged[:] if began <= at <= ended]
        rate = len(some) / (ended - began)
        print(
            f"\n{what}: {ended - began:.1f} s, {rate:.0f} writes a second acknowledged, "
            f"the longest {max(some) * 1000:.0f} ms after its time"
        )
        return rate

    def stop(self) -> None:
        """No more are begun; those under way are answered."""
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _write(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENT)
        with closing(connection):
            while not self._over.is_set():
                number = next(self._numbers)
                due = self._began + number / self._rate
                if self._over.wait(max(0.0, due - time.monotonic())):
                    return
                # Some are new, and some change what others change too.
                name = f"shared-{number % 7}" if number % 2 else f"w{number}"
                body = {"path": f"written/{name}", "document": {"number": number}}
                answer = ask(connection, "POST", "/v1/tools/firestore_write", body)
                now = time.monotonic()
                if answer.status == 200:
                    self.acknowledged.append((now, now - due))
                else:
                    self.refused.append(answer)

    def __enter__(self) -> "OfferedWrites":
        self._began = time.monotonic()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

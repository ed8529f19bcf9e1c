"""A tiny HTTP server that counts, and answers what it is told to."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

GOOD = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"
REQUEST = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


class Tiny:
    """Answers each request with the parts that `answer` gives for its number."""

    def __init__(self, answer: Callable[[int], list[bytes]]) -> None:
        self._answer = answer
        self._lock = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.requests: list[bytes] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def seen(self) -> int:
        return len(self.requests)

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=[connection], daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection, contextlib.suppress(ConnectionResetError):  # a client that gave up
            while request := connection.recv(4096):
                with self._lock:
                    number = self.seen
                    self.requests.append(request)
                for part in self._answer(number):
                    connection.sendall(part)


@pytest.fixture
def tiny() -> Iterator[Callable[[Callable[[int], list[bytes]]], Tiny]]:
    """Starts a tiny server."""
    started: list[Tiny] = []

    def start(answer: Callable[[int], list[bytes]]) -> Tiny:
        started.append(Tiny(answer))
        return started[-1]

    yield start
    for one in started:
        one.close()

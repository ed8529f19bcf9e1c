"""A backend below HTTP: it sends exactly the bytes it is told to, on connections that stay open."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from tests.patience import PATIENT

Answer = Callable[[int], list[bytes]]
"""From the number of the request to what is sent: each part a TLS record, all at once."""


def response(body: bytes, *headers: bytes) -> bytes:
    """A whole response."""
    lines = (b"HTTP/1.1 200 OK", b"Content-Length: %d" % len(body), *headers)
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


@dataclass
class RawBackend:
    """Counts connections and requests."""

    answer: Answer
    tls: ssl.SSLContext | None = None
    port: int = 0
    connections: int = 0
    requests: list[bytes] = field(default_factory=list[bytes])

    def serve(self, listener: socket.socket) -> None:
        while True:
            try:
                one, _ = listener.accept()
            except OSError:
                return
            self.connections += 1
            one.settimeout(PATIENT)
            threading.Thread(target=self._talk, args=(one,), daemon=True).start()

    def _talk(self, one: socket.socket) -> None:
        with one, suppress(OSError, ssl.SSLError):
            talk = _Tls(one, self.tls) if self.tls else _Plain(one)
            while (head := talk.head()) is not None:
                self.requests.append(head)
                talk.send(self.answer(len(self.requests)))


class _Plain:
    def __init__(self, one: socket.socket) -> None:
        self._socket = one

    def head(self) -> bytes | None:
        got = b""
        while b"\r\n\r\n" not in got:
            if not (part := self._read()):
                return None
            got += part
        return got

    def send(self, parts: list[bytes]) -> None:
        self._socket.sendall(b"".join(parts))

    def _read(self) -> bytes:
        return self._socket.recv(65_536)


class _Tls(_Plain):
    def __init__(self, one: socket.socket, context: ssl.SSLContext) -> None:
        super().__init__(one)
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._ssl = context.wrap_bio(self._in, self._out, server_side=True)
        self._until(self._ssl.do_handshake)

    def _until(self, step: Callable[[], Any]) -> Any:
        """What a step of TLS gives, once enough has come in for it."""
        while True:
            try:
                return step()
            except ssl.SSLWantReadError:
                self._flush()
                if not (part := self._socket.recv(65_536)):
                    raise OSError("the client went away") from None
                self._in.write(part)
            finally:
                self._flush()

    def _flush(self) -> None:
        if self._out.pending:
            self._socket.sendall(self._out.read())

    def _read(self) -> bytes:
        return self._until(lambda: self._ssl.read(65_536))

    def send(self, parts: list[bytes]) -> None:
        for part in parts:
            self._ssl.write(part)
        self._socket.sendall(self._out.read())


@contextmanager
def raw_backend(answer: Answer, tls: ssl.SSLContext | None = None) -> Iterator[RawBackend]:
    """The backend on a free port of loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        backend = RawBackend(answer, tls, listener.getsockname()[1])
        threading.Thread(target=backend.serve, args=(listener,), daemon=True).start()
        yield backend
        listener.shutdown(socket.SHUT_RDWR)

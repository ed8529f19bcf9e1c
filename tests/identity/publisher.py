"""A small real HTTP server that says what a test tells it to, and remembers who asked for what."""

import json
import ssl
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl


@dataclass(frozen=True, slots=True)
class Seen:
    """A request that came in."""

    method: str
    path: str
    headers: dict[str, str]
    form: dict[str, str]
    query: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What to send; a body in pieces is sent as it comes, without a length."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict[str, str])


Says = Answer | Callable[[Seen], Answer]


class Publisher:
    """What is published, by path, and what was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, Says] = {}
        self.seen: list[Seen] = []
        self.names: list[str | None] = []
        """Server names of TLS handshakes."""
        self.url = ""
        self.port = 0

    def asked(self, path: str) -> int:
        """How often a path was asked for."""
        return sum(one.path == path for one in self.seen)


@contextmanager
def publishing(tls: ssl.SSLContext | None = None) -> Generator[Publisher]:
    """Serve on a free port of loopback for as long as the block lasts."""
    publisher = Publisher()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("content-length", 0))
            form = dict(parse_qsl(self.rfile.read(length).decode()))
            path, _, query = self.path.partition("?")
            headers = {name.lower(): value for name, value in self.headers.items()}
            seen = Seen(self.command, path, headers, form, query)
            publisher.seen.append(seen)
            said = publisher.answers.get(path, Answer({}, 404))
            try:
                self.send(said(seen) if callable(said) else said)
            except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
                self.close_connection = True

        do_POST = do_GET

        def send(self, answer: Answer) -> None:
            self.send_response(answer.status)
            for name, value in {"Content-Type": "application/json", **answer.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            for piece in pieces(answer.body):
                self.wfile.write(piece)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = Quiet(("127.0.0.1", 0), Handler)
    if tls is not None:
        tls.sni_callback = lambda _socket, name, _context: publisher.names.append(name)
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    publisher.port = server.server_address[1]
    publisher.url = f"{'https' if tls else 'http'}://127.0.0.1:{publisher.port}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield publisher
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up early is what some tests are about."""


def pieces(body: Any) -> Iterable[bytes]:
    if isinstance(body, bytes):
        return [body]
    if isinstance(body, dict | list | str):
        return [json.dumps(body).encode()]
    return body

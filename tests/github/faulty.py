"""Stands in front of the emulator, checks the token as GitHub does, and fails where it is told."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import httpx2
import orjson
from tests.github.emulator import TOKEN, GitHub


@dataclass(slots=True)
class Fault:
    """What happens to the next requests of this kind."""

    method: str
    part: str
    """In their path."""
    status: int | None = None
    """None: the connection is closed without an answer."""
    body: Any = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    after: bool = False
    """Whether the request is done before."""
    before: Callable[[], None] | None = None
    times: int = 1


@dataclass(slots=True)
class FaultyGitHub:
    """An emulator with faults."""

    emulator: GitHub
    url: str = ""
    faults: list[Fault] = field(default_factory=list[Fault])
    seen: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def fail(self, *fault: Any, **more: Any) -> None:
        """The next request of this kind fails like this."""
        self.faults.append(Fault(*fault, **more))

    def fault_for(self, method: str, path: str) -> Fault | None:
        """What to do to a request."""
        for one in self.faults:
            if one.times and one.method == method and one.part in path:
                one.times -= 1
                return one
        return None


@contextmanager
def faulty(emulator: GitHub) -> Iterator[FaultyGitHub]:
    """Serve on loopback for as long as the block lasts."""
    proxy = FaultyGitHub(emulator)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = self.rfile.read(int(self.headers.get("content-length", 0)))
            proxy.seen.append((self.command, self.path))
            if self.headers.get("authorization") != f"Bearer {TOKEN}":
                return self.answer(401, orjson.dumps({"message": "Bad credentials"}), {})
            fault = proxy.fault_for(self.command, self.path)
            if fault and fault.before:
                fault.before()
            if fault and not fault.after:
                return self.fail(fault)
            status, body, headers = self.forward(content)
            return self.fail(fault) if fault else self.answer(status, body, headers)

        do_POST = do_PATCH = do_PUT = do_GET

        def forward(self, content: bytes) -> tuple[int, bytes, dict[str, str]]:
            names = ("accept", "authorization", "content-type")
            headers = {name: self.headers[name] for name in names if name in self.headers}
            with httpx2.Client(trust_env=False) as client:
                got = client.request(
                    self.command, f"{emulator.url}{self.path}", headers=headers, content=content
                )
            kept = {"Content-Type": got.headers.get("content-type", "application/json")}
            return got.status_code, got.content, kept

        def fail(self, fault: Fault) -> None:
            if fault.status is None:
                self.close_connection = True
                return
            body = fault.body if isinstance(fault.body, bytes) else orjson.dumps(fault.body)
            self.answer(fault.status, body, dict(fault.headers))

        def answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    proxy.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

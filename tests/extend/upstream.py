"""A backend for route tools: a real HTTP server that says what it was asked."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from tests.asgi_server import served_in_thread


@dataclass
class Upstream:
    """The backend, and every request it got."""

    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        asked = {
            "method": scope["method"],
            "path": scope["path"],
            "raw_path": scope["raw_path"].decode(),
            "raw_query": scope["query_string"].decode(),
            "query": dict(parse_qsl(scope["query_string"].decode(), keep_blank_values=True)),
            "headers": {key.decode(): value.decode() for key, value in scope["headers"]},
            "body": json.loads(body) if body else None,
        }
        self.requests.append(asked)
        if asked["path"].endswith("/slow"):
            while (await receive())["type"] != "http.disconnect":
                pass
            return
        status, headers, answer = self._answer(asked)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    def _answer(self, asked: dict[str, Any]) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        path, headers = asked["path"].removeprefix("/api"), [(b"set-cookie", b"seen=1; Path=/")]
        match path.strip("/").split("/"):
            case ["status", number, *_]:
                told = {"error": f"the backend says {number}"} if "quiet" not in path else {"no": 1}
                return int(number), headers, json.dumps(told).encode()
            case ["moved"]:
                return 302, [(b"location", b"/api/echo")], b"{}"
            case ["text"]:
                return 200, [(b"content-type", b"text/html")], b"<h1>hello</h1>"
            case ["trace"]:
                return 500, headers, b"Traceback (most recent call last): secret"
            case ["huge"]:
                return 200, headers, b'"' + b"x" * 100_000 + b'"'
            case ["file", size]:
                named = (b"content-disposition", b'attachment; filename="../../a b.png"')
                return 200, [(b"content-type", b"image/png"), named], b"x" * int(size)
            case ["base64", text]:
                given = [(b"content-type", b"application/json; charset=utf-8")]
                return 200, given, json.dumps({"content": text, "pages": 3}).encode()
            case ["list"]:
                return 200, headers, b"[1, 2]"
            case ["empty"]:
                return 204, headers, b""
            case ["zipped"]:
                return 200, [(b"content-encoding", b"gzip")], b"\x1f\x8b"
            case _:
                shown = {key: asked[key] for key in ("method", "path", "query", "body")}
                return 200, headers, json.dumps(shown).encode()


@contextmanager
def running_upstream() -> Iterator[Upstream]:
    """The backend on a free port of loopback."""
    app = Upstream()
    with served_in_thread(app) as url:
        app.url = f"{url}/api"
        yield app

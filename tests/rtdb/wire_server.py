"""A Realtime Database for tests: the REST protocol and its streams, over real HTTP, in memory.

Each `?ns=` is a database of its own. It listens on loopback, in a thread.
"""

import asyncio
import hashlib
import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote

from tests.asgi_server import served_in_thread
from tests.rtdb import naive_tree
from tests.rtdb.naive_tree import Invalid, Keys, Value

QUERYING = {"startAt", "startAfter", "endAt", "endBefore", "equalTo", "limitToFirst", "limitToLast"}


class Refused(Exception):
    """An answer other than 200."""

    def __init__(self, status: int, body: Any, **headers: str) -> None:
        super().__init__(status)
        self.status, self.body, self.headers = status, body, headers


@dataclass
class Request:
    """What came in."""

    method: str
    keys: Keys
    asked: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def namespace(self) -> str:
        return self.asked.get("ns", "")

    def value(self) -> Value:
        try:
            return json.loads(self.body)
        except ValueError:
            raise Invalid("Invalid data; couldn't parse JSON object, array, or value.") from None


@dataclass
class Listener:
    """A stream that is open."""

    namespace: str
    keys: Keys
    events: "asyncio.Queue[tuple[str, Any] | None]" = field(default_factory=asyncio.Queue)


class WireServer:
    """The database, and what a test may ask of it."""

    def __init__(self) -> None:
        self.trees: dict[str, Value] = {}
        self.listeners: list[Listener] = []
        self.requests: list[Request] = []
        self.token: str | None = None
        """When set, every request must bring it."""
        self.indexes: set[str] | None = None
        """When set, what may be ordered by besides keys."""
        self.failures: list[Refused] = []
        """The next answers, whatever is asked."""
        self.before_puts: list[Value] = []
        """Values that somebody else writes just before the next PUTs, where these go."""
        self.redirect: str | None = None
        """Where streams are sent to."""
        self.url = ""
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self._loop = asyncio.get_running_loop()
        request = await self._read(scope, receive)
        self.requests.append(request)
        try:
            if self.failures:
                raise self.failures.pop(0)
            self._authorize(request)
            if "text/event-stream" in request.headers.get("accept", ""):
                await self._stream(request, receive, send)
                return
            value, etag = self._answer(request)
            silent = request.asked.get("print") == "silent"
            await _respond(send, 204 if silent else 200, b"" if silent else _json(value), etag)
        except Invalid as problem:
            await _respond(send, 400, _json({"error": str(problem)}), {})
        except Refused as refused:
            await _respond(send, refused.status, _json(refused.body), refused.headers)

    async def _read(self, scope: Any, receive: Any) -> Request:
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        path = scope["raw_path"].decode().removesuffix(".json").strip("/")
        keys = [unquote(key) for key in path.split("/")] if path else []
        headers = {name.decode().lower(): value.decode() for name, value in scope["headers"]}
        asked = dict(parse_qsl(scope["query_string"].decode(), keep_blank_values=True))
        return Request(scope["method"], keys, asked, headers, body)

    def _authorize(self, request: Request) -> None:
        given = request.headers.get("authorization")
        if self.token is not None and given != f"Bearer {self.token}":
            raise Refused(401, {"error": "Unauthorized request."})

    def _answer(self, request: Request) -> tuple[Value, dict[str, str]]:
        if request.method == "GET":
            return self._get(request)
        if request.method == "PUT" and self.before_puts:
            self._put(request, request.keys, self.before_puts.pop(0))
        self._check_match(request)
        match request.method:
            case "PUT":
                value = self._put(request, request.keys, request.value())
            case "DELETE":
                value = self._put(request, request.keys, None)
            case "POST":
                key = f"-N{secrets.token_hex(9)}"
                self._put(request, [*request.keys, key], request.value())
                value = {"name": key}
            case "PATCH":
                value = self._patch(request)
            case _:
                raise Refused(405, {"error": "Method not allowed"})
        return value, self._etag(request)

    def _get(self, request: Request) -> tuple[Value, dict[str, str]]:
        value = naive_tree.look(self.trees.get(request.namespace), request.keys)
        asked = request.asked
        if asked.get("shallow") == "true":
            if QUERYING & set(asked) or "orderBy" in asked:
                raise Invalid("shallow can not be used with other query parameters")
            return (dict.fromkeys(value, True) if isinstance(value, dict) else value), {}
        if "orderBy" in asked:
            self._check_index(request)
            return naive_tree.shown(naive_tree.query(value, asked) or None), {}
        if QUERYING & set(asked):
            raise Invalid("orderBy must be defined when other query parameters are defined")
        return naive_tree.shown(value), self._etag(request)

    def _check_index(self, request: Request) -> None:
        index = json.loads(request.asked["orderBy"])
        if self.indexes is not None and index != "$key" and index not in self.indexes:
            path = "/" + "/".join(request.keys)
            told = f'Index not defined, add ".indexOn": "{index}", for path "{path}", to the rules'
            raise Invalid(told)

    def _put(self, request: Request, keys: Keys, value: Value) -> Value:
        stored = self._store(request.namespace, [(keys, value)])[0]
        self._tell(request.namespace, keys, "put", naive_tree.shown(stored))
        return naive_tree.shown(stored)

    def _patch(self, request: Request) -> Value:
        changes = request.value()
        if not isinstance(changes, dict):
            raise Invalid("Invalid data; couldn't parse JSON object.")
        paths = [[*request.keys, *path.split("/")] for path in changes]
        for one in paths:
            if any(one != other and other[: len(one)] == one for other in paths):
                raise Invalid(f"Path '/{'/'.join(one)}' is an ancestor of another")
        stored = self._store(request.namespace, list(zip(paths, changes.values(), strict=True)))
        shown = {path: naive_tree.shown(one) for path, one in zip(changes, stored, strict=True)}
        self._tell(request.namespace, request.keys, "patch", shown)
        return shown

    def _store(self, namespace: str, changes: list[tuple[Keys, Value]]) -> list[Value]:
        root = before = self.trees.get(namespace)
        moment, stored = naive_tree.now(), []
        for keys, value in changes:
            made = naive_tree.worked_out(value, naive_tree.look(before, keys), moment)
            naive_tree.clean({key: 1 for key in keys} or None)
            stored.append(naive_tree.clean(made))
            root = naive_tree.put(root, keys, stored[-1])
        self.trees[namespace] = root
        return stored

    def _check_match(self, request: Request) -> None:
        wanted = request.headers.get("if-match")
        if wanted is None:
            return
        if request.method not in ("PUT", "DELETE"):
            raise Invalid("if-match is not supported for this method")
        etag = self._etag(request, always=True)
        if etag["ETag"] != wanted:
            value = naive_tree.look(self.trees.get(request.namespace), request.keys)
            raise Refused(412, naive_tree.shown(value), **etag)

    def _etag(self, request: Request, *, always: bool = False) -> dict[str, str]:
        if not always and request.headers.get("x-firebase-etag") != "true":
            return {}
        value = naive_tree.look(self.trees.get(request.namespace), request.keys)
        if value is None:
            return {"ETag": "null_etag"}
        text = json.dumps(value, sort_keys=True).encode()
        return {"ETag": hashlib.sha256(text).hexdigest()[:22]}

    def _tell(self, namespace: str, keys: Keys, kind: str, value: Value) -> None:
        for one in self.listeners:
            if one.namespace != namespace:
                continue
            if keys[: len(one.keys)] == one.keys:
                path = "/" + "/".join(keys[len(one.keys) :])
                one.events.put_nowait((kind, {"path": path, "data": value}))
            elif one.keys[: len(keys)] == keys:
                whole = naive_tree.look(self.trees.get(namespace), one.keys)
                data = {"path": "/", "data": naive_tree.shown(whole)}
                one.events.put_nowait(("put", data))

    async def _stream(self, request: Request, receive: Any, send: Any) -> None:
        if self.redirect is not None:
            raise Refused(307, None, Location=self.redirect)
        listener = Listener(request.namespace, request.keys)
        value = naive_tree.look(self.trees.get(request.namespace), request.keys)
        listener.events.put_nowait(("put", {"path": "/", "data": naive_tree.shown(value)}))
        self.listeners.append(listener)
        headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        gone = asyncio.create_task(receive())
        try:
            while True:
                event = asyncio.create_task(listener.events.get())
                await asyncio.wait([gone, event], return_when=asyncio.FIRST_COMPLETED)
                if not event.done():
                    event.cancel()
                    return
                if (told := event.result()) is None:
                    break
                text = f"event: {told[0]}\ndata: {json.dumps(told[1])}\n\n".encode()
                # In two pieces, as a network may bring it.
                for piece in (text[:9], text[9:]):
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()
            self.listeners.remove(listener)

    def say(self, kind: str | None, data: Any = None) -> None:
        """Send an event to every stream that is open; None ends them."""
        assert self._loop is not None
        for one in list(self.listeners):
            event = None if kind is None else (kind, data)
            self._loop.call_soon_threadsafe(one.events.put_nowait, event)


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


async def _respond(send: Any, status: int, body: bytes, headers: dict[str, str]) -> None:
    told = {"content-type": "application/json; charset=utf-8", **headers}
    pairs = [(name.lower().encode(), value.encode()) for name, value in told.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})


@contextmanager
def running_rtdb() -> Iterator[WireServer]:
    """The database on a free port of loopback."""
    app = WireServer()
    with served_in_thread(app, cut=True) as url:
        app.url = url
        yield app

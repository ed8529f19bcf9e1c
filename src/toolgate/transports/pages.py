"""Pages of packs over HTTP (`gate.pages`)."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from urllib.parse import parse_qsl

from sqlalchemy.exc import SQLAlchemyError

from toolgate.db.transactions import Transaction
from toolgate.gate.audit_records import new_id, record_of
from toolgate.gate.calls import ended_now
from toolgate.gate.catalogue import OpenPage
from toolgate.gate.errors import (
    GateError,
    Internal,
    InvalidArguments,
    MethodNotAllowed,
    Problem,
    TimedOut,
    Unavailable,
    WritesOff,
)
from toolgate.gate.page_writes import check_page_writes, written_as
from toolgate.gate.pages import PageAnswer, PageRequest
from toolgate.gate.path_templates import pattern_of
from toolgate.gate.pipeline import Gate
from toolgate.gate.policy import Decision
from toolgate.gate.principal import Principal
from toolgate.ports.documents import StoreUnavailable
from toolgate.transports.asgi import (
    Headers,
    Receive,
    Scope,
    Send,
    call_of,
    error_headers,
    read_body,
    request_id_of,
    send,
    send_json,
)
from toolgate.transports.peers import Peers
from toolgate.transports.refusals import refuse_unauthenticated

logger = logging.getLogger(__name__)

FIXED = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    # Not no-referrer: browsers then send `Origin: null` with a page's own forms.
    "referrer-policy": "same-origin",
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; img-src https: data:"
    "; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
}
"""Headers of every page, unless it says otherwise."""
REFUSED = "page-refused"


class PackPages:
    """Every page of the open packs."""

    def __init__(self, gate: Gate, peer: Peers) -> None:
        self._gate = gate
        self._peer = peer
        self._pages = [(pattern_of(one.page.path), one) for one in gate.catalogue.pages]

    def opens(self, path: str) -> bool:
        """Whether a path is a page's."""
        return any(pattern.fullmatch(path) for pattern, _ in self._pages)

    async def __call__(self, scope: Scope, receive: Receive, to: Send) -> None:
        """Answer a request to a page; what goes wrong is told in one sentence, and audited."""
        opened, parameters = self._find(scope["path"])
        try:
            answer = await self._answer(opened, parameters, scope, receive)
        except GateError as refused:
            rule = refused.rule if isinstance(refused, WritesOff) else None
            told = refuse_unauthenticated(
                self._gate, scope, refused, rule or REFUSED, self._peer(scope)
            )
            if opened.page.tell is None:
                body = {"error": told.message}
                return await send_json(to, told.status, body, error_headers(told))
            shown = opened.page.tell(opened.world, told)
            return await _send(to, replace(shown, status=told.status), error_headers(told))
        await _send(to, answer)

    async def _answer(
        self, opened: OpenPage, parameters: dict[str, str], scope: Scope, receive: Receive
    ) -> PageAnswer:
        page = opened.page
        if scope["method"] not in page.methods:
            raise MethodNotAllowed(scope["method"], ", ".join(page.methods))
        limits = self._gate.limits
        await limits.peers.admit(page.shape, self._peer(scope), page.calls_per_minute)
        body = await read_body(scope, receive, page.body_bytes)
        request = PageRequest(
            method=scope["method"],
            path=scope["path"],
            parameters=parameters,
            query=_query(scope["query_string"]),
            headers=_headers(scope["headers"]),
            body=body,
            request_id=request_id_of(scope),
            transaction=partial(_transaction, self._gate, scope, opened),
            check_writes=partial(_check_writes, self._gate, opened),
        )
        try:
            async with asyncio.timeout(limits.settings.seconds):
                return await page.handler(opened.world, request)
        except GateError:
            raise
        except TimeoutError:
            raise TimedOut("This took too long and was stopped. Try again.") from None
        except (SQLAlchemyError, StoreUnavailable):
            logger.debug("%s: the page cannot be answered", request.request_id, exc_info=True)
            raise Unavailable("The database does not answer. Try again later.") from None
        except Exception:
            logger.exception("%s: the page %s failed", request.request_id, page.path)
            raise Internal(request.request_id) from None

    def _find(self, path: str) -> tuple[OpenPage, dict[str, str]]:
        for pattern, opened in self._pages:
            if found := pattern.fullmatch(path):
                return opened, found.groupdict()
        raise AssertionError("asked for a path that no page opens")


async def _send(to: Send, answer: PageAnswer, more: Headers = ()) -> None:
    headers = FIXED | dict(answer.headers)
    content = (b"content-type", answer.content_type.encode())
    lines = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    await send(to, answer.status, answer.body, [*lines, *more], content=content)


def _query(query: bytes) -> dict[str, str]:
    try:
        pairs = parse_qsl(query.decode(), keep_blank_values=True, errors="strict")
    except ValueError:
        message = "The query string is not valid UTF-8"
        raise InvalidArguments([Problem("query", "format", message)]) from None
    return dict(reversed(pairs))


def _headers(pairs: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(pairs)}


async def _check_writes(gate: Gate, opened: OpenPage) -> None:
    tools = written_as(opened.page, opened.pack, gate.catalogue)
    await check_page_writes(tools, gate.policy, gate.switches, opened.page.path)


@asynccontextmanager
async def _transaction(
    gate: Gate, scope: Scope, opened: OpenPage, rule: str, who: Principal
) -> AsyncGenerator[Transaction]:
    started = time.perf_counter()
    path = opened.page.path
    await _check_writes(gate, opened)
    async with gate.database.transaction() as tx:
        tx.call = new_id()
        yield tx
        call = call_of(scope, path, principal=who)
        decision = Decision(visible=True, allowed=True, rule=rule)
        row = record_of(ended_now(call, None, decision, started, None), tx.call)
        gate.audit.store_with_write(tx, row)

"""The authorization server over HTTP: requests in, answers out, both outcomes into the audit.

What succeeds is audited with the write it makes, what is refused up to the strangers' limit.
"""

import logging
import time
from collections.abc import Callable, Mapping

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from toolgate.gate.errors import Forbidden, GateError, RateLimited, TooLarge, Unavailable
from toolgate.gate.pipeline import Call, Gate, ended_now
from toolgate.gate.policy import Decision
from toolgate.gate.principal import Kind, Principal
from toolgate.gate.records import record_of
from toolgate.identity.oauth import paths
from toolgate.identity.oauth.messages import Answer, Parameters, Request, Unreadable, failure
from toolgate.identity.oauth.noting import Note
from toolgate.identity.oauth.server import Endpoint
from toolgate.identity.oauth.token import FORM
from toolgate.ports.documents import StoreUnavailable
from toolgate.transports.address import ADDRESS, Address
from toolgate.transports.asgi import (
    Receive,
    Scope,
    Send,
    cookies_of,
    error_headers,
    header,
    read_body,
    request_id_of,
    send,
    send_json,
)
from toolgate.transports.strangers import note_refusal

logger = logging.getLogger(__name__)

WELL_KNOWN = "/.well-known/"
MOST_BODY = 64 * 1024
# Each of these leaves a row, or looks something up elsewhere.
COUNTED = {
    paths.REGISTER: "oauth-register",
    "/register": "oauth-register",
    paths.AUTHORIZE: "oauth-authorize",
    "/authorize": "oauth-authorize",
}


class OAuth:
    """Every endpoint of the authorization server; none needs credentials."""

    def __init__(
        self, gate: Gate, endpoints: Mapping[str, Endpoint], peer: Callable[[Scope], str]
    ) -> None:
        self._gate = gate
        self._endpoints = endpoints
        self._peer = peer

    def opens(self, path: str) -> bool:
        """Whether a path is answered without credentials."""
        return path in self._endpoints or path.startswith(WELL_KNOWN)

    async def __call__(self, scope: Scope, receive: Receive, to: Send) -> None:
        """Answer one request."""
        endpoint = self._endpoints.get(scope["path"])
        if endpoint is None:
            return await send_json(to, 404, {"error": "There is nothing here."})
        if scope["method"] not in endpoint.methods:
            allow = (b"allow", ", ".join(endpoint.methods).encode())
            return await send_json(to, 405, {"error": "Method not allowed"}, [allow])
        try:
            await self._count(scope["path"])
            answer = await endpoint(await self._request(scope, receive))
        except Unreadable as problem:
            answer = failure("invalid_request", str(problem), "oauth-bad-request")
        except GateError as refused:
            headers = error_headers(refused)
            return await send_json(to, refused.status, _worded(refused), headers)
        except (SQLAlchemyError, StoreUnavailable):
            logger.debug("%s: sign-in is not possible now", request_id_of(scope), exc_info=True)
            refused = Unavailable("Signing in is not possible now. Try again later.")
            return await send_json(to, refused.status, _worded(refused))
        if answer.rule is not None:
            await note_refusal(self._gate, scope, Forbidden("refused"), answer.rule)
        await _send(to, answer)

    async def _count(self, path: str) -> None:
        if path in COUNTED:
            stranger = Principal(kind=Kind.ANONYMOUS, id=COUNTED[path])
            await self._gate.limits.admit(stranger, path)

    async def _request(self, scope: Scope, receive: Receive) -> Request:
        address: Address = scope[ADDRESS]
        body = await read_body(receive, MOST_BODY) if scope["method"] == "POST" else b""
        content_type = (header(scope, b"content-type") or "").partition(";")[0].strip().lower()
        return Request(
            method=scope["method"],
            base=address.base,
            resources=address.resources,
            peer=self._peer(scope),
            note=_noting(self._gate, scope),
            query=Parameters.read(scope["query_string"]),
            form=Parameters.read(body) if content_type == FORM else Parameters(),
            body=body,
            content_type=content_type,
            cookies=cookies_of(scope),
        )


def _noting(gate: Gate, scope: Scope) -> Note:
    """Audits what this request brings about."""
    started = time.perf_counter()

    def note(connection: Connection, rule: str, who: Principal) -> None:
        call = Call(
            tool=scope["path"],
            arguments=None,
            principal=who,
            request_id=request_id_of(scope),
            transport="http",
        )
        decision = Decision(visible=True, allowed=True, rule=rule)
        gate.audit.beside(connection, record_of(ended_now(call, None, decision, started, None)))

    return note


def _worded(error: GateError) -> dict[str, str]:
    match error:
        case RateLimited() | Unavailable():
            code = "temporarily_unavailable"
        case TooLarge():
            code = "invalid_request"
        case _:
            code = "server_error"
    return {"error": code, "error_description": error.message}


async def _send(to: Send, answer: Answer) -> None:
    headers = [(name.encode(), value.encode()) for name, value in answer.headers]
    kinds = [one for one in headers if one[0] == b"content-type"]
    content = kinds[0] if kinds else (b"content-type", b"text/plain; charset=utf-8")
    others = [one for one in headers if one[0] != b"content-type"]
    await send(to, answer.status, answer.body, others, content=content)

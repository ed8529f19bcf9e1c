"""The authorization server over HTTP: requests in, answers out, both outcomes into the audit.

What succeeds is audited with the write it makes, what is refused up to the strangers' limit.
"""

import logging
import time
from collections.abc import Mapping
from dataclasses import replace

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from toolgate.gate.audit_records import record_of
from toolgate.gate.calls import ended_now
from toolgate.gate.errors import Forbidden, GateError, RateLimited, TooLarge, Unavailable
from toolgate.gate.pipeline import Gate
from toolgate.gate.policy import Decision
from toolgate.gate.principal import Principal
from toolgate.identity.oauth import paths
from toolgate.identity.oauth.audit_notes import Note
from toolgate.identity.oauth.messages import (
    BadParameters,
    Parameters,
    Request,
    Response,
    error_response,
)
from toolgate.identity.oauth.page_templates import error_page
from toolgate.identity.oauth.server import ALIASES, Endpoint
from toolgate.identity.oauth.token import BAD, FORM
from toolgate.ports.documents import StoreUnavailable
from toolgate.transports.address import ADDRESS, Address
from toolgate.transports.asgi import (
    Receive,
    Scope,
    Send,
    call_of,
    cookies_of,
    error_headers,
    header,
    read_body,
    request_id_of,
    send,
    send_json,
)
from toolgate.transports.peers import Peers
from toolgate.transports.refusals import refuse_unauthenticated

logger = logging.getLogger(__name__)

WELL_KNOWN = "/.well-known/"
MAX_BODY = 64 * 1024
# The first two leave a row each; the others are reads, unless somebody brings a secret of ours.
RARE = {paths.REGISTER, paths.AUTHORIZE}
OFTEN = {paths.TOKEN, paths.REVOKE, paths.SIGN_IN, paths.CONSENT, paths.CALLBACK}
OFTEN_FOR_ONE_RARE = 10
PAGES = {paths.AUTHORIZE, paths.SIGN_IN, paths.CONSENT, paths.CALLBACK}
"""What a person sees in a browser."""
EMBEDDED = "This page must be opened by itself, not as a part of another page."
WAIT = "Wait a little, then go back to the application and try again."


class OAuthRoutes:
    """Every endpoint of the authorization server; none needs credentials."""

    def __init__(
        self,
        gate: Gate,
        endpoints: Mapping[str, Endpoint],
        peer: Peers,
        *,
        cookie: str | None = None,
    ) -> None:
        self._gate = gate
        self._endpoints = endpoints
        self._peer = peer
        self._cookie = cookie

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
            return await send_json(to, 405, {"error": _wrong_method(scope, endpoint)}, [allow])
        path: str = ALIASES.get(scope["path"]) or scope["path"]
        if path in PAGES and _is_embedded(scope):
            # Not counted: any web page could shut sign-in for the browser that shows it.
            return await _send(to, error_page(self._bare(scope), EMBEDDED, None, status=403))
        try:
            await self._count(path, self._peer(scope))
            answer = await endpoint(await self._request(scope, receive))
        except BadParameters as problem:
            answer = (
                error_page(self._bare(scope), str(problem), BAD)
                if path in PAGES
                else error_response("invalid_request", str(problem), BAD)
            )
        except GateError as refused:
            return await self._refuse(refused, path, scope, to)
        except (SQLAlchemyError, StoreUnavailable):
            logger.debug("%s: sign-in is not possible now", request_id_of(scope), exc_info=True)
            refused = Unavailable("Signing in is not possible now. Try again later.")
            return await self._refuse(refused, path, scope, to)
        if answer.rule is not None:
            refused = Forbidden("refused")
            peer = self._peer(scope)
            refuse_unauthenticated(
                self._gate, scope, refused, answer.rule, peer, actor=answer.actor
            )
        await _send(to, answer)

    async def _count(self, path: str, peer: str) -> None:
        """Each peer by itself, so that nobody can shut the others out."""
        most = self._gate.limits.settings.sign_ins_per_minute
        if path in OFTEN:
            most *= OFTEN_FOR_ONE_RARE
        elif path not in RARE:
            return
        await self._gate.limits.peers.admit(path, peer, most)

    async def _refuse(self, refused: GateError, path: str, scope: Scope, to: Send) -> None:
        """A person is told on a page, a program in JSON; both are audited."""
        rule = _rule_of(refused)
        refused = refuse_unauthenticated(self._gate, scope, refused, rule, self._peer(scope))
        if path not in PAGES:
            headers = error_headers(refused)
            return await send_json(to, refused.status, _error_body(refused), headers)
        headers = [(name.decode(), value.decode()) for name, value in error_headers(refused)]
        status = refused.status
        response = error_page(
            self._bare(scope), refused.message, None, *headers, status=status, then=WAIT
        )
        return await _send(to, response)

    def _bare(self, scope: Scope) -> Request:
        """The request without what came with it."""
        address: Address = scope[ADDRESS]
        return Request(
            method=scope["method"],
            base=address.base,
            resources=address.resources,
            peer=self._peer(scope),
            local=self._peer.is_local(scope),
            note=_audit_note(self._gate, scope),
            cookie=self._cookie,
        )

    async def _request(self, scope: Scope, receive: Receive) -> Request:
        body = await read_body(scope, receive, MAX_BODY) if scope["method"] == "POST" else b""
        content_type = (header(scope, b"content-type") or "").partition(";")[0].strip().lower()
        return replace(
            self._bare(scope),
            query=Parameters.read(scope["query_string"]),
            form=Parameters.read(body) if content_type == FORM else Parameters(),
            body=body,
            content_type=content_type,
            accept=header(scope, b"accept") or "",
            cookies=cookies_of(scope),
        )


def _wrong_method(scope: Scope, endpoint: Endpoint) -> str:
    message = f"{scope['method']} is not possible here. Use {' or '.join(endpoint.methods)}."
    # Who sends something there has been given the server's address, not that of MCP.
    return f"{message} MCP is at {paths.MCP_PATHS[0]}." if scope["path"] == paths.HOME else message


def _is_embedded(scope: Scope) -> bool:
    """Whether a page of another origin asks for a picture, a frame or the like (Fetch Metadata)."""
    if header(scope, b"sec-fetch-site") in (None, "same-origin", "none"):
        return False
    asked_as = (header(scope, b"sec-fetch-mode"), header(scope, b"sec-fetch-dest"))
    return asked_as != ("navigate", "document")


def _audit_note(gate: Gate, scope: Scope) -> Note:
    """Audits what this request brings about."""
    started = time.perf_counter()

    def note(connection: Connection, rule: str, who: Principal) -> None:
        call = call_of(scope, scope["path"], principal=who)
        decision = Decision(visible=True, allowed=True, rule=rule)
        gate.audit.store_on(connection, record_of(ended_now(call, None, decision, started, None)))

    return note


def _rule_of(error: GateError) -> str:
    match error:
        case RateLimited():
            return "oauth-limit"
        case TooLarge():
            return BAD
        case _:
            return "oauth-unavailable"


def _error_body(error: GateError) -> dict[str, str]:
    match error:
        case RateLimited() | Unavailable():
            code = "temporarily_unavailable"
        case TooLarge():
            code = "invalid_request"
        case _:
            code = "server_error"
    return {"error": code, "error_description": error.message}


async def _send(to: Send, response: Response) -> None:
    headers = [(name.encode(), value.encode()) for name, value in response.headers]
    kinds = [one for one in headers if one[0] == b"content-type"]
    content = kinds[0] if kinds else (b"content-type", b"text/plain; charset=utf-8")
    others = [one for one in headers if one[0] != b"content-type"]
    await send(to, response.status, response.body, others, content=content)

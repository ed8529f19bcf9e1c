"""JSON-RPC 2.0 at `POST /rpc`: the method is a tool's name, params are its arguments."""

from dataclasses import dataclass, field
from typing import Any, cast

import orjson

from toolgate.gate.attachments import Delivery
from toolgate.gate.dialects import JSON_RPC
from toolgate.gate.diffs import Diff, joined
from toolgate.gate.errors import (
    GateError,
    InvalidArguments,
    InvalidParams,
    RateLimited,
    TooLarge,
    UnknownTool,
)
from toolgate.gate.outcomes import Attached, Outcome
from toolgate.gate.pipeline import Gate
from toolgate.transports.asgi import (
    BODY_LIMIT,
    Headers,
    Receive,
    Scope,
    Send,
    call_of,
    diff_headers,
    error_headers,
    parse_json,
    read_body,
    send,
    send_json,
    too_large,
)
from toolgate.transports.attachments import PLACE_IN_JSON, send_in_json
from toolgate.transports.jsonrpc import INVALID_REQUEST, PARSE_ERROR, broken_request, failure
from toolgate.transports.large_bodies import most_bytes
from toolgate.transports.refusals import UNREADABLE, UNREADABLE_TOOL

TRANSPORT = "rpc"
MAX_IN_A_BATCH = 100
Response = dict[str, Any]


@dataclass(slots=True)
class Noted:
    """What answering the messages of a request has shown."""

    refused: list[RateLimited | None] = field(default_factory=list["RateLimited | None"])
    """For each, how it was one too many, if so."""
    diffs: list[Diff] = field(default_factory=list["Diff"])
    """What dry runs would change."""
    attached: Attached | None = None
    """The attachment of a message that came alone."""


class Rpc:
    """One endpoint for single calls, notifications and batches."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, to: Send) -> None:
        """Answer one request."""
        if scope["method"] != "POST":
            response = failure(None, INVALID_REQUEST, "Use POST.")
            return await send_json(to, 405, response, [(b"allow", b"POST")])
        try:
            usual = self._gate.limits.settings.body_bytes
            body = await read_body(scope, receive, scope.get(BODY_LIMIT, usual))
            with_file = len(body) > usual
            message = parse_json(body, with_file=with_file)
            if with_file and len(body) > (most := most_bytes(self._gate, _method(message))):
                raise too_large(most)
            del body  # a large one is not to stay in memory beside what was in it
        except GateError as problem:
            return await self._unreadable(scope, to, problem)
        noted = Noted()
        answers = await self._respond(scope, message, noted)
        if noted.attached is not None:
            return await send_in_json(to, answers, noted.attached)
        status, headers = _status(noted.refused)
        if noted.diffs:
            headers = [*headers, *diff_headers(joined(noted.diffs))]
        if answers is None:
            return await send(to, status or 204, b"", headers)
        await send(to, status or 200, orjson.dumps(answers), headers)

    async def _unreadable(self, scope: Scope, to: Send, problem: GateError) -> None:
        refused = self._refuse(scope, problem)
        if isinstance(refused, RateLimited):
            limited = failure(None, refused.rpc, refused.message)
            return await send_json(to, refused.status, limited, error_headers(refused))
        if isinstance(problem, InvalidArguments):
            response = failure(None, PARSE_ERROR, f"Parse error: {problem.message}")
            return await send_json(to, 200, response)
        code = INVALID_REQUEST if isinstance(problem, TooLarge) else problem.rpc
        await send_json(to, problem.status, failure(None, code, problem.message))

    async def _respond(
        self, scope: Scope, message: Any, noted: Noted
    ) -> Response | list[Response] | None:
        if not isinstance(message, list):
            return await self._one(scope, message, noted, alone=True)
        batch = cast("list[Any]", message)
        if not 1 <= len(batch) <= MAX_IN_A_BATCH:
            text = f"A batch holds 1 to {MAX_IN_A_BATCH} requests."
            return self._invalid(scope, text, noted)
        answers = [await self._one(scope, one, noted) for one in batch]
        return [one for one in answers if one is not None] or None

    async def _one(
        self, scope: Scope, message: Any, noted: Noted, *, alone: bool = False
    ) -> Response | None:
        """Answer one message, and note what the response as a whole depends on."""
        if problem := broken_request(message):
            return self._invalid(scope, f"Invalid Request: {problem}", noted)
        request = cast(Response, message)
        tool, arguments = request["method"], request.get("params")
        if not isinstance(arguments, dict | None):
            arguments = InvalidParams()  # told once it is clear that the caller may call the tool
        delivery = Delivery.PIECES if alone else Delivery.REFUSED
        call = call_of(scope, tool, arguments, transport=TRANSPORT, attachments=delivery)
        outcome = await self._gate.execute(call)
        noted.refused.append(outcome.error if isinstance(outcome.error, RateLimited) else None)
        if outcome.diff is not None:
            noted.diffs.append(outcome.diff)
        if "id" not in request:
            return None
        if outcome.attached is not None:
            noted.attached = outcome.attached
            result = outcome.attached.body_with(PLACE_IN_JSON)
            return {"jsonrpc": "2.0", "id": request["id"], "result": result}
        if outcome.error is None:
            return {"jsonrpc": "2.0", "id": request["id"], "result": outcome.body}
        return {"jsonrpc": "2.0", "id": request["id"], "error": rpc_error(outcome)}

    def _invalid(self, scope: Scope, message: str, noted: Noted) -> Response:
        """Refuse what is no request; audited and counted."""
        error = self._refuse(scope, InvalidArguments([]))
        noted.refused.append(error if isinstance(error, RateLimited) else None)
        if isinstance(error, RateLimited):
            return failure(None, error.rpc, error.message)
        return failure(None, INVALID_REQUEST, message)

    def _refuse(self, scope: Scope, problem: GateError) -> GateError:
        call = call_of(scope, UNREADABLE_TOOL, transport=TRANSPORT)
        return self._gate.refuse(call, problem, UNREADABLE)


def _method(message: Any) -> str:
    """What a message calls; nothing where it is a batch, or no request."""
    match message:
        case {"method": str() as method}:
            return method
        case _:
            return ""


def _status(refused: list[RateLimited | None]) -> tuple[int | None, Headers]:
    """429 where every message was one too many."""
    limited = [one for one in refused if one is not None]
    if not limited or len(limited) < len(refused):
        return None, ()
    return limited[-1].status, error_headers(limited[-1])


def rpc_error(outcome: Outcome) -> Response:
    """A failure as a JSON-RPC error: the pack's own where it speaks JSON-RPC."""
    assert outcome.error is not None
    if "code" in outcome.body and "message" in outcome.body:
        return outcome.body
    if isinstance(outcome.error, UnknownTool):  # of no pack
        return JSON_RPC.failure(outcome.error, False)
    return {
        "code": outcome.error.rpc,
        "message": outcome.error.message,
        "data": outcome.body,
    }

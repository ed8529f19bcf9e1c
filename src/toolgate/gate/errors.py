"""Every way a call can fail, and its code in each dialect.

GateError
├── InvalidArguments     the input breaks a rule of its schema
│   └── InvalidParams    it is no object of named values, over JSON-RPC
├── TooLarge             the body is over the limit
├── UnsupportedMediaType the body is said to be something else than JSON
├── MethodNotAllowed     the path is there, but not for this method
├── UnknownTool          no such tool, or none that this caller may know of
├── Unauthenticated      no credentials, or not good ones
│   └── TokenExpired     they were good once
├── Forbidden            the caller may see the tool, but not call it (now)
│   ├── ToolDisabled     an operator has switched the tool off
│   └── PolicyViolation  the caller may do this, but not with such content
├── NotFound             what the arguments name does not exist for this caller
│   └── Gone             it existed, and is deleted for good
├── Conflict             it is already there, or was changed meanwhile
├── ResultTooLarge       the answer is over the limit
├── RateLimited          too many calls
├── QuotaExceeded        an allowance is used up
├── TimedOut             the call took too long
│   └── StoppedWrite     so did a write outside the database, which may have been done
├── OutcomeUnknown       a write that may or may not be stored
├── Unavailable          something this call needs does not answer
│   ├── ForgeUnavailable the forge (GitHub) fails or does not answer
│   └── WritesOff        a page would write, and that is switched off
├── RouteFailed          the route behind a user's own tool refuses or fails
└── Internal             a defect of ours; the log says where
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

MAX_NAME = 128


def printable(name: str) -> str:
    """A name that a stranger made up, fit for every database and every terminal."""
    short = name[:MAX_NAME]
    if short.isprintable():
        return short
    return "".join(one if one.isprintable() else "?" for one in short)


class GateError(Exception):
    """A failure that the caller is told about.

    The message is for the caller; the cause (`raise … from`) is for the log.
    """

    kind: ClassVar[str]
    """The stable name, in audit rows and in the dialect STATUS."""
    status: int
    """The HTTP status."""
    code: ClassVar[str]
    """The code in the dialect ENVELOPE."""
    rpc: int
    """The JSON-RPC code."""
    retryable: ClassVar[bool] = False
    next_step: str = "Try again later."
    """What the caller can do, in the dialect JSON_RPC."""
    rule: str | None = None
    """Where the call is refused and has not merely failed: by which rule. For the audit alone."""

    def __init__(self, message: str, **extra: Any) -> None:
        super().__init__(message)
        self.message = message
        self.extra: Mapping[str, Any] = extra
        """Further keys that the pack's seed shows beside the message."""


class BadResult(TypeError):
    """A handler's result is not what its tool declares; the words hold nothing of the result."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One broken rule of the input."""

    field: str
    rule: str
    message: str
    value: Any = None
    suggestion: str | None = None
    name: str | None = None
    """What the pack calls it, in the dialect JSON_RPC."""


class InvalidArguments(GateError):
    """The input breaks a rule of its schema."""

    kind = "invalid_arguments"
    status = 400
    code = "BAD_REQUEST"
    rpc = -32300
    rule = "invalid-arguments"
    next_step = "Correct the arguments, and call again."

    def __init__(self, problems: Sequence[Problem] | str) -> None:
        if isinstance(problems, str):
            problems = [Problem("arguments", "value", problems)]
        super().__init__("; ".join(problem.message for problem in problems))
        self.problems = tuple(problems)
        rules = {problem.rule for problem in problems}
        if rules == {"missing"}:
            self.rpc = -32301
        elif rules <= {"type", "format"}:
            self.rpc = -32302


class InvalidParams(InvalidArguments):
    """The params of a JSON-RPC request are no object of named values."""

    def __init__(self) -> None:
        super().__init__(
            [Problem("params", "type", "params must be a JSON object of named values")]
        )
        self.rpc = -32602


class TooLarge(GateError):
    """The body is over the limit."""

    kind = "size_limit_exceeded"
    status = 413
    code = "BAD_REQUEST"
    rpc = -32300
    next_step = "Send less."


class UnsupportedMediaType(GateError):
    """The body is said to be something else than JSON; only `/mcp` asks."""

    kind = "unsupported_media_type"
    status = 415
    code = "BAD_REQUEST"
    rpc = -32600
    next_step = "Send JSON."


class MethodNotAllowed(GateError):
    """The path exists, but not for this HTTP method; `allow` lists those it accepts."""

    kind = "method_not_allowed"
    status = 405
    code = "BAD_REQUEST"
    rpc = -32600
    next_step = "Use another HTTP method."

    def __init__(self, method: str, allow: str) -> None:
        super().__init__(f"{printable(method)} is not possible here. Use {allow}.")
        self.allow = allow


class UnknownTool(GateError):
    """The tool does not exist, or is hidden from this caller."""

    kind = "not_found"
    status = 404
    code = "NOT_FOUND"
    rpc = -32601
    next_step = "`GET /v1/tools` lists the tools there are."

    def __init__(self, name: str, near: str | None = None) -> None:
        hint = f". Did you mean {near!r}?" if near else ""
        super().__init__(f"Unknown tool: {printable(name)}{hint}")


class Unauthenticated(GateError):
    """Credentials are missing or invalid."""

    kind = "unauthenticated"
    status = 401
    code = "UNAUTHORIZED"
    rpc = -32100
    next_step = "Send `Authorization: Bearer KEY` with a key that is in force."


class TokenExpired(Unauthenticated):
    """The credentials have expired."""

    kind = "token_expired"
    rpc = -32102
    next_step = "Get a new key or token."


class Forbidden(GateError):
    """The caller may see the tool, but not call it; a tool that refuses names its rule."""

    kind = "access_denied"
    status = 403
    code = "FORBIDDEN"
    rpc = -32101
    rule = "tool-refused"
    next_step = "Ask an operator of this server to allow it."

    def __init__(self, message: str, *, rule: str | None = None, **extra: Any) -> None:
        super().__init__(message, **extra)
        self.rule = rule or self.rule


class ToolDisabled(Forbidden):
    """An operator has switched the tool off while servers run; told to who sees it otherwise."""

    kind = "tool_disabled"

    def __init__(self, name: str, *, rule: str | None = None) -> None:
        super().__init__(f"{printable(name)} is switched off by an operator.", rule=rule)


class PolicyViolation(Forbidden):
    """The caller may call the tool, but a policy refuses what it is asked to store or do."""

    kind = "policy_violation"
    status = 400
    code = "BAD_REQUEST"
    rule = "content-policy"
    next_step = "Change what you send."


class NotFound(GateError):
    """What the arguments name does not exist for this caller."""

    kind = "not_found"
    status = 404
    code = "NOT_FOUND"
    rpc = -32200
    next_step = "Check the names and ids in the arguments."


class Gone(NotFound):
    """It existed, and was deleted permanently."""

    kind = "gone"
    status = 410
    rpc = -32202
    next_step = "Use another one: it does not come back."


class Conflict(GateError):
    """It already exists, or was changed concurrently."""

    kind = "conflict"
    status = 409
    code = "CONFLICT"
    rpc = -32201
    next_step = "Read what is there now, and decide again."


class ResultTooLarge(GateError):
    """The result is over the limit."""

    kind = "size_limit_exceeded"
    status = 413
    code = "BAD_REQUEST"
    rpc = -32300
    next_step = "Ask for less."


class RateLimited(GateError):
    """Too many calls; `retry_after` says how many seconds to wait."""

    kind = "rate_limited"
    status = 429
    code = "RATE_LIMITED"
    rpc = -32400
    retryable = True

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.next_step = f"Wait {retry_after} seconds, and call again."


class QuotaExceeded(GateError):
    """An allowance is used up; the message says which. Waiting does not help."""

    kind = "quota_exceeded"
    status = 409
    code = "CONFLICT"
    rpc = -32401
    next_step = "Give some of the allowance back, or ask an operator for more."


class TimedOut(GateError):
    """The call took too long and was stopped."""

    kind = "timeout"
    status = 504
    code = "SERVER_ERROR"
    rpc = -32502
    retryable = True


class OutcomeUnknown(GateError):
    """A write was not confirmed: it may or may not be stored."""

    kind = "outcome_unknown"
    status = 504
    code = "SERVER_ERROR"
    rpc = -32502
    next_step = "Look whether it is stored before you try again."

    def __init__(self, tool: str, audit_id: str) -> None:
        super().__init__(
            f"The database did not confirm what {tool} wrote: it may or may not be stored. Check "
            f"before retrying. Audit id: {audit_id}"
        )


class StoppedWrite(TimedOut):
    """A write outside the database took too long and was stopped: it may have been done."""

    retryable = False
    next_step = "Look whether it was done before you try again."

    def __init__(self, tool: str, audit_id: str) -> None:
        super().__init__(
            f"{tool} took too long and was stopped: what it does may have been done. Check before "
            f"retrying. Audit id: {audit_id}"
        )


class Unavailable(GateError):
    """Something this call needs does not answer."""

    kind = "unavailable"
    status = 503
    code = "SERVER_ERROR"
    rpc = -32500
    retryable = True


class ForgeUnavailable(Unavailable):
    """The forge (GitHub) fails or does not answer."""

    kind = "forge_unavailable"
    rpc = -32501


class WritesOff(Unavailable):
    """A page would write, and an operator has switched that off; the person can come back."""

    retry_after = 3600

    def __init__(self, path: str, rule: str) -> None:
        super().__init__(
            f"Nothing is changed at {path} now: changes are switched off by an operator. "
            "Try again later."
        )
        self.rule = rule


class RouteFailed(GateError):
    """The route behind a user's own tool refuses or fails; the status is of the same class."""

    kind = "route_failed"
    status = 502
    code = "SERVER_ERROR"
    rpc = -32500

    def __init__(self, message: str, status: int = 502) -> None:
        super().__init__(message)
        self.status = status


class Internal(GateError):
    """A defect in toolgate; the log says where, under the request id."""

    kind = "internal_error"
    status = 500
    code = "SERVER_ERROR"
    rpc = -32603
    next_step = "Tell an operator the request id."

    def __init__(self, request_id: str) -> None:
        super().__init__(f"Something went wrong on our side. Request id: {request_id}")

"""From a handler's answer, or an error, to what goes over the wire."""

import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from toolgate.gate.attachments import Attachment, Pieces
from toolgate.gate.catalogue import AnyTool
from toolgate.gate.dialects import NEUTRAL, Dialect
from toolgate.gate.diffs import Diff
from toolgate.gate.errors import BadResult, GateError, ResultTooLarge
from toolgate.gate.tool import Effect, Output
from toolgate.gate.unsent import Lease

TOO_MANY_BITS = "Integer exceeds 64-bit range"
"""How orjson says it."""


@dataclass(frozen=True, slots=True)
class Attached:
    """What an answer hands over beside its body."""

    attachment: Attachment
    data: bytes
    """Nothing where a link is enough, or there are pieces."""
    uri: str | None
    """The link."""
    field: str
    fields: Mapping[str, Any]
    """All others of the answer."""
    dialect: Dialect
    lease: Lease | None = None
    """The room that the bytes take; who sends them gives it back when that is done."""
    pieces: Pieces | None = None
    """What the bytes are read from while they are sent."""

    @property
    def text(self) -> str | None:
        """What stands beside a link; None where there is none, or the bytes are no text."""
        if self.uri is None or not self.data or b"\0" in self.data:
            return None
        try:
            return self.data.decode()
        except UnicodeDecodeError:
            return None

    def body_with(self, value: Any) -> Any:
        """The body, with this in the attachment's field."""
        return self.dialect.success({**self.fields, self.field: value})

    def inline(self) -> Any:
        """The body with the bytes as base64 in their field, for `orjson`."""
        encoded = b'"%b"' % binascii.b2a_base64(self.data, newline=False)
        return self.body_with(orjson.Fragment(encoded))


@dataclass(slots=True, kw_only=True)
class Outcome:
    """The end of a call: a body in the pack's dialect, and its bytes."""

    body: Any
    raw: bytes
    error: GateError | None = None
    sentence: str | None = None
    """What MCP's text content says, where it is not the body."""
    attached: Attached | None = None
    diff: Diff | None = None
    """Of a dry run: what would change."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.error.status if self.error else 200

    @property
    def error_type(self) -> str | None:
        """The error's stable name, for the audit."""
        return self.error.kind if self.error else None

    @property
    def text(self) -> str:
        """The text content over MCP."""
        return self.sentence if self.sentence is not None else self.raw.decode()


def outcome_of_result(result: Output, tool: AnyTool, most_bytes: int) -> Outcome:
    """A good answer in the tool's dialect, unless it is too long."""
    try:
        fields = result.body()
    except AttributeError:
        check_result(result, tool)
        raise
    body = tool.pack.dialect.success(fields)
    try:
        raw = orjson.dumps(body)
    except TypeError as error:
        raise encoding_error(error) from None
    if len(raw) > most_bytes:
        raise result_too_large(raw, most_bytes)
    return Outcome(body=body, raw=raw)


def check_result(result: object, tool: AnyTool) -> None:
    """Raise `BadResult` where a handler returned something else than an Output, or like one."""
    if not hasattr(result, "body"):
        found, declared = type(result).__name__, tool.output.__name__
        raise BadResult(f"{tool.name} returned {found}; it declares {declared}") from None


def encoding_error(error: TypeError) -> Exception:
    """What is said of an answer that is no JSON; but for integers, a defect of the tool."""
    if str(error) != TOO_MANY_BITS:
        return error
    return ResultTooLarge(
        "The answer has an integer of more than 64 bits, which many clients cannot read. The tool "
        "must give it as a string."
    )


def result_too_large(raw: bytes, most_bytes: int) -> ResultTooLarge:
    """What is said of an answer over the limit."""
    return ResultTooLarge(
        f"The answer has {len(raw)} bytes, over the limit of {most_bytes}. "
        "Ask for fewer items or use a filter."
    )


def outcome_of_error(error: GateError, tool: AnyTool | None) -> Outcome:
    """A failure in the tool's dialect; in plain words where no tool is known."""
    dialect = tool.pack.dialect if tool else NEUTRAL
    body = dialect.failure(error, tool is not None and tool.effect is not Effect.READ)
    return Outcome(
        body=body,
        raw=orjson.dumps(body),
        error=error,
        sentence=error.message if dialect.sentence_over_mcp else None,
    )

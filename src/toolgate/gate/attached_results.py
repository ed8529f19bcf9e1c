"""A call of a tool that hands over an attachment: read in the call's own time, if it is wanted."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import orjson

from toolgate.gate.attachments import (
    MAX_EMBEDDED,
    MAX_PIECE,
    Attachment,
    Delivery,
    check_bytes,
    uri_of,
)
from toolgate.gate.calls import Call, context_of
from toolgate.gate.catalogue import AnyTool
from toolgate.gate.errors import Conflict, ResultTooLarge
from toolgate.gate.limits import Allowance
from toolgate.gate.outcomes import (
    Attached,
    Outcome,
    check_result,
    encoding_error,
    outcome_of_result,
    result_too_large,
)
from toolgate.gate.tool import Output
from toolgate.gate.unsent import Lease

NOT_IN_A_BATCH = "An attachment is not answered in a batch. Send its request alone."
"""A hundred of them would be in memory at the same time."""


async def outcome_with_attachment(
    call: Call, tool: AnyTool, args: Any, allowed: Allowance
) -> Outcome:
    """Run the handler, and fetch the bytes unless a link is enough."""
    assert tool.attachment_field is not None
    if call.attachments is Delivery.REFUSED:
        raise ResultTooLarge(NOT_IN_A_BATCH)
    uri = uri_of(tool.name, call.arguments) if call.attachments is Delivery.LINK else None
    result: Output = await tool.handler(context_of(call, tool), args)
    check_result(result, tool)
    attachment = tool.attachment_of(result)
    if attachment is None:
        return outcome_of_result(result, tool, allowed.result_bytes)
    fields, dialect = result.body_without(tool.attachment_field), tool.pack.dialect
    body = dialect.success(fields)
    try:
        raw = orjson.dumps(body)
    except TypeError as error:
        raise encoding_error(error) from None
    if len(raw) > allowed.result_bytes:
        raise result_too_large(raw, allowed.result_bytes)
    _check_size(attachment, allowed.attachment_bytes)
    lease, data, pieces = None, b"", None
    if call.attachments is Delivery.PIECES and attachment.pieces is not None:
        lease = allowed.unsent.take(call.principal.id, min(attachment.size, MAX_PIECE))
        with _released_if_it_fails(lease):
            pieces = await attachment.pieces()
    elif uri is None:
        lease = allowed.unsent.take(call.principal.id, attachment.size)
        with _released_if_it_fails(lease):
            data = await _read(attachment)
    elif attachment.size <= MAX_EMBEDDED:
        data = await _read(attachment)
    field = tool.attachment_field
    attached = Attached(attachment, data, uri, field, fields, dialect, lease, pieces)
    return Outcome(body=body, raw=raw, attached=attached)


@contextmanager
def _released_if_it_fails(lease: Lease) -> Generator[None]:
    try:
        yield
    except BaseException:
        lease.release()
        raise


def _check_size(attachment: Attachment, most: int) -> None:
    if attachment.size > most:
        raise ResultTooLarge(
            f"The attachment has {attachment.size} bytes, over the limit of {most} (the tool's "
            "own, or the setting limits.attachment_bytes)."
        )


async def _read(attachment: Attachment) -> bytes:
    data = await attachment.read()
    check_bytes(data)
    if len(data) != attachment.size:
        raise Conflict("The attachment was changed while it was read. Ask again.")
    return data

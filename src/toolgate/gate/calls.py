"""A call: what a transport hands to the gate, what its handler is given, what the audit is told."""

import time
from dataclasses import dataclass
from typing import Any

from toolgate.db.transactions import Transaction
from toolgate.gate.attachments import Delivery
from toolgate.gate.audit_records import Ended
from toolgate.gate.audited_names import audited_name
from toolgate.gate.catalogue import AnyTool
from toolgate.gate.context import Context, Report
from toolgate.gate.errors import printable
from toolgate.gate.from_request import RequestHeaders
from toolgate.gate.policy import NO_RULE, Decision
from toolgate.gate.principal import Principal

NO_TOOL = Decision(visible=False, allowed=False, rule=NO_RULE)
"""On a call of what is not in the catalogue."""


@dataclass(slots=True, kw_only=True)
class Call:
    """What a transport hands over, free of its protocol.

    Not frozen, like all that is made for every call: it would take three times as long.
    """

    tool: str
    arguments: Any = None
    """Or why the transport could not read them; told only to who may see the tool."""
    principal: Principal
    request_id: str
    transport: str
    dry_run: bool = False
    report: Report | None = None
    """Hears of the call's progress."""
    attachments: Delivery = Delivery.INLINE
    request: RequestHeaders | None = None
    """The HTTP request to a tool's own route, which may fill in an argument."""
    ids: dict[str, str] | None = None
    """What the audit is told beside what it knows of the caller, by column: the scope ids that the
    arguments name, and what a pack's access check has found."""
    refused_by: str | None = None
    """The rule of the error that it was refused with."""


def context_of(call: Call, tool: AnyTool, tx: Transaction | None = None) -> Context[Any]:
    """What the tool's handler is given."""
    return Context(
        request_id=call.request_id,
        principal=call.principal,
        world=tool.world,
        transaction=tx,
        report=call.report,
        dry_run=call.dry_run,
    )


def ended_now(
    call: Call, tool: AnyTool | None, decision: Decision, started: float, error_type: str | None
) -> Ended:
    """What the audit is told of a call."""
    fields = (
        call.request_id,
        call.transport,
        call.principal,
        tool.name if tool else _name_without_tool(call, decision),
        decision.allowed and call.refused_by is None,
        call.refused_by or decision.rule,
        error_type,
        call.ids,
        time.time_ns(),
        time.perf_counter() - started,
    )
    # Not `Ended(…)`, which is one more function for every call.
    return tuple.__new__(Ended, fields)  # pyright: ignore[reportUnknownMemberType]


def _name_without_tool(call: Call, decision: Decision) -> str:
    """A call's is the caller's text; other requests are named after their path or method."""
    return audited_name(call.tool) if decision is NO_TOOL else printable(call.tool)

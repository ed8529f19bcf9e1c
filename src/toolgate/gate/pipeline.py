"""The path of every call. Read this file first.

transport -> identity
  -> catalogue -> policy -> limits -> parse -> scope -> access -> handler -> audit
  -> dialect -> transport
"""

import time
from dataclasses import dataclass, field
from typing import Any, cast

from toolgate.db.engine import Database
from toolgate.db.outages import is_nul_refused, is_outage
from toolgate.gate.access_checks import AccessRequest
from toolgate.gate.arguments import nearest, parse
from toolgate.gate.attached_results import outcome_with_attachment
from toolgate.gate.audit import AuditLog, AuditUnavailable
from toolgate.gate.calls import NO_TOOL, Call, context_of, ended_now
from toolgate.gate.catalogue import AnyTool, Catalogue
from toolgate.gate.concurrency import run_bounded
from toolgate.gate.deadlines import ServerStopping
from toolgate.gate.errors import (
    Forbidden,
    GateError,
    Internal,
    InvalidArguments,
    Problem,
    RateLimited,
    TimedOut,
    ToolDisabled,
    Unavailable,
    UnknownTool,
    printable,
)
from toolgate.gate.failures import FailureLog
from toolgate.gate.fetch_errors import error_of_fetch
from toolgate.gate.limits import Limits
from toolgate.gate.live_switches import LiveSwitches
from toolgate.gate.metrics import Metrics
from toolgate.gate.outcomes import Outcome, outcome_of_error, outcome_of_result
from toolgate.gate.policy import Decision, Policy
from toolgate.gate.principal import Kind, Principal
from toolgate.gate.request_log import log_request
from toolgate.gate.tool import Effect
from toolgate.gate.writes import Write
from toolgate.outbound.responses import FetchFailed
from toolgate.ports.documents import DocumentRefused, StoreUnavailable

CANCELLED = "cancelled"
DRY_RUN = "dry_run"
MAX_COMPARED = 500
"""Tools among which what a caller may have meant is looked for; with more it takes too long."""
MISSPELLED = 0.75
"""How much alike a name must be: `get_user` is not what `get_document` was meant to be."""
UNRULED = Decision(visible=True, allowed=True, rule="no-rule-needed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Runs every call through the same stages, in order, and always audits it."""

    catalogue: Catalogue
    policy: Policy
    limits: Limits
    audit: AuditLog
    database: Database
    metrics: Metrics
    switches: LiveSwitches
    failures: FailureLog = field(default_factory=FailureLog)
    log_requests: bool = False

    def is_off(self, principal: Principal, name: str) -> bool:
        """Whether a tool is hidden from this caller only because an operator switched it off."""
        tool = self.catalogue.find(name)
        return tool is not None and self.policy.decide(principal, tool).off

    async def execute(self, call: Call) -> Outcome:  # noqa: C901, PLR0912 (one branch for each stage)
        """Answer the call. Failures are answers too; only cancellation is raised."""
        started = time.perf_counter()
        tool = self.catalogue.find(call.tool)
        decision = self.policy.decide(call.principal, tool) if tool else NO_TOOL
        write: Write | None = None
        error_type: str | None = CANCELLED
        try:
            if self.audit.blocked:
                await self.audit.make_room()
            if tool is None or not decision.allowed:
                self.limits.count_refusal(call.principal)
                raise self._refusal(call.principal, call.tool, decision)
            if waiting := self.limits.admit(call.principal, tool.name):
                await waiting
            if call.request is None and tool.scope is None and tool.access is None:
                args = parse(tool, call.arguments)  # all there is to prepare: no coroutine for it
            else:
                args = await prepare(call, tool)
            if tool.writes_if is not None and tool.writes_if(args):
                tool, decision = self._decide_as_write(call, tool)
            allowed, caller = self.limits.allowances[tool.limits], call.principal.id
            turns, deadlines = allowed.turns, allowed.deadlines
            if tool.effect is Effect.READ:
                if tool.attachment_field is None:
                    work = tool.handler(context_of(call, tool), args)
                    result = await run_bounded(turns, deadlines, caller, work, tool.name)
                    outcome = outcome_of_result(result, tool, allowed.result_bytes)
                else:
                    work = outcome_with_attachment(call, tool, args, allowed)
                    outcome = await run_bounded(turns, deadlines, caller, work, tool.name)
                if self.audit.blocked:
                    await self.audit.make_room()
            else:
                await self.switches.check()
                write = Write(call, tool, decision, started, self.database, self.audit)
                work = write.perform(args, allowed)
                outcome = await run_bounded(turns, deadlines, caller, work)
            error_type = DRY_RUN if write and call.dry_run else None
            return outcome
        except Exception as error:
            outcome = await self._outcome_after(
                call, tool if decision.visible or decision.off else None, write, error
            )
            error_type = outcome.error_type
            return outcome
        finally:
            has_row = write is not None and await write.end_row(error_type)
            self._note(call, tool, decision, started, error_type, has_row=has_row)

    def _decide_as_write(self, call: Call, tool: AnyTool) -> tuple[AnyTool, Decision]:
        """The tool as one that writes, and the decision on that; raises `Forbidden`."""
        writing = tool.as_write
        decision = self.policy.decide(call.principal, writing)
        if not decision.allowed:
            self.limits.count_refusal(call.principal)
            message = decision.message or f"Not allowed by rule {decision.rule!r}."
            raise Forbidden(message, rule=decision.rule)
        return writing, decision

    def visible(self, principal: Principal) -> list[AnyTool]:
        """The tools that exist for this caller."""
        return self.policy.visible(principal, self.catalogue)

    def refuse(self, call: Call, error: GateError, rule: str) -> GateError:
        """What to answer a request that never became a call (no credentials, unreadable); audited.

        It is the error, or `RateLimited` past the limit on refusals.
        """
        decision = Decision(visible=False, allowed=False, rule=rule)
        try:
            self.limits.count_refusal(call.principal)
        except RateLimited as limited:
            error = limited
        self._note(call, None, decision, time.perf_counter(), error.kind)
        return error

    def refusal_of(self, principal: Principal, name: str) -> GateError | None:
        """Why this caller may not call this tool now; None where it may."""
        tool = self.catalogue.find(name)
        decision = self.policy.decide(principal, tool) if tool else NO_TOOL
        return None if decision.allowed else self._refusal(principal, name, decision)

    def _refusal(self, principal: Principal, name: str, decision: Decision) -> GateError:
        """Why this caller may not call this tool; a hidden tool is as good as none."""
        if decision.off:
            return ToolDisabled(name, rule=decision.rule)
        if not decision.visible:
            near = nearest(name, self._visible_names(principal), MISSPELLED)
            return UnknownTool(name, near)
        message = decision.message or f"Not allowed by rule {decision.rule!r}."
        return Forbidden(message, rule=decision.rule)

    def _visible_names(self, principal: Principal) -> list[str]:
        """The tools to look among for what a caller may have meant: none that it cannot see.

        One that is switched off is no secret: its own answer says so.
        """
        if principal.kind is Kind.ANONYMOUS or len(self.catalogue) > MAX_COMPARED:
            return []
        decided = [(tool.name, self.policy.decide(principal, tool)) for tool in self.catalogue]
        return [name for name, decision in decided if decision.visible or decision.off]

    def note_uncounted(self, call: Call, error: GateError) -> None:
        """Audit a list that was one too many, or could not be counted, like a call that was."""
        self._note(call, None, UNRULED, time.perf_counter(), error.kind)

    async def _outcome_after(
        self, call: Call, tool: AnyTool | None, write: Write | None, error: Exception
    ) -> Outcome:
        """What is answered after an error, which is not always a failure; the call has its rule."""
        if write is not None:
            if done := await write.outcome_if_committed(error):
                return done
            error = write.error_if_unknown(error)
        told = error_for_caller(error, call, self.failures)
        call.refused_by = told.rule
        return outcome_of_error(told, tool)

    def _note(
        self,
        call: Call,
        tool: AnyTool | None,
        decision: Decision,
        started: float,
        error_type: str | None,
        *,
        has_row: bool = False,
    ) -> None:
        """Audit a call, unless it has its row, and count it."""
        ended = ended_now(call, tool, decision, started, error_type)
        if not has_row:
            has_row = True
            if error_type == RateLimited.kind:
                has_row = self.audit.queue_limited(ended)
            elif call.principal.kind is Kind.ANONYMOUS:
                has_row = self.audit.queue_anonymous(ended)
            else:
                self.audit.queue(ended)
        if self.log_requests and has_row:
            log_request(ended)
        name = tool.name if tool else None
        self.metrics.count(name, call.transport, error_type or "success", ended.seconds)


async def prepare(call: Call, tool: AnyTool) -> Any:
    """The arguments as the handler gets them: filled in, parsed, in scope, within access rules.

    An error of a refusal has the rule that refuses; of an access rule only the audit is told.
    """
    arguments = call.arguments if call.request is None else await _filled_in(call, tool)
    args = parse(tool, arguments)
    if tool.scope is not None:
        call.ids = tool.scope.audit_ids(args)
        args = tool.scope.narrow(args, call.principal)
    if tool.access is not None:
        call.ids = call.ids or {}
        request = AccessRequest(call.principal, tool.name, args, call.ids)
        if rule := await tool.access(tool.world, request):
            raise Forbidden("Access rules do not allow this call.", rule=rule)
    return args


async def _filled_in(call: Call, tool: AnyTool) -> Any:
    """The arguments with the one that the request's headers name, where they could be read."""
    source = tool.from_request
    if call.request is None or source is None or not isinstance(call.arguments, dict):
        return call.arguments
    value = await source.value(tool.world, call.request)
    return {**cast("dict[str, Any]", call.arguments), source.argument: value}


def error_for_caller(error: Exception, call: Call, failures: FailureLog) -> GateError:
    """The error as the caller may know it; what is not its business goes to the log."""
    match error:
        case GateError():
            if error.__cause__ is not None:
                failures.note(call.request_id, printable(call.tool), error)
            return error
        case TimeoutError():
            return _timeout_error(error, call)
        case StoreUnavailable() | FetchFailed():
            failures.note(call.request_id, printable(call.tool), error)
            is_fetch = isinstance(error, FetchFailed)
            return error_of_fetch(error) if is_fetch else Unavailable(str(error))
        case _ if isinstance(error, DocumentRefused) or is_nul_refused(error) or is_outage(error):
            return _database_error(error)
        case AuditUnavailable():
            return Unavailable("The audit log cannot be written, so nothing is answered now.")
        case _:
            failures.defect(call.request_id, printable(call.tool), error)
            return Internal(call.request_id)


def _database_error(error: Exception) -> GateError:
    if isinstance(error, DocumentRefused):
        return InvalidArguments([Problem("arguments", "size", str(error))])
    if is_nul_refused(error):
        message = "a text holds the character U+0000, which the database does not store"
        return InvalidArguments([Problem("arguments", "format", message)])
    return Unavailable("The database does not answer. Try again later.")


def _timeout_error(error: TimeoutError, call: Call) -> GateError:
    if isinstance(error, ServerStopping):
        return Unavailable("The server is stopping and could not finish this. Try again.")
    return TimedOut(
        f"{printable(call.tool)} took too long and was stopped. Request less, or retry."
    )

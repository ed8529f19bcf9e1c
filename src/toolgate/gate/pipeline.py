"""The path of every call. Read this file first.

transport -> identity -> catalogue -> policy -> limits -> parse -> handler -> audit -> dialect
"""

import contextlib
import time
from dataclasses import dataclass, field
from typing import Any, cast

from sqlalchemy.exc import SQLAlchemyError

from toolgate.db.engine import Database
from toolgate.db.outages import is_outage
from toolgate.db.transactions import Transaction
from toolgate.gate.answers import Outcome, answer_with, fail_with
from toolgate.gate.audit import AuditLog, AuditUnavailable
from toolgate.gate.catalogue import AnyTool, Catalogue
from toolgate.gate.context import Context, Exchange
from toolgate.gate.deadlines import Stopping
from toolgate.gate.errors import (
    Forbidden,
    GateError,
    Internal,
    OutcomeUnknown,
    RateLimited,
    TimedOut,
    Unavailable,
    UnknownTool,
    printable,
)
from toolgate.gate.failures import FailureLog
from toolgate.gate.from_request import Request
from toolgate.gate.limits import Limits
from toolgate.gate.metrics import Metrics
from toolgate.gate.parsing import nearest, parse
from toolgate.gate.policy import NO_RULE, Decision, Policy
from toolgate.gate.principal import Kind, Principal
from toolgate.gate.records import STARTED, Ended, Record, record_of
from toolgate.gate.requests import log_request
from toolgate.gate.tool import Effect, Target
from toolgate.gate.waiting import bounded
from toolgate.ports.documents import StoreUnavailable

CANCELLED = "cancelled"
MOST_COMPARED = 500
"""Tools among which what a caller may have meant is looked for; with more it takes too long."""
MISSPELLED = 0.75
"""How much alike a name must be: `get_user` is not what `get_document` was meant to be."""
UNDECIDED = Decision(visible=False, allowed=False, rule=NO_RULE)
UNRULED = Decision(visible=True, allowed=True, rule="no-rule-needed")


@dataclass(slots=True, kw_only=True)
class Call:
    """What a transport hands over, free of its protocol.

    Not frozen, like all that is made for every call: it would take three times as long.
    """

    tool: str
    arguments: Any
    """Or why the transport could not read them; told only to who may see the tool."""
    principal: Principal
    request_id: str
    transport: str
    dry_run: bool = False
    exchange: Exchange | None = None
    request: Request | None = None
    """The HTTP request to a tool's own route, which may fill in an argument."""


@dataclass(slots=True)
class Write:
    """A call that writes, and how far it has come."""

    call: Call
    tool: AnyTool
    decision: Decision
    started: float
    begun: Record | None = None
    """The row of a write outside the database, once it is stored."""
    tx: Transaction | None = None
    """The transaction of a write, with its row in it."""
    row: Record | None = None
    """That row."""
    outcome: Outcome | None = None
    """What is answered if it is stored."""

    def record(self, error_type: str | None) -> Record:
        """The audit row."""
        ended = ended_now(self.call, self.tool, self.decision, self.started, error_type)
        return record_of(ended)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Runs every call through the same stages, in order, and always audits it."""

    catalogue: Catalogue
    policy: Policy
    limits: Limits
    audit: AuditLog
    database: Database
    metrics: Metrics
    failures: FailureLog = field(default_factory=FailureLog)
    log_requests: bool = False

    async def execute(self, call: Call) -> Outcome:
        """Answer the call. Failures are answers too; only cancellation is raised."""
        started = time.perf_counter()
        tool = self.catalogue.find(call.tool)
        decision = self.policy.decide(call.principal, tool) if tool else UNDECIDED
        write: Write | None = None
        error_type: str | None = CANCELLED
        try:
            if self.audit.blocked:
                await self.audit.make_room()
            if tool is None or not decision.allowed:
                self.limits.refused(call.principal)
                raise self._refusal(call, decision)
            if waiting := self.limits.admitting(call.principal, tool.name):
                await waiting
            given = call.arguments if call.request is None else await filled_in(call, tool)
            args = parse(tool, given)
            if tool.effect is Effect.READ:
                work = tool.handler(self._context(call, tool), args)
                answer = await bounded(self.limits.turns, self.limits.deadlines, work)
                outcome = answer_with(answer, tool, self.limits.bounds.result_bytes)
                if self.audit.blocked:
                    await self.audit.make_room()
            else:
                write = Write(call, tool, decision, started)
                work = self._write(write, args)
                outcome = await bounded(self.limits.turns, self.limits.deadlines, work)
            error_type = None
            return outcome
        except Exception as error:
            outcome = await self._failed(call, tool if decision.visible else None, write, error)
            error_type = outcome.error_type
            return outcome
        finally:
            if write is None:
                self._note(call, tool, decision, started, error_type)
            else:
                await self._note_write(write, error_type)

    def refuse(self, call: Call, error: GateError, rule: str) -> Outcome:
        """Answer a request that never became a call (no credentials, unreadable); audited too.

        Past the limit on refusals the answer is `RateLimited`.
        """
        decision = Decision(visible=False, allowed=False, rule=rule)
        try:
            self.limits.refused(call.principal)
        except RateLimited as limited:
            error = limited
        self._note(call, None, decision, time.perf_counter(), error.kind)
        return fail_with(error, None)

    def _refusal(self, call: Call, decision: Decision) -> GateError:
        """Why this caller may not call this tool; a hidden tool is as good as none."""
        if not decision.visible:
            near = nearest(call.tool, self._known(call.principal), MISSPELLED)
            return UnknownTool(call.tool, near)
        return Forbidden(decision.says or f"Not allowed by rule {decision.rule!r}.")

    def _known(self, principal: Principal) -> list[str]:
        """The tools to look among for what a caller may have meant: none that it cannot see."""
        if principal.kind is Kind.ANONYMOUS or len(self.catalogue) > MOST_COMPARED:
            return []
        return [tool.name for tool in self.policy.visible(principal, self.catalogue)]

    def note_uncounted(self, call: Call, error: GateError) -> None:
        """Audit a list that was one too many, or could not be counted, like a call that was."""
        self._note(call, None, UNRULED, time.perf_counter(), error.kind)

    def _context(self, call: Call, tool: AnyTool, tx: Transaction | None = None) -> Context[Any]:
        return Context(
            request_id=call.request_id,
            principal=call.principal,
            world=tool.world,
            transaction=tx,
            exchange=call.exchange,
        )

    async def _run(self, write: Write, args: Any, tx: Transaction | None = None) -> Outcome:
        answer = await write.tool.handler(self._context(write.call, write.tool, tx), args)
        return answer_with(answer, write.tool, self.limits.bounds.result_bytes)

    async def _write(self, write: Write, args: Any) -> Outcome:
        """The write and its audit row commit together, or neither does."""
        if not write.tool.atomic:
            return await self._write_outside(write, args)
        async with self.database.transaction() as tx:
            write.outcome = await self._run(write, args, tx)
            write.tx = tx
            if write.call.dry_run:
                tx.abandon()
            else:
                write.row = write.record(None)
                await self.audit.within(tx, write.row)
        return write.outcome

    async def _write_outside(self, write: Write, args: Any) -> Outcome:
        """A write that cannot join: its audit row is there first, then completed."""
        if write.call.dry_run:
            outside = Target.OUTSIDE in write.tool.writes
            what = f"what {write.tool.name} does is" if outside else "documents are"
            raise Forbidden(f"A dry run is possible only where {what} in the database.")
        begun = write.record(STARTED)
        await self.audit.now(begun)
        write.begun = begun
        if Target.OUTSIDE in write.tool.writes:
            return await self._run(write, args)
        async with self.database.transaction() as tx:
            return await self._run(write, args, tx)

    async def _failed(
        self, call: Call, tool: AnyTool | None, write: Write | None, error: Exception
    ) -> Outcome:
        """What is answered after an error; not always a failure."""
        if write and (done := await self._stored_after_all(write, error)):
            return done
        if write and write.row and write.tx and write.tx.uncertain:
            return fail_with(OutcomeUnknown(write.tool.name, write.row.id), tool)
        return fail_with(told(error, call, self.failures), tool)

    async def _stored_after_all(self, write: Write, error: Exception) -> Outcome | None:
        """The answer of a write that was stored, whatever came after: its deadline, a lost line."""
        if not write.tx or not write.row:
            return None
        if write.tx.uncertain and not isinstance(error, TimeoutError):
            with contextlib.suppress(SQLAlchemyError):
                if await self.audit.has(write.row):
                    write.tx.confirm()
        return write.outcome if write.tx.committed else None

    async def _note_write(self, write: Write, error_type: str | None) -> None:
        """Audit and count a write, as far as its row is not there already."""
        if write.tx is not None and error_type is None and write.call.dry_run:
            error_type = "dry_run"
        if write.begun is not None:
            await self.audit.complete(write.begun, write.record(error_type))
        elif write.tx is not None and write.tx.uncertain and write.row is not None:
            self.audit.unless_stored(write.row, error_type)
        elif write.tx is None or not write.tx.committed:
            return self._note(write.call, write.tool, write.decision, write.started, error_type)
        ended = ended_now(write.call, write.tool, write.decision, write.started, error_type)
        if self.log_requests:
            log_request(ended)
        self.metrics.count(
            write.tool.name, write.call.transport, error_type or "success", ended[-1]
        )
        return None

    def _note(
        self,
        call: Call,
        tool: AnyTool | None,
        decision: Decision,
        started: float,
        error_type: str | None,
    ) -> None:
        """Audit and count a call that wrote nothing."""
        ended = ended_now(call, tool, decision, started, error_type)
        has_row = True
        if error_type == RateLimited.kind:
            has_row = self.audit.limited(ended)
        elif call.principal.kind is Kind.ANONYMOUS:
            has_row = self.audit.of_stranger(ended)
        else:
            self.audit.soon(ended)
        if self.log_requests and has_row:
            log_request(ended)
        name = tool.name if tool else None
        self.metrics.count(name, call.transport, error_type or "success", ended[-1])


def ended_now(
    call: Call, tool: AnyTool | None, decision: Decision, started: float, error_type: str | None
) -> Ended:
    """What the audit is told of a call."""
    return (
        call.request_id,
        call.transport,
        call.principal,
        tool.name if tool else printable(call.tool),
        decision.allowed,
        decision.rule,
        error_type,
        time.time_ns(),
        time.perf_counter() - started,
    )


async def filled_in(call: Call, tool: AnyTool) -> Any:
    """The arguments with the one that the request's headers name, where they could be read."""
    filled = tool.from_request
    if call.request is None or filled is None or not isinstance(call.arguments, dict):
        return call.arguments
    value = await filled.value(tool.world, call.request)
    return {**cast("dict[str, Any]", call.arguments), filled.argument: value}


def told(error: Exception, call: Call, failures: FailureLog) -> GateError:
    """The error as the caller may know it; what is not its business goes to the log."""
    match error:
        case GateError():
            if error.__cause__ is not None:
                failures.note(call.request_id, printable(call.tool), error)
            return error
        case TimeoutError():
            return _overdue(error, call)
        case StoreUnavailable():
            failures.note(call.request_id, printable(call.tool), error)
            return Unavailable(str(error))
        case _ if is_outage(error):
            return Unavailable("The database does not answer. Try again later.")
        case AuditUnavailable():
            return Unavailable("The audit log cannot be written, so nothing is answered now.")
        case _:
            failures.defect(call.request_id, printable(call.tool), error)
            return Internal(call.request_id)


def _overdue(error: TimeoutError, call: Call) -> GateError:
    if isinstance(error, Stopping):
        return Unavailable("The server is stopping and could not finish this. Try again.")
    return TimedOut(
        f"{printable(call.tool)} took too long and was stopped. Ask for less, or again."
    )

"""The path of every call. Read this file first.

transport -> identity -> catalogue -> policy -> limits -> parse -> handler -> audit -> dialect
"""

import logging
import time
from dataclasses import dataclass
from typing import Any

import anyio
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnection

from toolgate.db.engine import Database
from toolgate.db.transactions import Transaction
from toolgate.gate.answers import Outcome, answer_with, fail_with
from toolgate.gate.audit import AuditLog, AuditUnavailable
from toolgate.gate.catalogue import AnyTool, Catalogue
from toolgate.gate.context import Context, Exchange, Ports
from toolgate.gate.deadlines import Deadline
from toolgate.gate.errors import (
    Forbidden,
    GateError,
    Internal,
    TimedOut,
    Unavailable,
    UnknownTool,
    printable,
)
from toolgate.gate.limits import Limits
from toolgate.gate.metrics import Metrics
from toolgate.gate.parsing import parse
from toolgate.gate.policy import NO_RULE, Decision, Policy
from toolgate.gate.principal import Principal
from toolgate.gate.records import STARTED, Record, new_id, timestamp
from toolgate.gate.tool import Effect
from toolgate.ports.documents import StoreUnavailable

logger = logging.getLogger(__name__)

UNDECIDED = Decision(visible=False, allowed=False, rule=NO_RULE)


@dataclass(slots=True, kw_only=True)
class Call:
    """What a transport hands over, free of its protocol.

    Not frozen, like all that is made for every call: it would take three times as long.
    """

    tool: str
    arguments: Any
    principal: Principal
    request_id: str
    transport: str
    problem: GateError | None = None
    """Why the transport could not read the arguments; told only to who may see the tool."""
    dry_run: bool = False
    exchange: Exchange | None = None


@dataclass(slots=True)
class Noted:
    """What the audit says of a call, but for its end."""

    call: Call
    tool: AnyTool | None
    decision: Decision
    started: float
    begun: Record | None = None
    """The row of a write outside the database, once it is stored."""
    tx: Transaction | None = None
    """The transaction of a write, with its row in it."""

    def record(self, error_type: str | None) -> Record:
        """The audit row."""
        call, decision = self.call, self.decision
        return Record(
            new_id(),
            timestamp(),
            call.request_id,
            call.transport,
            *call.principal.audited,
            self.tool.name if self.tool else printable(call.tool),
            "allow" if decision.allowed else "deny",
            decision.rule,
            "success" if error_type is None else "error",
            error_type,
            round((time.perf_counter() - self.started) * 1000),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Runs every call through the same stages, in order, and always audits it."""

    catalogue: Catalogue
    policy: Policy
    limits: Limits
    audit: AuditLog
    database: Database
    ports: Ports
    metrics: Metrics

    async def execute(self, call: Call) -> Outcome:
        """Answer the call. Failures are answers too; only cancellation is raised."""
        started = time.perf_counter()
        tool = self.catalogue.find(call.tool)
        decision = self.policy.decide(call.principal, tool) if tool else UNDECIDED
        noted = Noted(call, tool, decision, started)
        turns = self.limits.turns
        try:
            if self.audit.blocked:
                await self.audit.make_room()
            tool = admit(call, tool, decision)
            await self.limits.admit(call.principal, tool.name)
            if call.problem:
                raise call.problem
            args = parse(tool, call.arguments)
            with Deadline(self.limits.deadlines):
                if turns.free:
                    turns.free -= 1
                else:
                    await turns.wait()
                try:
                    if tool.effect is not Effect.READ:
                        return await self._write(noted, tool, args)
                    outcome = await self._run(call, tool, args)
                finally:
                    turns.leave()
        except anyio.get_cancelled_exc_class():
            await self._note(noted, "cancelled")
            raise
        except Exception as error:
            outcome = fail_with(told(error, call), tool if decision.visible else None)
        await self._note(noted, outcome.error.kind if outcome.error else None)
        return outcome

    def refuse(self, call: Call, error: GateError, rule: str) -> Outcome:
        """Answer a request that never became a call (no credentials, unreadable); audited too."""
        decision = Decision(visible=False, allowed=False, rule=rule)
        noted = Noted(call, None, decision, time.perf_counter())
        self.audit.soon(noted.record(error.kind))
        self._count(noted, error.kind)
        return fail_with(error, None)

    async def _run(
        self, call: Call, tool: AnyTool, args: Any, tx: Transaction | None = None
    ) -> Outcome:
        context = Context(
            request_id=call.request_id,
            principal=call.principal,
            ports=self.ports,
            transaction=tx,
            exchange=call.exchange,
        )
        answer = await tool.handler(context, args)
        return answer_with(answer, tool, self.limits.bounds.result_bytes)

    async def _write(self, noted: Noted, tool: AnyTool, args: Any) -> Outcome:
        """The write and its audit row commit together, or neither does."""
        call = noted.call
        if tool.outside or not self.ports.documents.joins_transaction:
            return await self._write_outside(noted, tool, args)
        async with self.database.transaction() as tx:
            outcome = await self._run(call, tool, args, tx)
            noted.tx = tx
            if call.dry_run:
                tx.abandon()
            else:
                await self.audit.within(tx, noted.record(None))
        if call.dry_run:
            await self._note(noted, "dry_run")
        else:
            self._count(noted, None)
        return outcome

    async def _write_outside(self, noted: Noted, tool: AnyTool, args: Any) -> Outcome:
        """A write that cannot join: its audit row is there first, then completed."""
        call = noted.call
        if call.dry_run:
            what = f"what {tool.name} does is" if tool.outside else "documents are"
            raise Forbidden(f"A dry run is possible only where {what} in the database.")
        begun = noted.record(STARTED)
        await self.audit.now(begun)
        noted.begun = begun
        if tool.outside:
            outcome = await self._run(call, tool, args)
        else:
            async with self.database.transaction() as tx:
                outcome = await self._run(call, tool, args, tx)
        await self._note(noted, None)
        return outcome

    async def _note(self, noted: Noted, error_type: str | None) -> None:
        if noted.tx is not None and noted.tx.committed:
            return  # cancelled after its commit: the row is there
        record = noted.record(error_type)
        if noted.begun is None:
            self.audit.soon(record)
        else:
            await self.audit.complete(noted.begun, record)
        self._count(noted, error_type)

    def _count(self, noted: Noted, error_type: str | None) -> None:
        name = noted.tool.name if noted.tool else None
        seconds = time.perf_counter() - noted.started
        self.metrics.count(name, noted.call.transport, error_type or "success", seconds)


def admit(call: Call, tool: AnyTool | None, decision: Decision) -> AnyTool:
    """The tool, if this caller may call it; a hidden tool is as good as none."""
    if tool is None or not decision.visible:
        raise UnknownTool(call.tool)
    if not decision.allowed:
        raise Forbidden(decision.says or f"Not allowed by rule {decision.rule!r}.")
    return tool


def told(error: Exception, call: Call) -> GateError:
    """The error as the caller may know it; what is not its business goes to the log."""
    match error:
        case GateError():
            if error.__cause__ is not None:
                logger.warning("%s: %s", call.request_id, error.message, exc_info=error)
            return error
        case TimeoutError():
            return TimedOut(
                f"{printable(call.tool)} took too long and was stopped. Ask for less, or again."
            )
        case StoreUnavailable():
            logger.warning("%s: %s", call.request_id, error, exc_info=error)
            return Unavailable(str(error))
        case OperationalError() | InterfaceError() | NoConnection():
            logger.warning("%s: %s", call.request_id, error, exc_info=error)
            return Unavailable("The database does not answer. Try again later.")
        case AuditUnavailable():
            return Unavailable("The audit log cannot be written, so nothing is answered now.")
        case _:
            logger.error("%s: %s failed", call.request_id, call.tool, exc_info=error)
            return Internal(call.request_id)

"""A call that writes: how it is stored with its audit row, and what became of it.

What a tool writes to the gate's own database commits together with the row. What it writes
elsewhere cannot, so the row is stored first then, as started, and completed afterwards; what else
the tool writes to the database still commits as a whole.
"""

import contextlib
from dataclasses import dataclass
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from toolgate.db.engine import Database
from toolgate.db.transactions import Transaction
from toolgate.gate.audit import AuditLog
from toolgate.gate.audit_records import STARTED, Record, new_id, record_of
from toolgate.gate.calls import Call, context_of, ended_now
from toolgate.gate.catalogue import AnyTool
from toolgate.gate.concurrency import ended_in_time
from toolgate.gate.diffs import diff_of
from toolgate.gate.errors import Forbidden, OutcomeUnknown, StoppedWrite
from toolgate.gate.limits import Allowance
from toolgate.gate.outcomes import Outcome, outcome_of_result
from toolgate.gate.policy import Decision
from toolgate.gate.tool import Target


@dataclass(slots=True)
class Write:
    """One write, and how far it has come."""

    call: Call
    tool: AnyTool
    decision: Decision
    started: float
    database: Database
    audit: AuditLog
    started_row: Record | None = None
    """Where the row is stored before the write: that row."""
    tx: Transaction | None = None
    """What is in the database commits in it, once the handler is done."""
    row: Record | None = None
    """Where the row commits with it: that row."""
    outcome: Outcome | None = None
    """What is answered if it commits."""

    async def perform(self, args: Any, allowed: Allowance) -> Outcome:
        """Do it, and store its row."""
        if not self.tool.atomic:
            return await self._store_row_first(args, allowed)
        async with self.database.transaction() as tx:
            tx.call = new_id()
            tx.diff = [] if self.call.dry_run else None
            self.outcome = await self._handle(args, allowed, tx)
            self.tx = tx
            if self.call.dry_run:
                tx.abandon()
            else:
                self.row = self._record(None, tx.call)
                self.audit.store_with_write(tx, self.row)
        if tx.diff is not None:  # complete only now: stores may leave their work to the end
            self.outcome.diff = diff_of(tx.diff, self.call.principal)
        return self.outcome

    async def _store_row_first(self, args: Any, allowed: Allowance) -> Outcome:
        if self.call.dry_run:
            documents = not {Target.OUTSIDE, Target.TREE} & self.tool.writes
            what = "documents are" if documents else f"all that {self.tool.name} does is"
            message = f"A dry run is possible only where {what} in the database."
            raise Forbidden(message, rule="no-dry-run")
        row = self._record(STARTED)
        await self.audit.store_now(row)
        self.started_row = row
        async with self.database.transaction() as tx:
            tx.call = row.id
            self.outcome = await self._handle(args, allowed, tx)
            self.tx = tx
        return self.outcome

    async def _handle(self, args: Any, allowed: Allowance, tx: Transaction) -> Outcome:
        work = self.tool.handler(context_of(self.call, self.tool, tx), args)
        # Ended apart from the rest of the write, which then takes back what it did.
        answer = await ended_in_time(work, allowed.deadlines, self.tool.name)
        return outcome_of_result(answer, self.tool, allowed.result_bytes)

    def _record(self, error_type: str | None, id: str | None = None) -> Record:
        ended = ended_now(self.call, self.tool, self.decision, self.started, error_type)
        return record_of(ended, id)

    async def outcome_if_committed(self, error: Exception) -> Outcome | None:
        """The answer of a write that is stored, whatever came after: its deadline, a lost line."""
        if self.tx is None:
            return None
        if self.row is not None and self.tx.in_doubt and not isinstance(error, TimeoutError):
            with contextlib.suppress(SQLAlchemyError):
                if await self.audit.contains(self.row):
                    self.tx.confirm()
        return self.outcome if self.tx.committed else None

    def error_if_unknown(self, error: Exception) -> Exception:
        """The error to tell: another one where nobody knows whether the write was done."""
        row = self.row or self.started_row
        if row is not None and self.tx is not None and self.tx.in_doubt:
            return OutcomeUnknown(self.tool.name, row.id)
        if self.started_row is not None and isinstance(error, TimeoutError):
            return StoppedWrite(self.tool.name, self.started_row.id)
        return error

    async def end_row(self, error_type: str | None) -> bool:
        """Give its row the end it came to; False where there is none yet, as after a read."""
        if self.started_row is not None:
            await self.audit.complete(self.started_row, self._record(error_type))
            return True
        if self.tx is None or self.row is None:
            return False
        if self.tx.committed:
            return True
        if self.tx.in_doubt:
            self.audit.store_unless_there(self.row, error_type)
            return True
        return False

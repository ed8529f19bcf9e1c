"""Tables of background work: runs of workflows, and when the scheduled ones are next."""

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from toolgate.db.tables import Time, metadata

workflow_runs = Table(
    "workflow_runs",
    metadata,
    Column("id", String(32), primary_key=True),
    # PACK/NAME
    Column("workflow", Text, nullable=False),
    Column("arguments", JSON, nullable=False),
    # What its starter calls it: the same key again is the same run.
    Column("key", Text),
    # What only one run under way may be called: its workflow, with the argument in which runs are
    # alike where it names one. NULL where any number may be, and at its end.
    Column("alone", Text),
    Column("status", String(16), nullable=False),
    # When a worker may take it: in its turn, or when the lease of who has it ends. NULL at its end.
    Column("due_at", Time),
    # Which taking of it holds the lease; another one each time.
    Column("lease", String(32)),
    Column("attempts", Integer, nullable=False),
    Column("cancelling", Boolean, nullable=False),
    # The last checkpoint.
    Column("state", JSON, nullable=False),
    Column("done", Float),
    Column("total", Float),
    Column("message", Text),
    Column("result", JSON(none_as_null=True)),
    Column("error", Text),
    # The id of the audit row of the call that started it.
    Column("call", String(32)),
    Column("created_at", Time, nullable=False),
    Column("started_at", Time),
    Column("updated_at", Time, nullable=False),
    Column("ended_at", Time),
    UniqueConstraint("workflow", "key"),
    UniqueConstraint("alone"),
    Index(None, "due_at"),
    Index(None, "created_at", "id"),
    Index(None, "ended_at"),
)

workflow_schedules = Table(
    "workflow_schedules",
    metadata,
    Column("workflow", Text, primary_key=True),
    Column("expression", Text, nullable=False),
    Column("next_at", Time, nullable=False),
)

"""Background work: runs of workflows, and schedules."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """One row for each run, and one for each workflow that has a schedule."""
    op.create_table(
        "workflow_runs",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("workflow", sa.Text, nullable=False),
        sa.Column("arguments", sa.JSON, nullable=False),
        sa.Column("key", sa.Text),
        sa.Column("alone", sa.Text),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("due_at", sa.String(27)),
        sa.Column("lease", sa.String(32)),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("cancelling", sa.Boolean, nullable=False),
        sa.Column("state", sa.JSON, nullable=False),
        sa.Column("done", sa.Float),
        sa.Column("total", sa.Float),
        sa.Column("message", sa.Text),
        sa.Column("result", sa.JSON),
        sa.Column("error", sa.Text),
        sa.Column("call", sa.String(32)),
        sa.Column("created_at", sa.String(27), nullable=False),
        sa.Column("started_at", sa.String(27)),
        sa.Column("updated_at", sa.String(27), nullable=False),
        sa.Column("ended_at", sa.String(27)),
        sa.PrimaryKeyConstraint("id", name="pk_workflow_runs"),
        sa.UniqueConstraint("workflow", "key", name="uq_workflow_runs_workflow_key"),
        sa.UniqueConstraint("alone", name="uq_workflow_runs_alone"),
    )
    op.create_index("ix_workflow_runs_due_at", "workflow_runs", ["due_at"])
    op.create_index("ix_workflow_runs_created_at_id", "workflow_runs", ["created_at", "id"])
    op.create_index("ix_workflow_runs_ended_at", "workflow_runs", ["ended_at"])
    op.create_table(
        "workflow_schedules",
        sa.Column("workflow", sa.Text, nullable=False),
        sa.Column("expression", sa.Text, nullable=False),
        sa.Column("next_at", sa.String(27), nullable=False),
        sa.PrimaryKeyConstraint("workflow", name="pk_workflow_schedules"),
    )

"""Artifacts."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

Words = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Id = sa.String(36).with_variant(sa.String(36, collation="C"), "postgresql")
Time = sa.String(27)


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "orchestrator_artifacts",
        sa.Column("task_id", Id, nullable=False),
        sa.Column("path", Words, nullable=False),
        sa.Column("storage_ref", Words, nullable=False),
        sa.Column("size_bytes", sa.Integer, nullable=False),
        sa.Column("content_type", Words, nullable=False),
        sa.Column("checksum_sha256", sa.String(64), nullable=False),
        sa.Column("created_at", Time, nullable=False),
        sa.Column("updated_at", Time, nullable=False),
        sa.Column("updated_by", Words, nullable=False),
        sa.ForeignKeyConstraint(
            ["task_id"], ["orchestrator_tasks.id"], name="fk_orchestrator_artifacts_task_id"
        ),
        sa.PrimaryKeyConstraint("task_id", "path", name="pk_orchestrator_artifacts"),
        sa.UniqueConstraint("storage_ref", name="uq_orchestrator_artifacts_storage_ref"),
    )

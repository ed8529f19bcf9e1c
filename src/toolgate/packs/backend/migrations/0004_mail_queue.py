"""Mails that are not done with."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

Words = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Id = sa.String(36).with_variant(sa.String(36, collation="C"), "postgresql")
Time = sa.String(27)
TABLE = "backend_mail_queue"


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        TABLE,
        sa.Column("id", Id, nullable=False),
        sa.Column("status", Words, nullable=False),
        sa.Column("due_at", Time, nullable=False),
        sa.Column("lease_until", Time),
        sa.Column("digest", sa.String(64)),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("message", sa.JSON, nullable=False),
        sa.Column("recipients", sa.JSON, nullable=False),
        sa.Column("options", sa.JSON, nullable=False),
        sa.Column("created_at", Time, nullable=False),
        sa.Column("updated_at", Time, nullable=False),
        sa.PrimaryKeyConstraint("id", name=f"pk_{TABLE}"),
        sa.UniqueConstraint("digest", name=f"uq_{TABLE}_digest"),
    )
    op.create_index(f"ix_{TABLE}_status_due_at_id", TABLE, ["status", "due_at", "id"])

"""Texts that operators put into quarantine; `operator.skill.rescan` adds those of before."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

TABLE = "orchestrator_quarantined_texts"
Id = sa.String(36).with_variant(sa.String(36, collation="C"), "postgresql")


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        TABLE,
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("skill_id", Id, nullable=False),
        sa.Column("quarantined_at", sa.String(27), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=f"pk_{TABLE}"),
    )
    op.create_index(f"ix_{TABLE}_skill_id", TABLE, ["skill_id"])

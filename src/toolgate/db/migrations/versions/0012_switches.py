"""Switches that are turned while servers run."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

Sequence = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Add the table; nothing is switched off."""
    op.create_table(
        "switches",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("value", sa.JSON, nullable=False),
        sa.Column("epoch", Sequence, nullable=False),
        sa.Column("changed_at", sa.String(27), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_switches"),
    )

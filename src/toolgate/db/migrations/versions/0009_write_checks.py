"""A table that is always empty: whether the database can be written is tried on it."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "write_checks",
        sa.Column("id", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_write_checks"),
    )

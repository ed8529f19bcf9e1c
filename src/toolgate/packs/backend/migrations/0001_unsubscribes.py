"""Who is not to be mailed."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

Words = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Time = sa.String(27)


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "backend_unsubscribes",
        sa.Column("email", Words, nullable=False),
        sa.Column("topic", Words, nullable=False),
        sa.Column("source", Words, nullable=False),
        sa.Column("created_at", Time, nullable=False),
        sa.PrimaryKeyConstraint("email", "topic", name="pk_backend_unsubscribes"),
    )

"""How many users, subscriptions and notifications there are."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

Words = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "backend_counts_derived",
        sa.Column("level", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("bucket", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("name", Words, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("level", "bucket", "name", name="pk_backend_counts_derived"),
    )
    op.create_table(
        "backend_count_state_derived",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("since", Words, nullable=False),
        sa.Column("until", Words, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_backend_count_state_derived"),
    )

"""The change log: what was there before and after each write."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """One row for each document that is written."""
    postgresql = op.get_context().dialect.name == "postgresql"
    op.create_table(
        "changes",
        sa.Column(
            "seq",
            sa.BigInteger().with_variant(sa.Integer, "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("transaction_id", sa.BigInteger),
        sa.Column("call", sa.String(32)),
        sa.Column("store", sa.String(16), nullable=False),
        sa.Column("namespace", sa.Text, nullable=False),
        sa.Column("path", sa.Text(collation="C") if postgresql else sa.Text, nullable=False),
        sa.Column("before", sa.JSON),
        sa.Column("after", sa.JSON),
        sa.Column("created_at", sa.String(27), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_changes"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_changes_transaction_id",
        "changes",
        ["transaction_id"],
        sqlite_where=sa.text("transaction_id IS NOT NULL"),
    )

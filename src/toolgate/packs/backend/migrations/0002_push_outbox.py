"""The outbox of push notifications."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

Sequence = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "backend_push_outbox",
        sa.Column("seq", Sequence, autoincrement=True, nullable=False),
        sa.Column("notification", sa.Text, nullable=False),
        sa.Column("recipients", sa.Integer, nullable=False),
        sa.Column("tokens", sa.Text, nullable=False),
        sa.Column("created_at", sa.String(27), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_backend_push_outbox"),
        sqlite_autoincrement=True,
    )

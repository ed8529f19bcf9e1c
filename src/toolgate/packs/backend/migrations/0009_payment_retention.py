"""Indexes to find payment events and intents that are old."""

from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add the indexes."""
    for table, column in (
        ("backend_payment_events", "received_at"),
        ("backend_payment_intents", "updated_at"),
    ):
        op.create_index(f"ix_{table}_{column}", table, [column])

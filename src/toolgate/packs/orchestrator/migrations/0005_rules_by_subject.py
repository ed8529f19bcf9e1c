"""Access rules are found by their subject, and listed in order of time."""

from alembic import op

revision = "0005"
down_revision = "0004"

TABLE = "orchestrator_access_rules"


def upgrade() -> None:
    """Add the indexes."""
    for columns in (["subject_type", "subject_id"], ["created_at", "id"]):
        op.create_index(f"ix_{TABLE}_{'_'.join(columns)}", TABLE, columns)

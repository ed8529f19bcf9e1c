"""The history has the types of values; what was noted before has none."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the columns."""
    for name in ("old_type", "new_type"):
        op.add_column("orchestrator_record_history", sa.Column(name, sa.String(8)))

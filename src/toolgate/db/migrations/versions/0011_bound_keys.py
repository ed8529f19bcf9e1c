"""A key can be bound to a project, a task and a job."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Add the columns; keys that are there already are bound to nothing."""
    for name in ("project_id", "task_id", "job_id"):
        op.add_column("keys", sa.Column(name, sa.Text))

"""A key can be that of a node."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Add the column; keys that are there already are no node's."""
    op.add_column("keys", sa.Column("node_id", sa.Text))

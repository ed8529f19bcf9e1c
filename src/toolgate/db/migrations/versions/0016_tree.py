"""Trees of JSON values by path."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """One row for each scalar of a tree."""
    op.create_table(
        "tree_nodes",
        sa.Column("namespace", sa.Text, nullable=False),
        sa.Column("path", sa.LargeBinary, nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("namespace", "path", name="pk_tree_nodes"),
        sqlite_with_rowid=False,
    )

"""Commits of posts that are about to be made."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

TABLE = "backend_post_intents"
Words = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Id = sa.String(36).with_variant(sa.String(36, collation="C"), "postgresql")


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        TABLE,
        sa.Column("call", Id, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("slug", Words, nullable=False),
        sa.Column("created_at", sa.String(27), nullable=False),
        sa.PrimaryKeyConstraint("call", name=f"pk_{TABLE}"),
    )
    op.create_index(f"ix_{TABLE}_digest", TABLE, ["digest"])

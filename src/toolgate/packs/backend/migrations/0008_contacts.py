"""Marketing contacts."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

Words = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Time = sa.String(27)


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "backend_contacts",
        sa.Column("email", Words, nullable=False),
        sa.Column("first_name", Words, nullable=True),
        sa.Column("last_name", Words, nullable=True),
        sa.Column("source", Words, nullable=True),
        sa.Column("tags", sa.Text, nullable=False),
        sa.Column("removed", sa.Boolean, nullable=False),
        sa.Column("pending", sa.Boolean, nullable=False),
        sa.Column("created_at", Time, nullable=False),
        sa.Column("updated_at", Time, nullable=False),
        sa.PrimaryKeyConstraint("email", name="pk_backend_contacts"),
    )
    op.create_index(
        "ix_backend_contacts_pending",
        "backend_contacts",
        ["email"],
        sqlite_where=sa.text("pending"),
        postgresql_where=sa.text("pending"),
    )

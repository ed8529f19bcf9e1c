"""Keys that the gate signs with: that of cursors is made here."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Add the table, and the key."""
    table = op.create_table(
        "signing_keys",
        sa.Column("name", sa.String(32), nullable=False),
        sa.Column("key", sa.LargeBinary(32), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_signing_keys"),
    )
    op.bulk_insert(table, [{"name": "cursors", "key": secrets.token_bytes(32)}])

"""Audit rows name the client and may stand for many calls; the chain's head; names of keys."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

Sequence = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Add the columns, and a table with the newest seal."""
    op.add_column("audit", sa.Column("client_id", sa.Text))
    op.add_column("audit", sa.Column("grant_id", sa.String(32)))
    op.add_column("audit", sa.Column("times", sa.Integer, nullable=False, server_default="1"))
    op.add_column("keys", sa.Column("name", sa.Text))
    head = op.create_table(
        "audit_head",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("number", Sequence, nullable=False),
        sa.Column("hash", sa.LargeBinary(32), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit_head"),
    )
    newest = sa.text("SELECT number, hash FROM audit_seals ORDER BY number DESC LIMIT 1")
    last = op.get_bind().execute(newest).first()
    number, hash_ = (last.number, bytes(last.hash)) if last else (0, bytes(32))
    op.bulk_insert(head, [{"id": 1, "number": number, "hash": hash_}])

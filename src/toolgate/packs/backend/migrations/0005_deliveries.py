"""What became of each message of a campaign."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

Words = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Time = sa.String(27)


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "backend_deliveries",
        sa.Column("campaign", Words, nullable=False),
        sa.Column("number", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("address", Words, nullable=False),
        sa.Column("uid", Words),
        sa.Column("name", Words),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("words", Words),
        sa.Column("updated_at", Time, nullable=False),
        sa.PrimaryKeyConstraint("campaign", "number", name="pk_backend_deliveries"),
        sa.UniqueConstraint("campaign", "address", name="uq_backend_deliveries_campaign_address"),
    )
    op.create_index(
        "ix_backend_deliveries_campaign_state_number",
        "backend_deliveries",
        ["campaign", "state", "number"],
    )

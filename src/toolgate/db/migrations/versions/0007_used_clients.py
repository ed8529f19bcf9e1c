"""Which OAuth clients were ever used: registrations that were not are the first to go."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0004"

Time = sa.String(27)


def upgrade() -> None:
    """Add the column; clients that were given a grant count as used."""
    op.add_column("oauth_clients", sa.Column("used_at", Time))
    op.execute(
        "UPDATE oauth_clients SET used_at = created_at "
        "WHERE id IN (SELECT client_id FROM oauth_grants)"
    )
    op.create_index(
        "ix_oauth_clients_used_at_created_at", "oauth_clients", ["used_at", "created_at"]
    )

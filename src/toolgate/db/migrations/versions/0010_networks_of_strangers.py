"""Registrations and sign-ins on their way are counted by the network they came from."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Add the columns; of what is there already, the network is not known."""
    op.add_column("oauth_clients", sa.Column("network", sa.Text))
    op.add_column("oauth_sign_ins", sa.Column("network", sa.Text))
    op.add_column("oauth_sign_ins", sa.Column("client_id", sa.Text))
    op.create_index("ix_oauth_sign_ins_client_id", "oauth_sign_ins", ["client_id"])

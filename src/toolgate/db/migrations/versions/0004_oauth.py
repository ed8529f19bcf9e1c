"""The OAuth server: clients, sign-ins on their way, grants, tokens."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0001"

Time = sa.String(27)


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "oauth_clients",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("redirect_uris", sa.JSON, nullable=False),
        sa.Column("uri", sa.Text),
        sa.Column("created_at", Time, nullable=False),
        sa.Column("expires_at", Time, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_oauth_clients"),
    )
    op.create_table(
        "oauth_sign_ins",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("browser", sa.LargeBinary(32), nullable=False),
        sa.Column("asked", sa.JSON, nullable=False),
        sa.Column("remembered", sa.JSON, nullable=False),
        sa.Column("subject", sa.JSON, nullable=False),
        sa.Column("misses", sa.Integer, nullable=False),
        sa.Column("created_at", Time, nullable=False),
        sa.Column("expires_at", Time, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_oauth_sign_ins"),
    )
    _create_grants()
    _create_tokens()
    for table in ("oauth_clients", "oauth_sign_ins", "oauth_grants", "oauth_tokens"):
        op.create_index(f"ix_{table}_expires_at", table, ["expires_at"])
    op.create_index("ix_oauth_tokens_grant_id", "oauth_tokens", ["grant_id"])


def _create_grants() -> None:
    op.create_table(
        "oauth_grants",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("client_id", sa.Text, nullable=False),
        sa.Column("user_id", sa.Text),
        sa.Column("key_id", sa.String(32)),
        sa.Column("key_mark", sa.LargeBinary(32)),
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("resource", sa.Text, nullable=False),
        sa.Column("redirect_uri", sa.Text, nullable=False),
        sa.Column("challenge", sa.String(43), nullable=False),
        sa.Column("code", sa.LargeBinary(32), nullable=False),
        sa.Column("code_expires_at", Time, nullable=False),
        sa.Column("code_used_at", Time),
        sa.Column("created_at", Time, nullable=False),
        sa.Column("expires_at", Time, nullable=False),
        sa.Column("ended_at", Time),
        sa.PrimaryKeyConstraint("id", name="pk_oauth_grants"),
    )


def _create_tokens() -> None:
    op.create_table(
        "oauth_tokens",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("hash", sa.LargeBinary(32), nullable=False),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("grant_id", sa.String(32), nullable=False),
        sa.Column("parent_id", sa.String(32)),
        sa.Column("created_at", Time, nullable=False),
        sa.Column("expires_at", Time, nullable=False),
        sa.Column("used_at", Time),
        sa.Column("ended_at", Time),
        sa.PrimaryKeyConstraint("id", name="pk_oauth_tokens"),
        sa.ForeignKeyConstraint(
            ["grant_id"],
            ["oauth_grants.id"],
            name="fk_oauth_tokens_grant_id",
            ondelete="CASCADE",
        ),
    )

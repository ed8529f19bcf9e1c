"""Payments."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

Words = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Id = sa.String(36).with_variant(sa.String(36, collation="C"), "postgresql")
Time = sa.String(27)


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "backend_payment_intents",
        sa.Column("id", Id, nullable=False),
        sa.Column("open_for", Words),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("uid", Words, nullable=False),
        sa.Column("processor", Words, nullable=False),
        sa.Column("resource_id", Words, nullable=False),
        sa.Column("request", sa.JSON, nullable=False),
        sa.Column("state", sa.String(8), nullable=False),
        sa.Column("answer", sa.JSON),
        sa.Column("created_at", Time, nullable=False),
        sa.Column("updated_at", Time, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_backend_payment_intents"),
        sa.UniqueConstraint("open_for", name="uq_backend_payment_intents_open_for"),
    )
    op.create_table(
        "backend_payment_events",
        sa.Column("id", Words, nullable=False),
        sa.Column("kind", Words, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("received_at", Time, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_backend_payment_events"),
    )
    op.create_table(
        "backend_payment_readings",
        sa.Column("processor", Words, nullable=False),
        sa.Column("resource_id", Words, nullable=False),
        sa.Column("read_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("processor", "resource_id", name="pk_backend_payment_readings"),
    )
    _add_ledger()


def _add_ledger() -> None:
    op.create_table(
        "backend_ledger_subscriptions",
        sa.Column("id", Words, nullable=False),
        sa.Column("uid", Words, nullable=False),
        sa.Column("product", Words, nullable=False),
        sa.Column("status", sa.String(9), nullable=False),
        sa.Column("frequency", sa.String(8), nullable=False),
        sa.Column("amount", sa.BigInteger, nullable=False),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("started_at", sa.BigInteger, nullable=False),
        sa.Column("period_start", sa.BigInteger, nullable=False),
        sa.Column("period_end", sa.BigInteger, nullable=False),
        sa.Column("trial_end", sa.BigInteger),
        sa.Column("cancel_at_period_end", sa.Boolean, nullable=False),
        sa.Column("ended_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("id", name="pk_backend_ledger_subscriptions"),
    )
    op.create_index(
        "ix_backend_ledger_subscriptions_period_end",
        "backend_ledger_subscriptions",
        ["period_end"],
    )
    op.create_table(
        "backend_ledger_charges",
        sa.Column("id", Words, nullable=False),
        sa.Column("subscription_id", Words, nullable=False),
        sa.Column("amount", sa.BigInteger, nullable=False),
        sa.Column("refunded", sa.BigInteger, nullable=False),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("paid_at", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(
            ["subscription_id"],
            ["backend_ledger_subscriptions.id"],
            name="fk_backend_ledger_charges_subscription_id",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_backend_ledger_charges"),
    )
    op.create_index(
        "ix_backend_ledger_charges_subscription_id_paid_at",
        "backend_ledger_charges",
        ["subscription_id", "paid_at"],
    )
    op.create_table(
        "backend_ledger_refunds",
        sa.Column("id", Words, nullable=False),
        sa.Column("charge_id", Words, nullable=False),
        sa.Column("amount", sa.BigInteger, nullable=False),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("key", Words, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(
            ["charge_id"],
            ["backend_ledger_charges.id"],
            name="fk_backend_ledger_refunds_charge_id",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_backend_ledger_refunds"),
        sa.UniqueConstraint("key", name="uq_backend_ledger_refunds_key"),
    )
    op.create_index("ix_backend_ledger_refunds_charge_id", "backend_ledger_refunds", ["charge_id"])

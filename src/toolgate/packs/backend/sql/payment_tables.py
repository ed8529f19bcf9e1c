"""Tables of payments: what was begun at a processor, what it told, and the embedded ledger.

Times of the ledger are unix seconds, and amounts minor units, as processors write them.
"""

from sqlalchemy import JSON, BigInteger, Boolean, Column, ForeignKey, Index, String, Table

from toolgate.db.tables import Time
from toolgate.packs.backend.sql.tables import Id, Words, metadata

intents = Table(
    "backend_payment_intents",
    metadata,
    # The audit id of the call that began it; the idempotency key is made from it.
    Column("id", Id, primary_key=True),
    # What it is about while it is open: one at a time for each.
    Column("open_for", Words, unique=True),
    Column("kind", String(8), nullable=False),
    Column("uid", Words, nullable=False),
    Column("processor", Words, nullable=False),
    Column("resource_id", Words, nullable=False),
    Column("request", JSON, nullable=False),
    Column("state", String(8), nullable=False),
    Column("answer", JSON),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time, nullable=False),
)

Index(None, intents.c.updated_at)

# Events of a processor that were taken in; each is once.
events = Table(
    "backend_payment_events",
    metadata,
    Column("id", Words, primary_key=True),
    Column("kind", Words, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("received_at", Time, nullable=False),
)

Index(None, events.c.received_at)

# When what a record says of a subscription was asked for: nothing older may replace it.
readings = Table(
    "backend_payment_readings",
    metadata,
    Column("processor", Words, primary_key=True),
    Column("resource_id", Words, primary_key=True),
    Column("read_at", BigInteger, nullable=False),
)

subscriptions = Table(
    "backend_ledger_subscriptions",
    metadata,
    Column("id", Words, primary_key=True),
    Column("uid", Words, nullable=False),
    Column("product", Words, nullable=False),
    Column("status", String(9), nullable=False),
    Column("frequency", String(8), nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("currency", String(3), nullable=False),
    Column("started_at", BigInteger, nullable=False),
    Column("period_start", BigInteger, nullable=False),
    Column("period_end", BigInteger, nullable=False),
    Column("trial_end", BigInteger),
    Column("cancel_at_period_end", Boolean, nullable=False),
    Column("ended_at", BigInteger),
)
Index(None, subscriptions.c.period_end)

charges = Table(
    "backend_ledger_charges",
    metadata,
    Column("id", Words, primary_key=True),
    Column("subscription_id", Words, ForeignKey(subscriptions.c.id), nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("refunded", BigInteger, nullable=False),
    Column("currency", String(3), nullable=False),
    Column("paid_at", BigInteger, nullable=False),
)
Index(None, charges.c.subscription_id, charges.c.paid_at)

refunds = Table(
    "backend_ledger_refunds",
    metadata,
    Column("id", Words, primary_key=True),
    Column("charge_id", Words, ForeignKey(charges.c.id), nullable=False, index=True),
    Column("amount", BigInteger, nullable=False),
    Column("currency", String(3), nullable=False),
    # The idempotency key: a request that comes again finds its refund.
    Column("key", Words, nullable=False, unique=True),
    Column("created_at", BigInteger, nullable=False),
)

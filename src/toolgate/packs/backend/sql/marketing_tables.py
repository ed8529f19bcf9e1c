"""Tables of marketing: who is not to be mailed, and what became of each mail of a campaign."""

from sqlalchemy import Column, Index, Integer, String, Table, UniqueConstraint

from toolgate.db.tables import Time
from toolgate.packs.backend.sql.tables import Words, metadata

unsubscribes = Table(
    "backend_unsubscribes",
    metadata,
    Column("email", Words, primary_key=True),  # lower-cased
    Column("topic", Words, primary_key=True),  # an unsubscribe group, `*` for every one
    Column("source", Words, nullable=False),
    Column("created_at", Time, nullable=False),
)

deliveries = Table(
    "backend_deliveries",
    metadata,
    Column("campaign", Words, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("address", Words, nullable=False),  # an email address, lower-cased, or a push token
    Column("uid", Words),
    Column("name", Words),
    Column("state", String(10), nullable=False),
    Column("words", Words),  # what the server said
    Column("updated_at", Time, nullable=False),
    UniqueConstraint("campaign", "address"),
    Index("ix_backend_deliveries_campaign_state_number", "campaign", "state", "number"),
)

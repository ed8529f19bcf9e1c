"""Tables of marketing: who is not to be mailed."""

from sqlalchemy import Column, Table

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

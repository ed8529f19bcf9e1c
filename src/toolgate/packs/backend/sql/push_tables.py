"""Tables of push: the outbox."""

from sqlalchemy import Column, Integer, Table, Text

from toolgate.db.tables import Sequence, Time
from toolgate.packs.backend.sql.tables import metadata

# One row for the messages that were sent at once, so a campaign takes few.
push_outbox = Table(
    "backend_push_outbox",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=True),
    Column("notification", Text, nullable=False),  # JSON
    Column("recipients", Integer, nullable=False),
    Column("tokens", Text, nullable=False),  # JSON
    Column("created_at", Time, nullable=False),
    sqlite_autoincrement=True,
)

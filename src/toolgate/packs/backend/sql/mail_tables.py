"""The table of mails that are not done with."""

from sqlalchemy import JSON, Column, Index, Integer, String, Table

from toolgate.db.tables import Time
from toolgate.packs.backend.sql.tables import Id, Words, metadata

mail_queue = Table(
    "backend_mail_queue",
    metadata,
    Column("id", Id, primary_key=True),
    Column("status", Words, nullable=False),
    Column("due_at", Time, nullable=False),
    # Of one that is being sent: when nobody does so any more.
    Column("lease_until", Time),
    # Of one that may have been sent: what it says and to whom, so that nobody sends it again.
    Column("digest", String(64), unique=True),
    Column("attempts", Integer, nullable=False),
    Column("message", JSON, nullable=False),
    Column("recipients", JSON, nullable=False),
    Column("options", JSON, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time, nullable=False),
    Index(None, "status", "due_at", "id"),
)

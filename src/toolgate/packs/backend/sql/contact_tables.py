"""Tables of contacts: the embedded list."""

from sqlalchemy import Boolean, Column, Index, Table, Text, text

from toolgate.db.tables import Time
from toolgate.packs.backend.sql.tables import Words, metadata

contacts = Table(
    "backend_contacts",
    metadata,
    Column("email", Words, primary_key=True),  # lower-cased
    Column("first_name", Words),
    Column("last_name", Words),
    Column("source", Words),
    Column("tags", Text, nullable=False),  # JSON
    Column("removed", Boolean, nullable=False),
    Column("pending", Boolean, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time, nullable=False),
    Index(
        "ix_backend_contacts_pending",
        "email",
        sqlite_where=text("pending"),
        postgresql_where=text("pending"),
    ),
)

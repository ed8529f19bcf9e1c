"""Numbers of documents, derived from the documents themselves: backups leave these tables out."""

from sqlalchemy import BigInteger, Column, Integer, Table

from toolgate.packs.backend.sql.tables import Words, metadata

# What is counted, by the second in which it ends: level 0 has a row for each second, level 1 for
# every 256 seconds, and so on. So few rows tell how many end after any moment.
counts = Table(
    "backend_counts_derived",
    metadata,
    Column("level", Integer, primary_key=True, autoincrement=False),
    Column("bucket", BigInteger, primary_key=True, autoincrement=False),
    # Collection, plan, frequency and whether it is exempt, as JSON.
    Column("name", Words, primary_key=True),
    Column("number", BigInteger, nullable=False),
)

# How far the change log has been counted, in one row; `epoch` counts the steps.
count_state = Table(
    "backend_count_state_derived",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("epoch", BigInteger, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("since", Words, nullable=False),
    Column("until", Words, nullable=False),
)

"""The gate's own tables, defined once for SQLite and PostgreSQL; packs bring theirs.

Times are UTC text in ISO 8601 with microseconds, so that both databases keep and order them
alike and an audit row's hash does not depend on the database.
"""

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}
"""How indexes and constraints are named, in every pack alike."""
metadata = MetaData(naming_convention=NAMES)

Sequence = BigInteger().with_variant(Integer, "sqlite")
Time = String(27)
BytewiseText = Text().with_variant(Text(collation="C"), "postgresql")
"""Text that both databases order by its bytes in UTF-8."""

documents = Table(
    "documents",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=True),
    # The pack whose documents these are.
    Column("namespace", Text, nullable=False),
    Column("collection", BytewiseText, nullable=False),
    Column("id", BytewiseText, nullable=False),
    # JSON, not JSONB: the order of a document's fields is its author's.
    Column("fields", JSON, nullable=False),
    UniqueConstraint("namespace", "collection", "id"),
    sqlite_autoincrement=True,
)

# For each value of a document's fields: which field it is, by number, and the value's sort key.
document_index = Table(
    "document_index",
    metadata,
    Column("field", BigInteger, primary_key=True, autoincrement=False),
    Column("key", LargeBinary, primary_key=True),
    Column("id", BytewiseText, primary_key=True),
    sqlite_with_rowid=False,
)

# How far the index has been built, and without which fields; in one row.
document_index_state = Table(
    "document_index_state",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("unindexed", JSON, nullable=False),
    # The last document that it has entries of; NULL once it has those of all.
    Column("built_to", Sequence),
)

# One row for each scalar of a tree: an object is there by what is below it.
tree_nodes = Table(
    "tree_nodes",
    metadata,
    # The pack whose tree it is.
    Column("namespace", Text, primary_key=True),
    # The keys from the root. Bytes, which both databases order alike: what is below a path is one
    # range, with children in the order of their keys.
    Column("path", LargeBinary, primary_key=True),
    # As JSON.
    Column("value", Text, nullable=False),
    sqlite_with_rowid=False,
)

# What was there before and after each write, in the write's own commit (`db/changes.py`).
changes = Table(
    "changes",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=True),
    # PostgreSQL's, for readers: there rows may commit in another order than that of their numbers.
    Column("transaction_id", BigInteger),
    # The id of the audit row; NULL for what no call has written.
    Column("call", String(32)),
    Column("store", String(16), nullable=False),
    Column("namespace", Text, nullable=False),
    Column("path", BytewiseText, nullable=False),
    Column("before", JSON(none_as_null=True)),
    Column("after", JSON(none_as_null=True)),
    Column("created_at", Time, nullable=False),
    Index(None, "transaction_id", sqlite_where=text("transaction_id IS NOT NULL")),
    sqlite_autoincrement=True,
)

keys = Table(
    "keys",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("hash", LargeBinary(32), nullable=False),
    Column("role", String(16)),
    Column("agent_type", String(16)),
    Column("user_id", Text),
    Column("created_at", Time, nullable=False),
    Column("expires_at", Time),
    Column("revoked_at", Time),
    # What its maker calls it.
    Column("name", Text),
    # The one project, task and job that its holder may name.
    Column("project_id", Text),
    Column("task_id", Text),
    Column("job_id", Text),
    # The node whose key it is, by its slug; it has neither a role nor an agent type then.
    Column("node_id", Text),
)

# Each key, grant, access token and record of a user that was changed or deleted, as `KIND:ID`;
# triggers write it, and `identity/credential_changes.py` follows it.
credential_changes = Table(
    "credential_changes",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=True),
    # PostgreSQL's, as in `changes`.
    Column("transaction_id", BigInteger),
    Column("name", Text, nullable=False),
    Index(None, "transaction_id", sqlite_where=text("transaction_id IS NOT NULL")),
    sqlite_autoincrement=True,
)

# What operators turn while servers run; `epoch` is the number of the last change.
switches = Table(
    "switches",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("value", JSON, nullable=False),
    Column("epoch", Sequence, nullable=False),
    Column("changed_at", Time, nullable=False),
)

signing_keys = Table(
    "signing_keys",
    metadata,
    Column("name", String(32), primary_key=True),
    Column("key", LargeBinary(32), nullable=False),
)

# Always empty: each check of `db/health.py` deletes its row before the commit.
write_checks = Table("write_checks", metadata, Column("id", String(32), primary_key=True))

audit_seals = Table(
    "audit_seals",
    metadata,
    Column("number", Sequence, primary_key=True, autoincrement=False),
    Column("sealed_at", Time, nullable=False),
    Column("rows", Integer, nullable=False),
    # (seq, digest) of every row, 40 bytes each: lets `verify` name the row that was touched.
    Column("entries", LargeBinary, nullable=False),
    Column("previous", LargeBinary(32), nullable=False),
    Column("hash", LargeBinary(32), nullable=False),
)

# The newest seal, in one row. New seals follow it, so seals that were removed leave a gap.
audit_head = Table(
    "audit_head",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("number", Sequence, nullable=False),
    Column("hash", LargeBinary(32), nullable=False),
)

audit = Table(
    "audit",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=True),
    Column("id", String(32), nullable=False),
    Column("created_at", Time, nullable=False),
    Column("request_id", String(128), nullable=False),
    Column("transport", String(16), nullable=False),
    Column("subject_type", String(16), nullable=False),
    Column("subject_id", Text, nullable=False),
    Column("user_id", Text),
    Column("agent_type", String(16)),
    Column("role_names", Text, nullable=False),
    Column("group_ids", Text, nullable=False),
    Column("project_id", Text),
    Column("task_id", Text),
    Column("run_id", Text),
    Column("job_id", Text),
    Column("client_id", Text),
    Column("grant_id", String(32)),
    Column("tool_name", Text, nullable=False),
    Column("decision", String(8), nullable=False),
    Column("rule", Text, nullable=False),
    Column("status", String(8), nullable=False),
    Column("error_type", String(32)),
    Column("duration_ms", Integer, nullable=False),
    # How many calls the row stands for.
    Column("times", Integer, nullable=False, server_default="1"),
    Column("seal", Sequence, ForeignKey("audit_seals.number")),
    UniqueConstraint("id"),
    Index(None, "seal", "seq"),
    sqlite_autoincrement=True,
)

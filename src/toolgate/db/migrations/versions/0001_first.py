"""The first tables: documents, keys, audit and its seals."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

Sequence = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Time = sa.String(27)


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "documents",
        sa.Column("seq", Sequence, autoincrement=True, nullable=False),
        sa.Column("collection", sa.Text, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("fields", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_documents"),
        sa.UniqueConstraint("collection", "id", name="uq_documents_collection_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_documents_collection_seq", "documents", ["collection", "seq"])
    if op.get_context().dialect.name == "postgresql":
        op.execute(
            "CREATE INDEX ix_documents_fields ON documents "
            "USING gin ((fields::jsonb) jsonb_path_ops)"
        )
    op.create_table(
        "keys",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("hash", sa.LargeBinary(32), nullable=False),
        sa.Column("role", sa.String(16)),
        sa.Column("agent_type", sa.String(16)),
        sa.Column("user_id", sa.Text),
        sa.Column("created_at", Time, nullable=False),
        sa.Column("expires_at", Time),
        sa.Column("revoked_at", Time),
        sa.PrimaryKeyConstraint("id", name="pk_keys"),
    )
    op.create_table(
        "audit_seals",
        sa.Column("number", Sequence, autoincrement=False, nullable=False),
        sa.Column("sealed_at", Time, nullable=False),
        sa.Column("rows", sa.Integer, nullable=False),
        sa.Column("entries", sa.LargeBinary, nullable=False),
        sa.Column("previous", sa.LargeBinary(32), nullable=False),
        sa.Column("hash", sa.LargeBinary(32), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_audit_seals"),
    )
    _create_audit()


def _create_audit() -> None:
    op.create_table(
        "audit",
        sa.Column("seq", Sequence, autoincrement=True, nullable=False),
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("created_at", Time, nullable=False),
        sa.Column("request_id", sa.String(128), nullable=False),
        sa.Column("transport", sa.String(16), nullable=False),
        sa.Column("subject_type", sa.String(16), nullable=False),
        sa.Column("subject_id", sa.Text, nullable=False),
        sa.Column("user_id", sa.Text),
        sa.Column("agent_type", sa.String(16)),
        sa.Column("role_names", sa.Text, nullable=False),
        sa.Column("group_ids", sa.Text, nullable=False),
        sa.Column("project_id", sa.Text),
        sa.Column("task_id", sa.Text),
        sa.Column("run_id", sa.Text),
        sa.Column("job_id", sa.Text),
        sa.Column("tool_name", sa.Text, nullable=False),
        sa.Column("decision", sa.String(8), nullable=False),
        sa.Column("rule", sa.Text, nullable=False),
        sa.Column("status", sa.String(8), nullable=False),
        sa.Column("error_type", sa.String(32)),
        sa.Column("duration_ms", sa.Integer, nullable=False),
        sa.Column("seal", Sequence),
        sa.PrimaryKeyConstraint("seq", name="pk_audit"),
        sa.UniqueConstraint("id", name="uq_audit_id"),
        sa.ForeignKeyConstraint(["seal"], ["audit_seals.number"], name="fk_audit_seal"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audit_seal_seq", "audit", ["seal", "seq"])

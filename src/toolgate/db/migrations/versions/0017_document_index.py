"""Fields of documents are indexed; ids and collections are ordered by their bytes.

The entries of documents that are there already are made afterwards, in small steps
(`adapters/sql/documents/build.py`): for many documents that takes minutes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Add the tables."""
    postgresql = op.get_context().dialect.name == "postgresql"
    bytewise = sa.Text(collation="C") if postgresql else sa.Text()
    op.create_table(
        "document_index",
        sa.Column("field", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("key", sa.LargeBinary, nullable=False),
        sa.Column("id", bytewise, nullable=False),
        sa.PrimaryKeyConstraint("field", "key", "id", name="pk_document_index"),
        sqlite_with_rowid=False,
    )
    state = op.create_table(
        "document_index_state",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("unindexed", sa.JSON, nullable=False),
        sa.Column("built_to", sa.BigInteger().with_variant(sa.Integer, "sqlite")),
        sa.PrimaryKeyConstraint("id", name="pk_document_index_state"),
    )
    there = op.get_bind().scalar(sa.text("SELECT EXISTS (SELECT 1 FROM documents)"))
    op.bulk_insert(state, [{"id": 1, "unindexed": [], "built_to": 0 if there else None}])
    op.drop_index("ix_documents_namespace_collection_seq", "documents")
    if postgresql:
        op.drop_index("ix_documents_fields", "documents")
        for column in ("collection", "id"):
            op.alter_column("documents", column, type_=bytewise)

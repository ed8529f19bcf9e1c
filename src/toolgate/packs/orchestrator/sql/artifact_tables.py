"""The table of artifacts; their bytes are blobs."""

from sqlalchemy import Column, ForeignKey, Integer, String, Table

from toolgate.db.tables import Time
from toolgate.packs.orchestrator.sql.tables import Id, Words, metadata

artifacts = Table(
    "orchestrator_artifacts",
    metadata,
    Column("task_id", Id, ForeignKey("orchestrator_tasks.id"), primary_key=True),
    Column("path", Words, primary_key=True),
    # The name of the blob; each version has its own.
    Column("storage_ref", Words, nullable=False, unique=True),
    Column("size_bytes", Integer, nullable=False),
    Column("content_type", Words, nullable=False),
    Column("checksum_sha256", String(64), nullable=False),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time, nullable=False),
    Column("updated_by", Words, nullable=False),
)

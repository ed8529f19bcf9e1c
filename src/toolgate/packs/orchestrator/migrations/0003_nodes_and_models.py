"""Nodes, what they have, and models with their versions and artifacts."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

Words = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Id = sa.String(36).with_variant(sa.String(36, collation="C"), "postgresql")
Ulid = sa.String(26).with_variant(sa.String(26, collation="C"), "postgresql")
Sequence = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Time = sa.String(27)


def upgrade() -> None:
    """Add the tables."""
    _nodes()
    _models()


def _nodes() -> None:
    op.create_table(
        "orchestrator_nodes",
        sa.Column("id", Id, nullable=False),
        sa.Column("slug", Words, nullable=False),
        sa.Column("display_name", Words, nullable=False),
        sa.Column("worker_api_target_url", Words, nullable=True),
        sa.Column("metadata", Words, nullable=False),
        sa.Column("drained", sa.Boolean, nullable=False),
        sa.Column("config", Words, nullable=False),
        sa.Column("config_version", Ulid, nullable=False),
        sa.Column("config_ack_version", Ulid, nullable=True),
        sa.Column("config_ack_at", Time, nullable=True),
        sa.Column("config_ack_status", sa.String(16), nullable=True),
        sa.Column("config_ack_error", Words, nullable=True),
        sa.Column("last_seen_at", Time, nullable=True),
        sa.Column("last_capability_at", Time, nullable=True),
        sa.Column("capabilities", Words, nullable=True),
        sa.Column("created_at", Time, nullable=False),
        sa.Column("updated_at", Time, nullable=False),
        sa.CheckConstraint(
            "config_ack_status IN ('applied', 'failed', 'rolled_back')",
            name="config_ack_status_known",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_orchestrator_nodes"),
        sa.UniqueConstraint("slug", name="uq_orchestrator_nodes_slug"),
    )
    op.create_table(
        "orchestrator_node_availability",
        sa.Column("node_id", Id, nullable=False),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("name", Words, nullable=False),
        sa.Column("version", Words, nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("reported_at", Time, nullable=False),
        sa.CheckConstraint("kind IN ('image', 'model')", name="kind_known"),
        sa.CheckConstraint(
            "status IN ('available', 'pulling', 'loading', 'failed', 'evicted')",
            name="status_known",
        ),
        sa.ForeignKeyConstraint(
            ["node_id"], ["orchestrator_nodes.id"], name="fk_orchestrator_node_availability_node_id"
        ),
        sa.PrimaryKeyConstraint(
            "node_id", "kind", "name", "version", name="pk_orchestrator_node_availability"
        ),
    )
    op.create_index(
        "ix_orchestrator_node_availability_kind_name_node_id",
        "orchestrator_node_availability",
        ["kind", "name", "node_id"],
    )


def _models() -> None:
    op.create_table(
        "orchestrator_models",
        sa.Column("id", Id, nullable=False),
        sa.Column("name", Words, nullable=False),
        sa.Column("vendor", Words, nullable=True),
        sa.Column("description", Words, nullable=True),
        sa.Column("created_at", Time, nullable=False),
        sa.Column("updated_at", Time, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_orchestrator_models"),
        sa.UniqueConstraint("name", name="uq_orchestrator_models_name"),
    )
    op.create_table(
        "orchestrator_model_versions",
        sa.Column("model_id", Id, nullable=False),
        sa.Column("version", Words, nullable=False),
        sa.Column("capabilities", Words, nullable=False),
        sa.Column("default_parameters", Words, nullable=False),
        sa.Column("created_at", Time, nullable=False),
        sa.ForeignKeyConstraint(
            ["model_id"], ["orchestrator_models.id"], name="fk_orchestrator_model_versions_model_id"
        ),
        sa.PrimaryKeyConstraint("model_id", "version", name="pk_orchestrator_model_versions"),
    )
    op.create_table(
        "orchestrator_model_artifacts",
        sa.Column("id", Id, nullable=False),
        sa.Column("model_id", Id, nullable=False),
        sa.Column("version", Words, nullable=False),
        sa.Column("artifact_type", sa.String(16), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("size_bytes", Sequence, nullable=False),
        sa.Column("cache_path", Words, nullable=True),
        sa.Column("source_uri", Words, nullable=True),
        sa.Column("created_at", Time, nullable=False),
        sa.CheckConstraint(
            "artifact_type IN ('ollama', 'gguf', 'safetensors')", name="artifact_type_known"
        ),
        sa.ForeignKeyConstraint(
            ["model_id", "version"],
            ["orchestrator_model_versions.model_id", "orchestrator_model_versions.version"],
            name="fk_orchestrator_model_artifacts_model_id_version",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_orchestrator_model_artifacts"),
    )
    op.create_index(
        "ix_orchestrator_model_artifacts_model_id_version_id",
        "orchestrator_model_artifacts",
        ["model_id", "version", "id"],
    )

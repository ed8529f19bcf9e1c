"""Access rules, beginning with one that allows agents all their tools; lists in order of time."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

Words = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Id = sa.String(36).with_variant(sa.String(36, collation="C"), "postgresql")
Time = sa.String(27)
SINCE = "2026-01-01T00:00:00.000000Z"


def upgrade() -> None:
    """Add the table and its first rule, and indexes for operators' lists."""
    for table in ("orchestrator_tasks", "orchestrator_jobs"):
        op.create_index(f"ix_{table}_created_at_id", table, ["created_at", "id"])
    rules = op.create_table(
        "orchestrator_access_rules",
        sa.Column("id", Id, nullable=False),
        sa.Column("subject_type", sa.String(8), nullable=False),
        sa.Column("subject_id", Words, nullable=False),
        sa.Column("action", Words, nullable=False),
        sa.Column("resource_pattern", Words, nullable=False),
        sa.Column("effect", sa.String(8), nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("conditions", sa.JSON, nullable=True),
        sa.Column("created_at", Time, nullable=False),
        sa.Column("updated_at", Time, nullable=False),
        sa.Column("updated_by", Words, nullable=False),
        sa.CheckConstraint("effect IN ('allow', 'deny')", name="effect_known"),
        sa.CheckConstraint(
            "subject_type IN ('system', 'user', 'group', 'project', 'task', 'agent')",
            name="subject_type_known",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_orchestrator_access_rules"),
    )
    op.bulk_insert(
        rules,
        [
            {
                "id": "00000000-0000-4000-8000-0000000000f1",
                "subject_type": "system",
                "subject_id": "",
                "action": "mcp.tool.invoke",
                "resource_pattern": "*",
                "effect": "allow",
                "priority": 0,
                "created_at": SINCE,
                "updated_at": SINCE,
                "updated_by": "toolgate",
            }
        ],
    )

"""People, projects, tasks, jobs, system settings and preferences."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

Words = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Id = sa.String(36).with_variant(sa.String(36, collation="C"), "postgresql")
Sequence = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Time = sa.String(27)


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "orchestrator_groups",
        sa.Column("id", Words, nullable=False),
        sa.Column("display_name", Words, nullable=False),
        sa.Column("created_at", Time, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_orchestrator_groups"),
    )
    op.create_table(
        "orchestrator_preferences",
        sa.Column("scope_type", sa.String(8), nullable=False),
        sa.Column("scope_id", Words, nullable=False),
        sa.Column("key", Words, nullable=False),
        sa.Column("value", Words, nullable=False),
        sa.Column("value_type", sa.String(8), nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("version", Sequence, nullable=False),
        sa.Column("deleted", sa.Boolean, nullable=False),
        sa.Column("updated_at", Time, nullable=False),
        sa.Column("updated_by", Words, nullable=False),
        sa.CheckConstraint(
            "scope_type IN ('system', 'user', 'group', 'project', 'task')", name="scope_type_known"
        ),
        sa.CheckConstraint(
            "value_type IN ('string', 'number', 'boolean', 'object', 'array')",
            name="value_type_known",
        ),
        sa.PrimaryKeyConstraint(
            "scope_type", "scope_id", "key", name="pk_orchestrator_preferences"
        ),
    )
    op.create_table(
        "orchestrator_record_history",
        sa.Column("seq", Sequence, autoincrement=True, nullable=False),
        sa.Column("scope_type", sa.String(8), nullable=False),
        sa.Column("scope_id", Words, nullable=False),
        sa.Column("key", Words, nullable=False),
        sa.Column("version", Sequence, nullable=False),
        sa.Column("old", Words, nullable=True),
        sa.Column("new", Words, nullable=True),
        sa.Column("changed_by", Words, nullable=False),
        sa.Column("reason", Words, nullable=True),
        sa.Column("changed_at", Time, nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_orchestrator_record_history"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_orchestrator_record_history_scope_type_scope_id_key_seq",
        "orchestrator_record_history",
        ["scope_type", "scope_id", "key", "seq"],
    )
    op.create_table(
        "orchestrator_settings",
        sa.Column("key", Words, nullable=False),
        sa.Column("value", Words, nullable=False),
        sa.Column("value_type", sa.String(8), nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("version", Sequence, nullable=False),
        sa.Column("deleted", sa.Boolean, nullable=False),
        sa.Column("updated_at", Time, nullable=False),
        sa.Column("updated_by", Words, nullable=False),
        sa.CheckConstraint(
            "value_type IN ('string', 'number', 'boolean', 'object', 'array')",
            name="value_type_known",
        ),
        sa.PrimaryKeyConstraint("key", name="pk_orchestrator_settings"),
    )
    op.create_table(
        "orchestrator_skill_versions",
        sa.Column("skill_id", Id, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("name", Words, nullable=False),
        sa.Column("content", Words, nullable=False),
        sa.Column("scope", sa.String(8), nullable=False),
        sa.Column("scope_id", Words, nullable=False),
        sa.Column("changed_by", Words, nullable=False),
        sa.Column("changed_at", Time, nullable=False),
        sa.PrimaryKeyConstraint("skill_id", "version", name="pk_orchestrator_skill_versions"),
    )
    op.create_table(
        "orchestrator_users",
        sa.Column("id", Words, nullable=False),
        sa.Column("display_name", Words, nullable=False),
        sa.Column("created_at", Time, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_orchestrator_users"),
    )
    op.create_table(
        "orchestrator_members",
        sa.Column("user_id", Words, nullable=False),
        sa.Column("group_id", Words, nullable=False),
        sa.ForeignKeyConstraint(
            ["group_id"], ["orchestrator_groups.id"], name="fk_orchestrator_members_group_id"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["orchestrator_users.id"], name="fk_orchestrator_members_user_id"
        ),
        sa.PrimaryKeyConstraint("user_id", "group_id", name="pk_orchestrator_members"),
    )
    op.create_index("ix_orchestrator_members_group_id", "orchestrator_members", ["group_id"])
    op.create_table(
        "orchestrator_projects",
        sa.Column("id", Id, nullable=False),
        sa.Column("slug", Words, nullable=False),
        sa.Column("display_name", Words, nullable=False),
        sa.Column("description", Words, nullable=True),
        sa.Column("folded", Words, nullable=False),
        sa.Column("is_active", sa.Boolean, nullable=False),
        sa.Column("default_of", Words, nullable=True),
        sa.Column("created_at", Time, nullable=False),
        sa.Column("updated_at", Time, nullable=False),
        sa.ForeignKeyConstraint(
            ["default_of"], ["orchestrator_users.id"], name="fk_orchestrator_projects_default_of"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_orchestrator_projects"),
        sa.UniqueConstraint("default_of", name="uq_orchestrator_projects_default_of"),
        sa.UniqueConstraint("slug", name="uq_orchestrator_projects_slug"),
    )
    op.create_table(
        "orchestrator_skills",
        sa.Column("id", Id, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("name", Words, nullable=False),
        sa.Column("content", Words, nullable=False),
        sa.Column("scope", sa.String(8), nullable=False),
        sa.Column("scope_id", Words, nullable=False),
        sa.Column("owner_id", Words, nullable=True),
        sa.Column("quarantine", sa.JSON, nullable=True),
        sa.Column("created_at", Time, nullable=False),
        sa.Column("updated_at", Time, nullable=False),
        sa.CheckConstraint("scope IN ('user', 'group', 'project', 'global')", name="scope_known"),
        sa.ForeignKeyConstraint(
            ["owner_id"], ["orchestrator_users.id"], name="fk_orchestrator_skills_owner_id"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_orchestrator_skills"),
    )
    op.create_index(
        "ix_orchestrator_skills_scope_scope_id_updated_at_id",
        "orchestrator_skills",
        ["scope", "scope_id", "updated_at", "id"],
    )
    op.create_table(
        "orchestrator_role_bindings",
        sa.Column("subject_type", sa.String(8), nullable=False),
        sa.Column("subject_id", Words, nullable=False),
        sa.Column("project_id", Id, nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.CheckConstraint(
            "role IN ('owner', 'admin', 'operator', 'member', 'viewer')", name="role_known"
        ),
        sa.CheckConstraint("subject_type IN ('user', 'group')", name="subject_type_known"),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["orchestrator_projects.id"],
            name="fk_orchestrator_role_bindings_project_id",
        ),
        sa.PrimaryKeyConstraint(
            "subject_type", "subject_id", "project_id", name="pk_orchestrator_role_bindings"
        ),
    )
    op.create_index(
        "ix_orchestrator_role_bindings_project_id", "orchestrator_role_bindings", ["project_id"]
    )
    op.create_table(
        "orchestrator_tasks",
        sa.Column("id", Id, nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("prompt", Words, nullable=False),
        sa.Column("summary", Words, nullable=True),
        sa.Column("acceptance_criteria", sa.JSON, nullable=True),
        sa.Column("created_by", Words, nullable=True),
        sa.Column("project_id", Id, nullable=True),
        sa.Column("plan_id", Id, nullable=True),
        sa.Column("status_reason", Words, nullable=True),
        sa.Column("created_at", Time, nullable=False),
        sa.Column("updated_at", Time, nullable=False),
        sa.CheckConstraint(
            "status IN ('pending', 'running', 'completed', 'failed', 'canceled', 'superseded')",
            name="status_known",
        ),
        sa.ForeignKeyConstraint(
            ["created_by"], ["orchestrator_users.id"], name="fk_orchestrator_tasks_created_by"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["orchestrator_projects.id"], name="fk_orchestrator_tasks_project_id"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_orchestrator_tasks"),
    )
    op.create_index(
        "ix_orchestrator_tasks_created_by_created_at_id",
        "orchestrator_tasks",
        ["created_by", "created_at", "id"],
    )
    op.create_index(
        "ix_orchestrator_tasks_project_id_created_at_id",
        "orchestrator_tasks",
        ["project_id", "created_at", "id"],
    )
    op.create_table(
        "orchestrator_jobs",
        sa.Column("id", Id, nullable=False),
        sa.Column("task_id", Id, nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("node_id", Words, nullable=True),
        sa.Column("payload", sa.JSON, nullable=True),
        sa.Column("result", sa.JSON, nullable=True),
        sa.Column("lease_expires_at", Time, nullable=True),
        sa.Column("started_at", Time, nullable=True),
        sa.Column("ended_at", Time, nullable=True),
        sa.Column("created_at", Time, nullable=False),
        sa.Column("updated_at", Time, nullable=False),
        sa.CheckConstraint(
            "status IN ('queued', 'running', 'completed', 'failed', 'canceled', 'lease_expired')",
            name="status_known",
        ),
        sa.ForeignKeyConstraint(
            ["task_id"], ["orchestrator_tasks.id"], name="fk_orchestrator_jobs_task_id"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_orchestrator_jobs"),
    )
    op.create_index(
        "ix_orchestrator_jobs_task_id_created_at_id",
        "orchestrator_jobs",
        ["task_id", "created_at", "id"],
    )
    op.create_table(
        "orchestrator_task_dependencies",
        sa.Column("task_id", Id, nullable=False),
        sa.Column("depends_on", Id, nullable=False),
        sa.ForeignKeyConstraint(
            ["depends_on"],
            ["orchestrator_tasks.id"],
            name="fk_orchestrator_task_dependencies_depends_on",
        ),
        sa.ForeignKeyConstraint(
            ["task_id"], ["orchestrator_tasks.id"], name="fk_orchestrator_task_dependencies_task_id"
        ),
        sa.PrimaryKeyConstraint("task_id", "depends_on", name="pk_orchestrator_task_dependencies"),
    )
    op.create_index(
        "ix_orchestrator_task_dependencies_depends_on",
        "orchestrator_task_dependencies",
        ["depends_on"],
    )

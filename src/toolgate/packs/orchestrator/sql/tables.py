"""Tables of pack `orchestrator`: people, projects, tasks, jobs, records, skills, nodes and models.

Text is ordered by code point on both databases, and so compared by bytes. A setting or preference
that is deleted keeps its row, marked as deleted: created again, it goes on with the next version.
"""

from sqlalchemy import (
    JSON,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    false,
)

from toolgate.db.records import PACK
from toolgate.db.tables import NAMES, Sequence, Time
from toolgate.packs.orchestrator.access_rules import RULE_EFFECTS, SUBJECT_TYPES
from toolgate.packs.orchestrator.pack import ORCHESTRATOR
from toolgate.packs.orchestrator.vocabulary import (
    ACK_STATUSES,
    ARTIFACT_TYPES,
    AVAILABILITY_STATUSES,
    JOB_STATUSES,
    MEMBER_ROLES,
    SCOPE_TYPES,
    SKILL_SCOPES,
    TASK_STATUSES,
    VALUE_TYPES,
)

metadata = MetaData(naming_convention=NAMES, info={PACK: ORCHESTRATOR.name})

Words = Text().with_variant(Text(collation="C"), "postgresql")
Id = String(36).with_variant(String(36, collation="C"), "postgresql")
Ulid = String(26).with_variant(String(26, collation="C"), "postgresql")


def _one_of(column: str, values: tuple[str, ...]) -> CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=f"{column}_known")


users = Table(
    "orchestrator_users",
    metadata,
    Column("id", Words, primary_key=True),
    Column("display_name", Words, nullable=False),
    Column("created_at", Time, nullable=False),
)

groups = Table(
    "orchestrator_groups",
    metadata,
    Column("id", Words, primary_key=True),
    Column("display_name", Words, nullable=False),
    Column("created_at", Time, nullable=False),
)

members = Table(
    "orchestrator_members",
    metadata,
    Column("user_id", Words, ForeignKey("orchestrator_users.id"), primary_key=True),
    Column("group_id", Words, ForeignKey("orchestrator_groups.id"), primary_key=True),
    Index(None, "group_id"),
)

projects = Table(
    "orchestrator_projects",
    metadata,
    Column("id", Id, primary_key=True),
    Column("slug", Words, nullable=False, unique=True),
    Column("display_name", Words, nullable=False),
    Column("description", Words),
    # Slug, name and description as searches compare them.
    Column("folded", Words, nullable=False),
    Column("is_active", Boolean, nullable=False),
    # The user whose default project it is.
    Column("default_of", Words, ForeignKey("orchestrator_users.id"), unique=True),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time, nullable=False),
)

bindings = Table(
    "orchestrator_role_bindings",
    metadata,
    # `user` or `group`.
    Column("subject_type", String(8), primary_key=True),
    Column("subject_id", Words, primary_key=True),
    Column("project_id", Id, ForeignKey("orchestrator_projects.id"), primary_key=True),
    Column("role", String(16), nullable=False),
    Index(None, "project_id"),
    _one_of("subject_type", ("user", "group")),
    _one_of("role", MEMBER_ROLES),
)

tasks = Table(
    "orchestrator_tasks",
    metadata,
    Column("id", Id, primary_key=True),
    Column("status", String(16), nullable=False),
    Column("prompt", Words, nullable=False),
    Column("summary", Words),
    Column("acceptance_criteria", JSON),
    Column("created_by", Words, ForeignKey("orchestrator_users.id")),
    Column("project_id", Id, ForeignKey("orchestrator_projects.id")),
    Column("plan_id", Id),
    Column("status_reason", Words),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time, nullable=False),
    Index(None, "created_by", "created_at", "id"),
    Index(None, "project_id", "created_at", "id"),
    Index(None, "created_at", "id"),
    _one_of("status", TASK_STATUSES),
)

dependencies = Table(
    "orchestrator_task_dependencies",
    metadata,
    Column("task_id", Id, ForeignKey("orchestrator_tasks.id"), primary_key=True),
    Column("depends_on", Id, ForeignKey("orchestrator_tasks.id"), primary_key=True),
    Index(None, "depends_on"),
)

jobs = Table(
    "orchestrator_jobs",
    metadata,
    Column("id", Id, primary_key=True),
    Column("task_id", Id, ForeignKey("orchestrator_tasks.id"), nullable=False),
    Column("status", String(16), nullable=False),
    Column("node_id", Words),
    Column("payload", JSON),
    Column("result", JSON),
    Column("lease_expires_at", Time),
    Column("started_at", Time),
    Column("ended_at", Time),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time, nullable=False),
    Index(None, "task_id", "created_at", "id"),
    Index(None, "created_at", "id"),
    _one_of("status", JOB_STATUSES),
)


def _versioned(name: str, *keys: "Column[str]") -> Table:
    """A table of records that are changed by comparing their version."""
    return Table(
        name,
        metadata,
        *keys,
        Column("key", Words, primary_key=True),
        # JSON as it was given; `size` is its number of bytes.
        Column("value", Words, nullable=False),
        Column("value_type", String(8), nullable=False),
        Column("size", Integer, nullable=False),
        Column("version", Sequence, nullable=False),
        Column("deleted", Boolean, nullable=False),
        Column("updated_at", Time, nullable=False),
        Column("updated_by", Words, nullable=False),
        # Whose share of a quota the value takes; NULL where an older version stored it.
        Column("owner", Words),
        _one_of("value_type", VALUE_TYPES),
    )


settings = _versioned("orchestrator_settings")
preferences = _versioned(
    "orchestrator_preferences",
    Column("scope_type", String(8), primary_key=True),
    # Empty for scope `system`: in a unique key two NULLs differ.
    Column("scope_id", Words, primary_key=True),
)
preferences.append_constraint(_one_of("scope_type", SCOPE_TYPES))

OLDEST = "ix_orchestrator_record_history_oldest"
"""Made of its columns, its name would be too long for PostgreSQL."""
history = Table(
    "orchestrator_record_history",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=True),
    # `setting`, or the scope of a preference.
    Column("scope_type", String(8), nullable=False),
    Column("scope_id", Words, nullable=False),
    Column("key", Words, nullable=False),
    Column("version", Sequence, nullable=False),
    # JSON; NULL before it was created and after it was deleted.
    Column("old", Words),
    Column("new", Words),
    # Of these values; NULL also where an older version noted the change.
    Column("old_type", String(8)),
    Column("new_type", String(8)),
    Column("changed_by", Words, nullable=False),
    Column("reason", Words),
    Column("changed_at", Time, nullable=False),
    # In characters.
    Column("size", Integer, nullable=False, server_default="0"),
    # Whether only admins change the key.
    Column("reserved", Boolean, nullable=False, server_default=false()),
    # One of the last changes of a key that is there, which others do not push out.
    Column("pinned", Boolean, nullable=False, server_default=false()),
    Index(None, "scope_type", "scope_id", "key", "seq"),
    Index(OLDEST, "scope_type", "scope_id", "reserved", "pinned", "seq"),
    sqlite_autoincrement=True,
)

history_sizes = Table(
    "orchestrator_history_sizes",
    metadata,
    Column("scope_type", String(8), primary_key=True),
    Column("scope_id", Words, primary_key=True),
    Column("reserved", Boolean, primary_key=True),
    # Of the changes that are not pinned, together.
    Column("characters", Sequence, nullable=False),
)

skills = Table(
    "orchestrator_skills",
    metadata,
    Column("id", Id, primary_key=True),
    # The newest; all are in `orchestrator_skill_versions`.
    Column("version", Integer, nullable=False),
    Column("name", Words, nullable=False),
    Column("content", Words, nullable=False),
    Column("scope", String(8), nullable=False),
    # The user, group or project; empty for `global`.
    Column("scope_id", Words, nullable=False),
    # NULL for the system's own, which nobody changes.
    Column("owner_id", Words, ForeignKey("orchestrator_users.id")),
    # What a later look found in it: nobody reads it until it is changed.
    Column("quarantine", JSON),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time, nullable=False),
    Index(None, "scope", "scope_id", "updated_at", "id"),
    _one_of("scope", SKILL_SCOPES),
)

skill_versions = Table(
    "orchestrator_skill_versions",
    metadata,
    # Versions outlive their skill.
    Column("skill_id", Id, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("name", Words, nullable=False),
    Column("content", Words, nullable=False),
    Column("scope", String(8), nullable=False),
    Column("scope_id", Words, nullable=False),
    Column("changed_by", Words, nullable=False),
    Column("changed_at", Time, nullable=False),
    # When the skill was deleted; its versions are forgotten some time after.
    Column("deleted_at", Time),
    Index(None, "deleted_at"),
    Index(None, "scope", "scope_id", "deleted_at"),
)

quarantined_texts = Table(
    "orchestrator_quarantined_texts",
    metadata,
    # Of a text that an operator put into quarantine; it outlives the skill.
    Column("digest", String(64), primary_key=True),
    Column("skill_id", Id, nullable=False),
    Column("quarantined_at", Time, nullable=False),
    Index(None, "skill_id"),
)

access_rules = Table(
    "orchestrator_access_rules",
    metadata,
    Column("id", Id, primary_key=True),
    Column("subject_type", String(8), nullable=False),
    # Empty for `system`, which is everybody.
    Column("subject_id", Words, nullable=False),
    Column("action", Words, nullable=False),
    Column("resource_pattern", Words, nullable=False),
    Column("effect", String(8), nullable=False),
    Column("priority", Integer, nullable=False),
    Column("conditions", JSON),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time, nullable=False),
    Column("updated_by", Words, nullable=False),
    _one_of("effect", RULE_EFFECTS),
    _one_of("subject_type", SUBJECT_TYPES),
    Index(None, "subject_type", "subject_id"),
    Index(None, "created_at", "id"),
)

nodes = Table(
    "orchestrator_nodes",
    metadata,
    Column("id", Id, primary_key=True),
    Column("slug", Words, nullable=False, unique=True),
    Column("display_name", Words, nullable=False),
    Column("worker_api_target_url", Words),
    # JSON, like `config` and `capabilities`.
    Column("metadata", Words, nullable=False),
    # Its status follows from this, from `last_seen_at` and from the clock.
    Column("drained", Boolean, nullable=False),
    Column("config", Words, nullable=False),
    Column("config_version", Ulid, nullable=False),
    # The version that the node spoke of last, and what it said.
    Column("config_ack_version", Ulid),
    Column("config_ack_at", Time),
    Column("config_ack_status", String(16)),
    Column("config_ack_error", Words),
    Column("last_seen_at", Time),
    Column("last_capability_at", Time),
    Column("capabilities", Words),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time, nullable=False),
    _one_of("config_ack_status", ACK_STATUSES),
)

availability = Table(
    "orchestrator_node_availability",
    metadata,
    Column("node_id", Id, ForeignKey("orchestrator_nodes.id"), primary_key=True),
    # `image` or `model`.
    Column("kind", String(8), primary_key=True),
    Column("name", Words, primary_key=True),
    # Empty where the node named none.
    Column("version", Words, primary_key=True),
    Column("status", String(16), nullable=False),
    Column("reported_at", Time, nullable=False),
    Index(None, "kind", "name", "node_id"),
    _one_of("kind", ("image", "model")),
    _one_of("status", AVAILABILITY_STATUSES),
)

models = Table(
    "orchestrator_models",
    metadata,
    Column("id", Id, primary_key=True),
    # As nodes report it.
    Column("name", Words, nullable=False, unique=True),
    Column("vendor", Words),
    Column("description", Words),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time, nullable=False),
)

model_versions = Table(
    "orchestrator_model_versions",
    metadata,
    Column("model_id", Id, ForeignKey("orchestrator_models.id"), primary_key=True),
    Column("version", Words, primary_key=True),
    # JSON.
    Column("capabilities", Words, nullable=False),
    Column("default_parameters", Words, nullable=False),
    Column("created_at", Time, nullable=False),
)

model_artifacts = Table(
    "orchestrator_model_artifacts",
    metadata,
    Column("id", Id, primary_key=True),
    Column("model_id", Id, nullable=False),
    Column("version", Words, nullable=False),
    Column("artifact_type", String(16), nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("size_bytes", Sequence, nullable=False),
    Column("cache_path", Words),
    Column("source_uri", Words),
    Column("created_at", Time, nullable=False),
    ForeignKeyConstraint(
        ["model_id", "version"],
        ["orchestrator_model_versions.model_id", "orchestrator_model_versions.version"],
    ),
    Index(None, "model_id", "version", "id"),
    _one_of("artifact_type", ARTIFACT_TYPES),
)

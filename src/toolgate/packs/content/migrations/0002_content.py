"""Pack `content`: projects, entities, relations, search performance, quotable blocks."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = None

# Ordered by code point, as in SQLite.
Words = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Id = sa.String(36).with_variant(sa.String(36, collation="C"), "postgresql")
Moment = sa.String(24).with_variant(sa.String(24, collation="C"), "postgresql")
RELATIONS = ", ".join(
    f"'{name}'"
    for name in (
        "GUIDE_USES_CONCEPT",
        "GUIDE_EXPLAINS_CONCEPT",
        "GUIDE_REFERENCES_SOURCE",
        "CONCEPT_RELATES_TO_CONCEPT",
        "CONCEPT_REFERENCES_SOURCE",
        "NEWS_DERIVED_FROM_SOURCE",
        "NEWS_REFERENCES_SOURCE",
        "NEWS_REFERENCES_CONCEPT",
        "PROJECT_IMPLEMENTS_CONCEPT",
        "PROJECT_REFERENCES_SOURCE",
        "PROJECT_HAS_GUIDE",
        "DISTRIBUTION_PROMOTES_GUIDE",
        "DISTRIBUTION_PROMOTES_CONCEPT",
        "DISTRIBUTION_PROMOTES_PROJECT",
        "DISTRIBUTION_PROMOTES_NEWS",
        "VIDEO_EXPLAINS_GUIDE",
        "VIDEO_EXPLAINS_CONCEPT",
        "VIDEO_EXPLAINS_PROJECT",
        "VIDEO_EXPLAINS_NEWS",
    )
)


def upgrade() -> None:
    """Create the tables."""
    _create_projects()
    _create_entities()
    _create_relations()
    _create_search_performance()
    _create_quotable_blocks()


def _create_projects() -> None:
    op.create_table(
        "content_projects",
        sa.Column("id", Id, nullable=False),
        sa.Column("slug", Words, nullable=False),
        sa.Column("name", Words, nullable=False),
        sa.Column("description", Words),
        sa.Column("created_at", Moment, nullable=False),
        sa.Column("updated_at", Moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_content_projects"),
        sa.UniqueConstraint("slug", name="uq_content_projects_slug"),
    )


def _create_entities() -> None:
    op.create_table(
        "content_entities",
        sa.Column("id", Id, nullable=False),
        sa.Column("project_id", Id, nullable=False),
        sa.Column("entity_type", sa.String(16), nullable=False),
        sa.Column("title", Words, nullable=False),
        sa.Column("slug", Words, nullable=False),
        sa.Column("summary", Words),
        sa.Column("difficulty", sa.String(16)),
        sa.Column("concept_kind", sa.String(16)),
        sa.Column("repo_url", Words),
        sa.Column("status", sa.String(32), nullable=False),
        sa.Column("canonical_url", Words),
        sa.Column("last_verified_at", Moment),
        sa.Column("created_at", Moment, nullable=False),
        sa.Column("updated_at", Moment, nullable=False),
        sa.Column("title_folded", Words, nullable=False),
        sa.Column("slug_folded", Words, nullable=False),
        sa.CheckConstraint(
            "concept_kind IN ('standard', 'model', 'comparison')", name="concept_kind_known"
        ),
        sa.CheckConstraint(
            "concept_kind IS NULL OR entity_type = 'concept'", name="kind_of_concept"
        ),
        sa.CheckConstraint(
            "difficulty IN ('beginner', 'intermediate', 'advanced')", name="difficulty_known"
        ),
        sa.CheckConstraint(
            "entity_type <> 'project' OR repo_url IS NOT NULL", name="project_has_repo"
        ),
        sa.CheckConstraint(
            "entity_type IN ('guide', 'concept', 'project', 'news')", name="entity_type_known"
        ),
        sa.CheckConstraint(
            "status IN ('draft', 'publish_requested', 'published', 'archived')", name="status_known"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["content_projects.id"], name="fk_content_entities_project_id"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_content_entities"),
        sa.UniqueConstraint(
            "project_id",
            "entity_type",
            "slug",
            name="uq_content_entities_project_id_entity_type_slug",
        ),
        sa.UniqueConstraint("project_id", "id", name="uq_content_entities_project_id_id"),
    )
    op.create_index(
        "ix_content_entities_project_id_created_at_id",
        "content_entities",
        ["project_id", "created_at", "id"],
    )


def _create_relations() -> None:
    op.create_table(
        "content_relations",
        sa.Column("id", Id, nullable=False),
        sa.Column("project_id", Id, nullable=False),
        sa.Column("relation_type", sa.String(64), nullable=False),
        sa.Column("from_type", sa.String(32), nullable=False),
        sa.Column("from_id", Id, nullable=False),
        sa.Column("to_type", sa.String(32), nullable=False),
        sa.Column("to_id", Id, nullable=False),
        sa.Column("from_entity", Id),
        sa.Column("to_entity", Id),
        sa.Column("notes", Words),
        sa.Column("created_at", Moment, nullable=False),
        sa.CheckConstraint(
            "(from_type IN ('guide', 'concept', 'project', 'news')) = (from_entity IS NOT NULL)",
            name="from_entity_named",
        ),
        sa.CheckConstraint(
            "(to_type IN ('guide', 'concept', 'project', 'news')) = (to_entity IS NOT NULL)",
            name="to_entity_named",
        ),
        sa.CheckConstraint(
            f"relation_type IN ({RELATIONS})",
            name="relation_type_known",
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "from_entity"],
            ["content_entities.project_id", "content_entities.id"],
            name="fk_content_relations_from",
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "to_entity"],
            ["content_entities.project_id", "content_entities.id"],
            name="fk_content_relations_to",
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["content_projects.id"], name="fk_content_relations_project_id"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_content_relations"),
        sa.UniqueConstraint(
            "project_id",
            "from_type",
            "from_id",
            "to_type",
            "to_id",
            "relation_type",
            name="uq_content_relations_edge",
        ),
    )
    op.create_index("ix_content_relations_from", "content_relations", ["project_id", "from_id"])
    op.create_index("ix_content_relations_to", "content_relations", ["project_id", "to_id"])


def _create_search_performance() -> None:
    op.create_table(
        "content_search_performance",
        sa.Column("id", Id, nullable=False),
        sa.Column("project_id", Id, nullable=False),
        sa.Column("entity_id", Id),
        sa.Column("page_url", Words, nullable=False),
        sa.Column("query", Words, nullable=False),
        sa.Column("impressions", sa.Integer(), nullable=False),
        sa.Column("clicks", sa.Integer(), nullable=False),
        sa.Column("ctr", sa.Float(), nullable=False),
        sa.Column("avg_position", sa.Float(), nullable=False),
        sa.Column("date_start", Moment, nullable=False),
        sa.Column("date_end", Moment, nullable=False),
        sa.Column("captured_at", Moment, nullable=False),
        sa.Column("query_folded", Words, nullable=False),
        sa.Column("page_url_folded", Words, nullable=False),
        sa.CheckConstraint("avg_position > 0", name="position_is_positive"),
        sa.CheckConstraint("clicks >= 0 AND clicks <= impressions", name="clicks_in_impressions"),
        sa.CheckConstraint("ctr >= 0 AND ctr <= 1", name="ctr_is_a_share"),
        sa.ForeignKeyConstraint(
            ["project_id", "entity_id"],
            ["content_entities.project_id", "content_entities.id"],
            name="fk_content_search_performance_entity",
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["content_projects.id"], name="fk_content_search_performance_project_id"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_content_search_performance"),
        sa.UniqueConstraint(
            "project_id",
            "query",
            "page_url",
            "date_start",
            "date_end",
            name="uq_content_search_performance_row",
        ),
    )
    op.create_index(
        "ix_content_search_performance_order",
        "content_search_performance",
        [
            "project_id",
            sa.literal_column("date_start DESC"),
            sa.literal_column("date_end DESC"),
            "query",
            "page_url",
            sa.literal_column("id DESC"),
        ],
    )


def _create_quotable_blocks() -> None:
    op.create_table(
        "content_quotable_blocks",
        sa.Column("id", Id, nullable=False),
        sa.Column("project_id", Id, nullable=False),
        sa.Column("entity_id", Id, nullable=False),
        sa.Column("text", Words, nullable=False),
        sa.Column("claim_type", sa.String(16), nullable=False),
        sa.Column("source_citation", Words),
        sa.Column("verified_until", Moment),
        sa.Column("topic_tag", Words),
        sa.Column("created_at", Moment, nullable=False),
        sa.Column("updated_at", Moment, nullable=False),
        sa.Column("topic_tag_folded", Words),
        sa.CheckConstraint(
            "claim_type IN ('statistic', 'comparison', 'definition', 'howto_step')",
            name="claim_type_known",
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "entity_id"],
            ["content_entities.project_id", "content_entities.id"],
            name="fk_content_quotable_blocks_entity",
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["content_projects.id"], name="fk_content_quotable_blocks_project_id"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_content_quotable_blocks"),
    )
    op.create_index(
        "ix_content_quotable_blocks_project_id_created_at_id",
        "content_quotable_blocks",
        ["project_id", "created_at", "id"],
    )

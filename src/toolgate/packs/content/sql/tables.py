"""Tables of pack `content`: projects, entities, relations, search performance, quotable blocks.

Text is ordered by code point on both databases. Columns that end in `_folded` hold the text as
substring searches compare it. `number` never changes: SQLite's full-text indexes name rows by it.
"""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from toolgate.db.tables import NAMES
from toolgate.packs.content.vocabulary import (
    CLAIM_TYPES,
    CONCEPT_KINDS,
    DIFFICULTIES,
    ENTITY_TYPES,
    RELATION_TYPES,
    STATUSES,
)

metadata = MetaData(naming_convention=NAMES)

Words = Text().with_variant(Text(collation="C"), "postgresql")
Id = String(36).with_variant(String(36, collation="C"), "postgresql")
Moment = String(24).with_variant(String(24, collation="C"), "postgresql")
Day = String(10).with_variant(String(10, collation="C"), "postgresql")


def _number() -> "Column[int]":
    kind = BigInteger().with_variant(Integer(), "sqlite")
    return Column("number", kind, Identity(), primary_key=True)


def _one_of(column: str, values: tuple[str, ...]) -> CheckConstraint:
    options = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({options})", name=f"{column}_known")


def _entity_ends(end: str) -> CheckConstraint:
    types = ", ".join(f"'{value}'" for value in ENTITY_TYPES)
    return CheckConstraint(
        f"({end}_type IN ({types})) = ({end}_entity IS NOT NULL)", name=f"{end}_entity_named"
    )


projects = Table(
    "content_projects",
    metadata,
    Column("id", Id, primary_key=True),
    Column("slug", Words, nullable=False, unique=True),
    Column("name", Words, nullable=False),
    Column("description", Words),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
)

entities = Table(
    "content_entities",
    metadata,
    _number(),
    Column("id", Id, nullable=False, unique=True),
    Column("project_id", Id, ForeignKey("content_projects.id"), nullable=False),
    Column("entity_type", String(16), nullable=False),
    Column("title", Words, nullable=False),
    Column("slug", Words, nullable=False),
    Column("summary", Words),
    Column("difficulty", String(16)),
    Column("concept_kind", String(16)),
    Column("repo_url", Words),
    Column("status", String(32), nullable=False),
    Column("canonical_url", Words),
    Column("last_verified_at", Moment),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Column("title_folded", Words, nullable=False),
    Column("slug_folded", Words, nullable=False),
    UniqueConstraint("project_id", "entity_type", "slug"),
    UniqueConstraint("project_id", "id"),
    Index(None, "project_id", "created_at", "id"),
    Index("ix_content_entities_type", "project_id", "entity_type", "created_at", "id"),
    Index("ix_content_entities_status", "project_id", "status", "created_at", "id"),
    Index("ix_content_entities_kind", "project_id", "concept_kind", "created_at", "id"),
    _one_of("entity_type", ENTITY_TYPES),
    _one_of("status", STATUSES),
    _one_of("difficulty", DIFFICULTIES),
    _one_of("concept_kind", CONCEPT_KINDS),
    CheckConstraint("concept_kind IS NULL OR entity_type = 'concept'", name="kind_of_concept"),
    CheckConstraint("entity_type <> 'project' OR repo_url IS NOT NULL", name="project_has_repo"),
)

relations = Table(
    "content_relations",
    metadata,
    Column("id", Id, primary_key=True),
    Column("project_id", Id, ForeignKey("content_projects.id"), nullable=False),
    Column("relation_type", String(64), nullable=False),
    Column("from_type", String(32), nullable=False),
    Column("from_id", Id, nullable=False),
    Column("to_type", String(32), nullable=False),
    Column("to_id", Id, nullable=False),
    # The ends once more where they are entities: the keys below keep them in the project.
    Column("from_entity", Id),
    Column("to_entity", Id),
    Column("notes", Words),
    Column("created_at", Moment, nullable=False),
    UniqueConstraint(
        "project_id",
        "from_type",
        "from_id",
        "to_type",
        "to_id",
        "relation_type",
        name="uq_content_relations_edge",
    ),
    ForeignKeyConstraint(
        ["project_id", "from_entity"],
        ["content_entities.project_id", "content_entities.id"],
        name="fk_content_relations_from",
    ),
    ForeignKeyConstraint(
        ["project_id", "to_entity"],
        ["content_entities.project_id", "content_entities.id"],
        name="fk_content_relations_to",
    ),
    Index("ix_content_relations_from", "project_id", "from_id"),
    Index("ix_content_relations_to", "project_id", "to_id"),
    _one_of("relation_type", RELATION_TYPES),
    _entity_ends("from"),
    _entity_ends("to"),
)

performance = Table(
    "content_search_performance",
    metadata,
    _number(),
    Column("id", Id, nullable=False, unique=True),
    Column("project_id", Id, ForeignKey("content_projects.id"), nullable=False),
    Column("entity_id", Id),
    Column("page_url", Words, nullable=False),
    Column("query", Words, nullable=False),
    Column("impressions", Integer, nullable=False),
    Column("clicks", Integer, nullable=False),
    Column("ctr", Float, nullable=False),
    Column("avg_position", Float, nullable=False),
    Column("date_start", Moment, nullable=False),
    Column("date_end", Moment, nullable=False),
    Column("captured_at", Moment, nullable=False),
    Column("query_folded", Words, nullable=False),
    Column("page_url_folded", Words, nullable=False),
    UniqueConstraint(
        "project_id",
        "query",
        "page_url",
        "date_start",
        "date_end",
        name="uq_content_search_performance_row",
    ),
    ForeignKeyConstraint(
        ["project_id", "entity_id"],
        ["content_entities.project_id", "content_entities.id"],
        name="fk_content_search_performance_entity",
    ),
    Index("ix_content_search_performance_entity", "project_id", "entity_id"),
    CheckConstraint(
        "clicks >= 0 AND clicks <= impressions AND impressions <= 2147483647",
        name="clicks_in_impressions",
    ),
    CheckConstraint("ctr >= 0 AND ctr <= 1", name="ctr_is_a_share"),
    # On PostgreSQL NaN is greater than every number.
    CheckConstraint("avg_position > 0 AND avg_position < 1e300", name="position_is_positive"),
)
Index(
    "ix_content_search_performance_order",
    performance.c.project_id,
    performance.c.date_start.desc(),
    performance.c.date_end.desc(),
    performance.c.query,
    performance.c.page_url,
    performance.c.id.desc(),
)

blocks = Table(
    "content_quotable_blocks",
    metadata,
    _number(),
    Column("id", Id, nullable=False, unique=True),
    Column("project_id", Id, ForeignKey("content_projects.id"), nullable=False),
    Column("entity_id", Id, nullable=False),
    Column("text", Words, nullable=False),
    Column("claim_type", String(16), nullable=False),
    Column("source_citation", Words),
    Column("verified_until", Moment),
    Column("topic_tag", Words),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Column("topic_tag_folded", Words),
    ForeignKeyConstraint(
        ["project_id", "entity_id"],
        ["content_entities.project_id", "content_entities.id"],
        name="fk_content_quotable_blocks_entity",
    ),
    Index(None, "project_id", "created_at", "id"),
    Index("ix_content_quotable_blocks_entity", "project_id", "entity_id"),
    Index("ix_content_quotable_blocks_claim", "project_id", "claim_type", "created_at", "id"),
    Index("ix_content_quotable_blocks_verified", "project_id", "verified_until"),
    _one_of("claim_type", CLAIM_TYPES),
)

# How many rows each list of each project has from each day; triggers keep it.
totals = Table(
    "content_totals",
    metadata,
    Column("project_id", Id, primary_key=True),
    Column("list", String(64), primary_key=True),
    Column("day", Day, primary_key=True),
    Column("total", BigInteger, nullable=False),
)

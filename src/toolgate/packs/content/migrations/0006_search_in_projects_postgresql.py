"""PostgreSQL's substring indexes know projects too, as SQLite's do since 0005."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

SEARCHED = {
    "content_entities": ("title_folded", "slug_folded"),
    "content_search_performance": ("query_folded", "page_url_folded"),
    "content_quotable_blocks": ("topic_tag_folded",),
}
PROJECT_END = '"right"(project_id, 3)'


def upgrade() -> None:
    """Make the indexes anew, where there can be any."""
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    if not connection.scalar(sa.text("SELECT 1 FROM pg_extension WHERE extname = 'pg_trgm'")):
        return
    for table, columns in SEARCHED.items():
        for column in columns:
            name = f"ix_{table}_{column}"
            op.execute(f"DROP INDEX IF EXISTS {name}")
            op.execute(
                f"CREATE INDEX {name} ON {table} "
                f"USING gin ({PROJECT_END} gin_trgm_ops, {column} gin_trgm_ops)"
            )

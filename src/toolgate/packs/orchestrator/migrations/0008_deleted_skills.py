"""Versions of deleted skills are kept for some time; for those of before, it begins now."""

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

TABLE = "orchestrator_skill_versions"
ORPHANS = sa.text(
    f"UPDATE {TABLE} SET deleted_at = :now WHERE NOT EXISTS "
    f"(SELECT 1 FROM orchestrator_skills WHERE orchestrator_skills.id = {TABLE}.skill_id)"
)


def upgrade() -> None:
    """Add the column and its index."""
    op.add_column(TABLE, sa.Column("deleted_at", sa.String(27)))
    op.create_index(f"ix_{TABLE}_deleted_at", TABLE, ["deleted_at"])
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    op.get_bind().execute(ORPHANS, {"now": now})

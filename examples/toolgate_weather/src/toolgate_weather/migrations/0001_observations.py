import sqlalchemy as sa
from alembic import op

revision, down_revision = "0001", None


def upgrade() -> None:
    op.create_table(
        "weather_observations",
        sa.Column("city", sa.String(100), primary_key=True),
        sa.Column("celsius", sa.Float, nullable=False),
    )

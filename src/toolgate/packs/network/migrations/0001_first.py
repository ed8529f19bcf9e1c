"""The line of this pack's migrations begins; documents and trees need no table of its own."""

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Nothing yet."""

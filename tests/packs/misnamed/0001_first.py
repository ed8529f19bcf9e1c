"""As it should be."""

revision: str = "0001"
down_revision = None

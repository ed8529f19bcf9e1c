"""On SQLite, what `INSERT OR REPLACE` does to credentials is noted too.

It fires no trigger of a deletion. PostgreSQL has no such statement; there, a conflict is an update.
"""

from alembic import op

revision = "0021"
down_revision = "0020"

NOTED = [("key", "keys"), ("grant", "oauth_grants"), ("token", "oauth_tokens")]


def upgrade() -> None:
    """A new credential is not noted: nobody remembers it."""
    if op.get_context().dialect.name != "sqlite":
        return
    for kind, table in NOTED:
        op.execute(
            f"CREATE TRIGGER {table}_credentials_on_replace BEFORE INSERT ON {table} FOR EACH ROW "
            f"WHEN EXISTS (SELECT 1 FROM {table} WHERE id = NEW.id) "
            f"BEGIN INSERT INTO credential_changes (name) VALUES ('{kind}:' || NEW.id); END"
        )

"""What happens to credentials is noted, by triggers, in the transaction that does it."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"

NUMBER = "CAST(CAST(pg_current_xact_id() AS text) AS bigint)"
OF_USERS = "{row}.namespace = 'backend' AND {row}.collection = 'users'"
# The kind of what is noted, its table, the event, the row that has its id, and which rows.
NOTED = [
    ("key", "keys", "UPDATE", "OLD", ""),
    ("key", "keys", "DELETE", "OLD", ""),
    ("grant", "oauth_grants", "UPDATE", "OLD", ""),
    ("grant", "oauth_grants", "DELETE", "OLD", ""),
    ("token", "oauth_tokens", "UPDATE", "OLD", "OLD.kind = 'access'"),
    ("token", "oauth_tokens", "DELETE", "OLD", "OLD.kind = 'access'"),
    ("user", "documents", "INSERT", "NEW", OF_USERS.format(row="NEW")),
    ("user", "documents", "UPDATE", "OLD", OF_USERS.format(row="OLD")),
    ("user", "documents", "DELETE", "OLD", OF_USERS.format(row="OLD")),
]
FUNCTION = """
CREATE OR REPLACE FUNCTION note_credential_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    row_id text := CASE WHEN TG_OP = 'INSERT' THEN NEW.id ELSE OLD.id END;
BEGIN
    EXECUTE format(
        'INSERT INTO %I.credential_changes (transaction_id, name) VALUES ({number}, $1)',
        TG_TABLE_SCHEMA
    ) USING TG_ARGV[0] || ':' || row_id;
    RETURN NULL;
END $$
"""


def upgrade() -> None:
    """One row for each change; old ones are deleted by who follows them."""
    op.create_table(
        "credential_changes",
        sa.Column(
            "seq",
            sa.BigInteger().with_variant(sa.Integer, "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("transaction_id", sa.BigInteger),
        sa.Column("name", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_credential_changes"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_credential_changes_transaction_id",
        "credential_changes",
        ["transaction_id"],
        sqlite_where=sa.text("transaction_id IS NOT NULL"),
    )
    postgresql = op.get_context().dialect.name == "postgresql"
    if postgresql:
        op.execute(FUNCTION.format(number=NUMBER))
    for kind, table, event, row, which in NOTED:
        name = f"{table}_credentials_on_{event.lower()}"
        when = f"WHEN ({which})" if which else ""
        does = (
            f"EXECUTE FUNCTION note_credential_change('{kind}')"
            if postgresql
            else f"BEGIN INSERT INTO credential_changes (name) VALUES ('{kind}:' || {row}.id); END"
        )
        op.execute(f"CREATE TRIGGER {name} AFTER {event} ON {table} FOR EACH ROW {when} {does}")

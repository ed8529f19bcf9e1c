"""Whose share of a quota a value takes, and how much of the history is kept by scope.

For values of before, nobody's share is known: they count for the scope alone. Their history is
counted now.
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

HISTORY, SIZES = "orchestrator_record_history", "orchestrator_history_sizes"
VERSIONS = "orchestrator_skill_versions"
Words = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Sequence = sa.BigInteger().with_variant(sa.Integer, "sqlite")

RESERVED = {
    "setting": ("mcp", "agents", "security", "access"),
    "preference": ("standards", "security", "model_routing", "agents"),
}
SAME = {
    "orchestrator_settings": f"{HISTORY}.scope_type = 'setting'",
    "orchestrator_preferences": (
        f"r.scope_type = {HISTORY}.scope_type AND r.scope_id = {HISTORY}.scope_id"
    ),
}
CHANGE_CHARACTERS, PINNED_VERSIONS, PINNED_CHARACTERS = 200, 3, 2_000


def upgrade() -> None:
    """Add the columns, the table and the indexes, and count what there is."""
    for table in SAME:
        op.add_column(table, sa.Column("owner", Words))
    op.add_column(HISTORY, sa.Column("size", sa.Integer, nullable=False, server_default="0"))
    for name in ("reserved", "pinned"):
        new = sa.Column(name, sa.Boolean, nullable=False, server_default=sa.false())
        op.add_column(HISTORY, new)
    ledger = ["scope_type", "scope_id", "reserved"]
    index = [*ledger, "pinned", "seq"]
    op.create_index(f"ix_{HISTORY}_oldest", HISTORY, index)
    of_scope = ["scope", "scope_id", "deleted_at"]
    op.create_index(f"ix_{VERSIONS}_{'_'.join(of_scope)}", VERSIONS, of_scope)
    op.create_table(
        SIZES,
        sa.Column("scope_type", sa.String(8), nullable=False),
        sa.Column("scope_id", Words, nullable=False),
        sa.Column("reserved", sa.Boolean, nullable=False),
        sa.Column("characters", Sequence, nullable=False),
        sa.PrimaryKeyConstraint(*ledger, name=f"pk_{SIZES}"),
    )
    _count()


def _count() -> None:
    texts = " + ".join(f"length(coalesce({name}, ''))" for name in ("old", "new", "reason"))
    _run(f"UPDATE {HISTORY} SET size = {CHANGE_CHARACTERS} + {texts}")
    for kind, names in RESERVED.items():
        of_kind = "=" if kind == "setting" else "<>"
        for name in names:
            begin = f"substr(key, 1, {len(name) + 1}) = '{name}.'"
            _run(
                f"UPDATE {HISTORY} SET reserved = true "
                f"WHERE scope_type {of_kind} 'setting' AND (key = '{name}' OR {begin})"
            )
    for table, same in SAME.items():
        newest = f"{HISTORY}.version > r.version - {PINNED_VERSIONS}"
        _run(
            f"UPDATE {HISTORY} SET pinned = true "
            f"WHERE size <= {PINNED_CHARACTERS} AND new IS NOT NULL AND EXISTS "
            f"(SELECT 1 FROM {table} r WHERE r.key = {HISTORY}.key AND {same} "
            f"AND NOT r.deleted AND {newest})"
        )
    _run(
        f"INSERT INTO {SIZES} (scope_type, scope_id, reserved, characters) "
        f"SELECT scope_type, scope_id, reserved, sum(size) FROM {HISTORY} "
        "WHERE NOT pinned GROUP BY scope_type, scope_id, reserved"
    )


def _run(statement: str) -> None:
    op.execute(sa.text(statement))

"""Content at a million rows: numbers, totals, indexes of the filters, indexes of substrings.

Rows get a number that stays the same (SQLite's own row number may change when the file is
vacuumed), because SQLite's full-text index names rows by number. Triggers keep how many rows each
list of each project has from each day, and on SQLite the full-text indexes.
"""

import re

import sqlalchemy as sa
from alembic import op
from sqlalchemy.exc import DBAPIError

revision = "0003"
down_revision = "0002"

ENTITIES, RELATIONS = "content_entities", "content_relations"
PERFORMANCE, BLOCKS = "content_search_performance", "content_quotable_blocks"
NUMBERED = (ENTITIES, PERFORMANCE, BLOCKS)
SEARCHED = {
    ENTITIES: ("title_folded", "slug_folded"),
    PERFORMANCE: ("query_folded", "page_url_folded"),
    BLOCKS: ("topic_tag_folded",),
}
DATED = {ENTITIES: "created_at", PERFORMANCE: "date_start", BLOCKS: "created_at"}
DAY = 10  # characters of a moment
INDEXES = {
    "ix_content_entities_type": (ENTITIES, ["project_id", "entity_type", "created_at", "id"]),
    "ix_content_entities_status": (ENTITIES, ["project_id", "status", "created_at", "id"]),
    "ix_content_entities_kind": (ENTITIES, ["project_id", "concept_kind", "created_at", "id"]),
    "ix_content_search_performance_entity": (PERFORMANCE, ["project_id", "entity_id"]),
    "ix_content_quotable_blocks_entity": (BLOCKS, ["project_id", "entity_id"]),
    "ix_content_quotable_blocks_claim": (
        BLOCKS,
        ["project_id", "claim_type", "created_at", "id"],
    ),
    "ix_content_quotable_blocks_verified": (BLOCKS, ["project_id", "verified_until"]),
}
CHECKS = {
    "clicks_in_impressions": (
        "clicks >= 0 AND clicks <= impressions",
        "clicks >= 0 AND clicks <= impressions AND impressions <= 2147483647",
    ),
    # On PostgreSQL NaN is greater than every number.
    "position_is_positive": ("avg_position > 0", "avg_position > 0 AND avg_position < 1e300"),
}


def upgrade() -> None:
    """Number the rows, count them, index them."""
    _create_totals()
    if op.get_bind().dialect.name == "sqlite":
        _rebuild_sqlite()
    else:
        _alter_postgresql()
    for name, (table, columns) in INDEXES.items():
        op.create_index(name, table, columns)
    for table in NUMBERED:
        op.execute(
            f"INSERT INTO content_totals SELECT project_id, '{table}', "
            f"substr({DATED[table]}, 1, {DAY}), count(*) FROM {table} "
            f"GROUP BY project_id, substr({DATED[table]}, 1, {DAY})"
        )
    if op.get_bind().dialect.name == "sqlite":
        _follow_sqlite()
    else:
        _follow_postgresql()


def _create_totals() -> None:
    op.create_table(
        "content_totals",
        sa.Column("project_id", _text(36), nullable=False),
        sa.Column("list", sa.String(64), nullable=False),
        sa.Column("day", _text(DAY), nullable=False),
        sa.Column("total", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("project_id", "list", "day", name="pk_content_totals"),
    )


def _text(length: int) -> sa.types.TypeEngine[str]:
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


# SQLite


def _rebuild_sqlite() -> None:
    """SQLite cannot change a primary key: every table is made anew from its own definition."""
    connection = op.get_bind()
    tables = (ENTITIES, RELATIONS, PERFORMANCE, BLOCKS)
    asked = sa.text("SELECT sql FROM sqlite_master WHERE tbl_name = :table AND sql IS NOT NULL")
    definitions = {table: connection.scalars(asked, {"table": table}).all() for table in tables}
    for table in tables:
        op.execute(f"CREATE TABLE {table}_before AS SELECT * FROM {table} ORDER BY rowid")
    for table in reversed(tables):
        op.execute(f"DROP TABLE {table}")
    for table, statements in definitions.items():
        columns = [one["name"] for one in sa.inspect(connection).get_columns(f"{table}_before")]
        for statement in statements:
            connection.exec_driver_sql(_numbered(table, statement))
        listed = ", ".join(columns)
        op.execute(f"INSERT INTO {table} ({listed}) SELECT {listed} FROM {table}_before")
        op.execute(f"DROP TABLE {table}_before")


def _numbered(table: str, definition: str) -> str:
    if table not in NUMBERED or not definition.startswith("CREATE TABLE"):
        return definition
    for before, after in CHECKS.values():
        definition = definition.replace(f"({before})", f"({after})")
    unique = f"CONSTRAINT uq_{table}_id UNIQUE (id)"
    definition = definition.replace(f"CONSTRAINT pk_{table} PRIMARY KEY (id)", unique)
    return re.sub(r"\(", "(\n\tnumber INTEGER NOT NULL PRIMARY KEY,", definition, count=1)


def _follow_sqlite() -> None:
    for table, columns in SEARCHED.items():
        listed = ", ".join(columns)
        op.execute(
            f"CREATE VIRTUAL TABLE {table}_fts USING fts5({listed}, content='{table}', "
            "content_rowid='number', tokenize='trigram case_sensitive 1', detail=column)"
        )
        op.execute(f"INSERT INTO {table}_fts({table}_fts) VALUES ('rebuild')")
        new = _indexed(table, columns) + _counted(table, "new", 1)
        old = _unindexed(table, columns) + _counted(table, "old", -1)
        changed = ", ".join(("project_id", DATED[table], *columns))
        for event, work in (
            ("INSERT", new),
            ("DELETE", old),
            (f"UPDATE OF {changed}", old + new),
        ):
            name = f"{table}_on_{event.split()[0].lower()}"
            op.execute(f"CREATE TRIGGER {name} AFTER {event} ON {table} BEGIN {work} END")


def _indexed(table: str, columns: tuple[str, ...]) -> str:
    values = ", ".join(f"new.{column}" for column in columns)
    listed = ", ".join(columns)
    return f"INSERT INTO {table}_fts(rowid, {listed}) VALUES (new.number, {values}); "


def _unindexed(table: str, columns: tuple[str, ...]) -> str:
    values = ", ".join(f"old.{column}" for column in columns)
    listed = ", ".join(columns)
    return (
        f"INSERT INTO {table}_fts({table}_fts, rowid, {listed}) "
        f"VALUES ('delete', old.number, {values}); "
    )


def _counted(table: str, row: str, step: int) -> str:
    return (
        f"INSERT INTO content_totals VALUES ({row}.project_id, '{table}', "
        f"substr({row}.{DATED[table]}, 1, {DAY}), {step}) "
        "ON CONFLICT (project_id, list, day) DO UPDATE SET total = total + excluded.total; "
    )


# PostgreSQL


def _alter_postgresql() -> None:
    for table in NUMBERED:
        op.execute(f"ALTER TABLE {table} DROP CONSTRAINT pk_{table}")
        op.execute(
            f"ALTER TABLE {table} ADD COLUMN number BIGINT GENERATED BY DEFAULT AS IDENTITY, "
            f"ADD CONSTRAINT pk_{table} PRIMARY KEY (number), "
            f"ADD CONSTRAINT uq_{table}_id UNIQUE (id)"
        )
    for name, (_, check) in CHECKS.items():
        op.execute(f"ALTER TABLE {PERFORMANCE} DROP CONSTRAINT {name}")
        op.execute(f"ALTER TABLE {PERFORMANCE} ADD CONSTRAINT {name} CHECK ({check})")


COUNTED = """
CREATE FUNCTION content_counted() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    counting CONSTANT text := 'INSERT INTO content_totals '
        'SELECT project_id, $1, substr(%I, 1, 10), $2 * count(*) FROM %I GROUP BY 1, 3 '
        'ON CONFLICT (project_id, list, day) '
        'DO UPDATE SET total = content_totals.total + excluded.total';
BEGIN
    IF TG_OP IN ('INSERT', 'UPDATE') THEN
        EXECUTE format(counting, TG_ARGV[0], 'added') USING TG_TABLE_NAME, 1;
    END IF;
    IF TG_OP IN ('DELETE', 'UPDATE') THEN
        EXECUTE format(counting, TG_ARGV[0], 'removed') USING TG_TABLE_NAME, -1;
    END IF;
    IF TG_OP = 'TRUNCATE' THEN
        DELETE FROM content_totals WHERE list = TG_TABLE_NAME;
    END IF;
    RETURN NULL;
END $$
"""
SEEN = {
    "INSERT": "REFERENCING NEW TABLE AS added",
    "DELETE": "REFERENCING OLD TABLE AS removed",
    "UPDATE": "REFERENCING OLD TABLE AS removed NEW TABLE AS added",
    "TRUNCATE": "",
}


def _follow_postgresql() -> None:
    op.execute(COUNTED)
    for table in NUMBERED:
        for event, seen in SEEN.items():
            op.execute(
                f"CREATE TRIGGER {table}_on_{event.lower()} AFTER {event} ON {table} {seen} "
                f"FOR EACH STATEMENT EXECUTE FUNCTION content_counted('{DATED[table]}')"
            )
    _index_substrings()


def _index_substrings() -> None:
    """Where pg_trgm cannot be had, searches still answer the same, row by row."""
    connection = op.get_bind()
    try:
        with connection.begin_nested():
            op.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
            for table, columns in SEARCHED.items():
                for column in columns:
                    op.execute(
                        f"CREATE INDEX ix_{table}_{column} ON {table} "
                        f"USING gin ({column} gin_trgm_ops)"
                    )
    except DBAPIError as problem:
        if connection.closed or problem.connection_invalidated:
            raise

"""SQLite's substring indexes know projects, so that a search meets the rows of its own only.

Beside the texts they hold the end of the project's id: three characters are one trigram. Two
projects may share it; what a search finds is compared in the end anyway.
"""

from alembic import op

revision = "0005"
down_revision = "0003"

ENTITIES, PERFORMANCE = "content_entities", "content_search_performance"
BLOCKS = "content_quotable_blocks"
SEARCHED = {
    ENTITIES: ("title_folded", "slug_folded"),
    PERFORMANCE: ("query_folded", "page_url_folded"),
    BLOCKS: ("topic_tag_folded",),
}
DATED = {ENTITIES: "created_at", PERFORMANCE: "date_start", BLOCKS: "created_at"}
DAY = 10  # characters of a moment
PROJECT = "project_end"
END = 3


def upgrade() -> None:
    """Make the indexes and their triggers anew."""
    if op.get_bind().dialect.name != "sqlite":
        return
    for table, columns in SEARCHED.items():
        for event in ("insert", "delete", "update"):
            op.execute(f"DROP TRIGGER {table}_on_{event}")
        op.execute(f"DROP TABLE {table}_fts")
        _index(table, columns)
        _follow(table, columns)


def _index(table: str, columns: tuple[str, ...]) -> None:
    listed = ", ".join(columns)
    op.execute(
        f"CREATE VIEW {table}_searched AS "
        f"SELECT number, substr(project_id, -{END}) AS {PROJECT}, {listed} FROM {table}"
    )
    op.execute(
        f"CREATE VIRTUAL TABLE {table}_fts USING fts5({PROJECT}, {listed}, "
        f"content='{table}_searched', content_rowid='number', "
        "tokenize='trigram case_sensitive 1', detail=column)"
    )
    op.execute(f"INSERT INTO {table}_fts({table}_fts) VALUES ('rebuild')")


def _follow(table: str, columns: tuple[str, ...]) -> None:
    new = _indexed(table, columns) + _counted(table, "new", 1)
    old = _unindexed(table, columns) + _counted(table, "old", -1)
    changed = ", ".join(("project_id", DATED[table], *columns))
    for event, work in (("INSERT", new), ("DELETE", old), (f"UPDATE OF {changed}", old + new)):
        name = f"{table}_on_{event.split()[0].lower()}"
        op.execute(f"CREATE TRIGGER {name} AFTER {event} ON {table} BEGIN {work} END")


def _indexed(table: str, columns: tuple[str, ...]) -> str:
    listed = ", ".join((PROJECT, *columns))
    return f"INSERT INTO {table}_fts(rowid, {listed}) VALUES ({_values('new', columns)}); "


def _unindexed(table: str, columns: tuple[str, ...]) -> str:
    listed = ", ".join((PROJECT, *columns))
    return (
        f"INSERT INTO {table}_fts({table}_fts, rowid, {listed}) "
        f"VALUES ('delete', {_values('old', columns)}); "
    )


def _values(row: str, columns: tuple[str, ...]) -> str:
    texts = ", ".join(f"{row}.{column}" for column in columns)
    return f"{row}.number, substr({row}.project_id, -{END}), {texts}"


def _counted(table: str, row: str, step: int) -> str:
    return (
        f"INSERT INTO content_totals VALUES ({row}.project_id, '{table}', "
        f"substr({row}.{DATED[table]}, 1, {DAY}), {step}) "
        "ON CONFLICT (project_id, list, day) DO UPDATE SET total = total + excluded.total; "
    )

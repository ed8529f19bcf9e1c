"""What triggers note of credentials: the statements that follow it.

`identity/credential_changes.py` does.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    Integer,
    Select,
    Text,
    bindparam,
    func,
    insert,
    literal_column,
    select,
)

from toolgate.db.changes import TRANSACTION_ID
from toolgate.db.prepared import PreparedStatement
from toolgate.db.tables import credential_changes as table

MAX_NAMES = 1_000
"""Of one look: where more has changed, everything is forgotten, which is quicker."""
EVERYTHING = "*"
"""The name that stands for all credentials."""
NUMBERS: dict[str, Any] = {"sqlite": table.c.seq, "postgresql": table.c.transaction_id}
"""By what rows are followed. In SQLite they are committed in the order of their numbers; in
PostgreSQL, every row of a transaction below the oldest one under way has been seen."""


def _look(dialect: str) -> Select[*tuple[Any, ...]]:
    """Where the next look begins, what rows there are, and whether it is the same database."""
    number = NUMBERS[dialect]
    newest = select(func.max(number)).scalar_subquery()
    if dialect == "sqlite":
        begins: Any = func.coalesce(newest, 0) + 1
        # Tables that were made anew, as a backup is restored, may have any number.
        origin: Any = (
            select(literal_column("schema_version", Integer))
            .select_from(func.pragma_schema_version().table_valued("schema_version"))
            .scalar_subquery()
        )
    else:
        begins = literal_column(
            "CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint)", BigInteger
        )
        origin = literal_column("CAST(pg_postmaster_start_time() AS text)", Text)
    return select(
        begins.label("begins"),
        select(func.min(number)).scalar_subquery().label("oldest"),
        newest.label("newest"),
        origin.label("origin"),
    )


LOOK = {dialect: PreparedStatement(_look(dialect)) for dialect in NUMBERS}
NAMES = {
    dialect: select(table.c.name).where(number >= bindparam("begins")).limit(MAX_NAMES + 1)
    for dialect, number in NUMBERS.items()
}


def note_all_changed(connection: Connection) -> None:
    """Let every process ask the database again about every credential."""
    number: Any = None
    if connection.dialect.name == "postgresql":
        number = literal_column(TRANSACTION_ID, BigInteger)
    connection.execute(insert(table).values(transaction_id=number, name=EVERYTHING))

"""Look-ups by key in PostgreSQL on the event loop itself.

Everything else goes the usual way, and so does a look-up that fails here: that way knows how to
tell what is wrong.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import URL

from toolgate.db.connections import READ_ONLY, session_settings
from toolgate.db.postgres_lines import DIALECT, FAILURES, Lines
from toolgate.db.prepared import LookUpFailed, PreparedStatement


class PostgresLookUps:
    """Look-ups, each over a line that is free."""

    def __init__(self, url: URL, *, patience: float, seconds: float) -> None:
        set_up = f"{session_settings(seconds)}; {READ_ONLY}"
        self.lines = Lines(url, set_up, patience=patience)

    async def first(self, statement: PreparedStatement, values: Mapping[str, Any]) -> Any:
        """The one row by the names of its columns; None when there is none."""
        compiled = statement.compile(DIALECT)
        bound = compiled.bind(values)
        kept = bool(self.lines.free)
        try:
            row = await self.lines.use(lambda line: line.first(compiled.text, bound))
        except FAILURES as problem:
            if not kept:
                raise LookUpFailed from problem
            # The server may have ended what was idle: a new connection shows whether it is back.
            self.lines.drop_free()
            try:
                row = await self.lines.use(lambda line: line.first(compiled.text, bound))
            except FAILURES as again:
                raise LookUpFailed from again
        return None if row is None else compiled.named(row)

    async def close(self) -> None:
        """End every connection."""
        await self.lines.close()

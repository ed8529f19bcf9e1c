"""Errors of the database without the values of the statement that failed.

SQLAlchemy leaves parameters out (`hide_parameters`), but the database's own words repeat them: "Key
(id)=(…) already exists". They must reach neither a log nor a traceback.
"""

import re
from typing import Any

from sqlalchemy.exc import DBAPIError

HARMLESS = ("08", "25", "28", "3D", "40", "53", "55", "57", "58", "XX", "42P01", "42703")
"""Classes of SQLSTATE whose messages speak of the server: connection, transaction, sign-in, name,
rollback, resources, locks, operator, system, internal; and the codes for a table and a column that
are not there. All others may quote what was asked."""
HARMLESS_SQLITE = re.compile(r"no such table|no such column: [\w.]+\Z|unable to|cannot ")
GENERAL = "SQLITE_ERROR"


def drop_values(error: BaseException) -> None:
    """Leave in an error's message only what is not from the statement's values."""
    if not isinstance(error, DBAPIError) or error.orig is None:
        return
    origin = error.orig
    text = _safe_text(origin)
    origin.args = (text,)
    error.args = (f"({type(origin).__module__}.{type(origin).__name__}) {text}",)


def _safe_text(origin: BaseException) -> str:
    text = " ".join(str(origin).split())
    state = getattr(origin, "sqlstate", None)
    if isinstance(state, str):
        return f"{_primary(origin, state)} [{state}]"
    if getattr(origin, "sqlite_errorname", None) == GENERAL:
        return text if HARMLESS_SQLITE.match(text) else f"the statement failed [{GENERAL}]"
    return text


def _primary(origin: Any, state: str) -> str:
    diagnostics = origin.diag
    if state.startswith(HARMLESS):
        return " ".join((diagnostics.message_primary or "").split())
    places = [diagnostics.table_name, diagnostics.column_name, diagnostics.constraint_name]
    where = ", ".join(name for name in places if name)
    return f"{type(origin).__name__}{f' ({where})' if where else ''}"

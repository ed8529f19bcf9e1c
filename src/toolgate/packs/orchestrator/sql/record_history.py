"""How much of the history of settings and preferences is kept."""

from sqlalchemy import Connection, delete, func, select

from toolgate.packs.orchestrator.records import KEPT_CHARACTERS, Place
from toolgate.packs.orchestrator.sql.tables import history

TRIMMED_EVERY, CHANGE_CHARACTERS = 16, 200
"""After how many changes a history is measured, and what one takes beside its values."""


def trim_history(connection: Connection, place: Place) -> None:
    """Take the oldest changes of a place out of the history, where they are too large together.

    New keys make new histories, so a bound on each key alone is none.
    """
    old, new = (func.coalesce(func.length(one), 0) for one in (history.c.old, history.c.new))
    taken = old + new + CHANGE_CHARACTERS
    held = func.sum(taken).over(order_by=history.c.seq.desc())
    in_place = (history.c.scope_type == place.scope_type, history.c.scope_id == place.scope_id)
    measured = select(history.c.seq, held.label("held")).where(*in_place).subquery()
    older = select(measured.c.seq).where(measured.c.held > KEPT_CHARACTERS)
    connection.execute(delete(history).where(history.c.seq.in_(older)))

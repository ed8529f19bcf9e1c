"""Work that starts by itself rests in a restored database, until an operator lets it go on.

The original may still run, or has done it since the backup: mails, campaigns and payments that wait
in both would be sent twice.
"""

from sqlalchemy import Connection, delete, insert, select

from toolgate.db.workflow_tables import workflow_schedules as schedules

HELD = "*"
"""No workflow: the row that says since when schedules rest."""
RESTING = (
    "This database was restored from a backup, and nothing starts by itself in it: mails, "
    "campaigns and what is due every day wait. When the original no longer runs: "
    "toolgate workflows resume"
)


def hold_schedules(connection: Connection, now: str) -> None:
    """Start nothing by itself from now on."""
    resume_schedules(connection)
    connection.execute(insert(schedules).values(workflow=HELD, expression="held", next_at=now))


def held_since(connection: Connection) -> str | None:
    """Since when schedules rest; None where they do not."""
    return connection.scalar(select(schedules.c.next_at).where(schedules.c.workflow == HELD))


def resume_schedules(connection: Connection) -> bool:
    """Let them go on; False where they did not rest."""
    gone = delete(schedules).where(schedules.c.workflow == HELD)
    return bool(connection.execute(gone).rowcount)

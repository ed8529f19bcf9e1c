"""What an operator does with a command: one audit row, in the transaction of the change.

Who may open the database may change it, so nothing is decided here: the row says who it was on this
machine, and what was changed.
"""

import os
import sys

from sqlalchemy import Connection

from toolgate.gate.audit_records import Record, new_id, store, timestamp
from toolgate.gate.principal import AuditFields

OPERATOR = "operator"
"""Kind of caller, and the rule."""
TRANSPORT = "cli"


def note_operator(
    connection: Connection,
    command: str,
    *,
    client_id: str | None = None,
    grant_id: str | None = None,
    project_id: str | None = None,
) -> None:
    """Store the row of a command such as `keys.create`, beside what it changes.

    A key that is changed is named like a key that acts: `key:ID`, as client.
    """
    who = AuditFields(
        subject_type=OPERATOR,
        subject_id=f"{OPERATOR}:{user_of_this_machine()}",
        user_id=None,
        agent_type=None,
        role_names="",
        group_ids="",
        project_id=project_id,
        task_id=None,
        run_id=None,
        job_id=None,
        client_id=client_id,
        grant_id=grant_id,
    )
    done = (command, "allow", OPERATOR, "success", None, 0)
    store(connection, [Record(new_id(), timestamp(), new_id(), TRANSPORT, *who, *done)])


def user_of_this_machine() -> str:
    """The user this process runs as, as the system says it; the environment could say anything."""
    if sys.platform == "win32":
        return os.getlogin()
    import pwd  # noqa: PLC0415 (not on Windows)

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # in a container, a number that has no name
        return str(os.geteuid())

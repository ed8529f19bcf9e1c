"""Whether there are records of the ids that a key is made for."""

from collections.abc import Mapping

from sqlalchemy import Connection, exists, select

from toolgate.packs.orchestrator.sql.tables import jobs, projects, tasks, users

TABLES = {"user_id": users, "project_id": projects, "task_id": tasks, "job_id": jobs}


def unknown_ids(connection: Connection, ids: Mapping[str, str]) -> list[str]:
    """The names of those ids that are of no user, project, task or job."""

    def is_known(name: str) -> bool:
        there = exists().where(TABLES[name].c.id == ids[name])
        return bool(connection.scalar(select(there)))

    return [name for name in TABLES if name in ids and not is_known(name)]

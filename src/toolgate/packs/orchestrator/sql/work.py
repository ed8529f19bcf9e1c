"""Projects, tasks and jobs in the gate's database."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    bindparam,
    exists,
    literal,
    select,
)

from toolgate.db.engine import Database
from toolgate.db.prepared import PreparedStatement
from toolgate.db.records import update_record, update_records
from toolgate.db.transactions import Transaction
from toolgate.gate.audit_records import timestamp
from toolgate.gate.errors import Conflict
from toolgate.packs.orchestrator.access import Viewer, read_only_role
from toolgate.packs.orchestrator.access_rules import DeniedProjects
from toolgate.packs.orchestrator.folding import folded
from toolgate.packs.orchestrator.records import Layers
from toolgate.packs.orchestrator.rows import ListPage, Row
from toolgate.packs.orchestrator.sql.denied_projects import not_denied
from toolgate.packs.orchestrator.sql.layers import layers_of, read_layers
from toolgate.packs.orchestrator.sql.leases import (
    as_of,
    check_finisher,
    check_holder,
    check_same,
    drained_node,
    keep_node,
    times_after,
)
from toolgate.packs.orchestrator.sql.reach import (
    parameters_of,
    reached_projects,
    reached_tasks,
    shape_of,
    with_parameters,
    written_projects,
    written_tasks,
)
from toolgate.packs.orchestrator.sql.tables import (
    Words,
    dependencies,
    groups,
    jobs,
    members,
    projects,
    tasks,
    users,
)
from toolgate.packs.orchestrator.sql.task_dependencies import (
    JOB_WAITS,
    check_dependencies,
    find_dependencies,
)
from toolgate.packs.orchestrator.vocabulary import (
    CLOSED,
    ENDED,
    JOB_MOVES,
    TASK_MOVES,
    JobStatus,
    ScopeType,
    TaskStatus,
)
from toolgate.packs.orchestrator.work import NOTHING, Dependencies

ESCAPE = "\\"
WRITABLE = "writable"
"""The column that says whether the caller may change the row."""


class SqlWork:
    """Reads and moves what the agents work on."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._reaching: dict[tuple[Any, ...], PreparedStatement] = {}
        """What is asked about scopes, by their type and the shape of the caller."""

    async def task(self, viewer: Viewer, task_id: str) -> Row | None:
        """One task."""
        return await self._first(select(tasks).where(tasks.c.id == task_id, reached_tasks(viewer)))

    async def dependencies(
        self, viewer: Viewer, task_ids: Sequence[str]
    ) -> Mapping[str, Dependencies]:
        """What each of these tasks depends on."""
        return await self._database.read(lambda one: find_dependencies(one, viewer, task_ids))

    async def task_to_change(self, viewer: Viewer, task_id: str) -> Row | None:
        """One task, for a caller that changes something of it; raises `Forbidden`."""
        return _changeable(await self._first(_task_to_change(viewer, task_id)))

    async def job(self, viewer: Viewer, job_id: str) -> Row | None:
        """One job."""
        found = await self._first(_job(viewer, job_id))
        return None if found is None else as_of(found, timestamp())

    async def has_job(self, task_id: str, job_id: str) -> bool:
        """Whether a job is one of a task; whoever asks reaches the task."""
        wanted = select(jobs.c.id).where(jobs.c.id == job_id, jobs.c.task_id == task_id)
        return await self._first(wanted) is not None

    def job_now(self, job: Row) -> Row:
        """A job as it is now: one that runs past its lease has lost it."""
        return as_of(job, timestamp())

    async def move_task(
        self, tx: Transaction, viewer: Viewer, task_id: str, to: TaskStatus, reason: str | None
    ) -> Row | None:
        """Give a task another status; closing it cancels its open jobs.

        Canceling it cancels all that depends on it, too.
        """

        def work(connection: Connection) -> Row | None:
            wanted = _task_to_change(viewer, task_id)
            row = _locked(connection, wanted.with_for_update(of=tasks))
            if row is None or row["status"] == to:
                return row
            _check_move("task", row["status"], to, TASK_MOVES)
            if to == "running":
                check_dependencies(connection, viewer, task_id)
            now = timestamp()
            changed = {"status": to, "status_reason": reason, "updated_at": now}
            same = [tasks.c.status == row["status"]]
            if not update_record(tx, connection, tasks, row, changed, where=same):
                raise Conflict("The task was changed just now. Read it again.")
            if to == "canceled":
                _cancel_below(tx, connection, task_id, now)
            elif to in CLOSED:
                _cancel_jobs(tx, connection, jobs.c.task_id == task_id, now)
            return {**row, **changed}

        return await tx.run(work)

    async def move_job(
        self,
        tx: Transaction,
        viewer: Viewer,
        job_id: str,
        to: JobStatus,
        *,
        node_id: str | None = None,
        also: Mapping[str, Any] = NOTHING,
    ) -> Row | None:
        """Give a job another status; raises `Conflict` for a move that there is not."""

        def work(connection: Connection) -> Row | None:
            found, now = _job_to_change(connection, viewer, job_id), timestamp()
            row = None if found is None else as_of(found, now)
            if row is not None and node_id is not None:
                check_finisher(row, node_id)
            if found is None or row is None:
                return None
            if row["status"] == to:
                check_same(row, also)
                return row
            if to == "running":
                check_dependencies(connection, viewer, row["task_id"], JOB_WAITS)
            changed = {**_job_move(row, to, now), **also}
            return {**row, **_store_job(tx, connection, found, changed)}

        return await tx.run(work)

    async def lease_job(
        self, tx: Transaction, viewer: Viewer, job_id: str, node_id: str, until: str
    ) -> Row | None:
        """Let a node run a job until a moment; raises `Conflict` for one that runs elsewhere."""

        def work(connection: Connection) -> Row | None:
            takes_jobs = keep_node(connection, node_id)
            found, now = _job_to_change(connection, viewer, job_id), timestamp()
            if found is None:
                return None
            row = as_of(found, now)
            if row["status"] == "running":
                check_holder(row, node_id)
                changed: dict[str, Any] = {"updated_at": now}
            else:
                changed = _job_move(row, "running", now)
                if not takes_jobs:
                    raise drained_node(node_id)
                check_dependencies(connection, viewer, row["task_id"], JOB_WAITS)
            changed |= {"node_id": node_id, "lease_expires_at": until}
            return {**row, **_store_job(tx, connection, found, changed)}

        return await tx.run(work)

    async def keep_open(self, tx: Transaction, task_id: str) -> bool:
        """Whether there is such a task; nobody closes it before the transaction ends."""
        wanted = select(tasks.c.status).where(tasks.c.id == task_id).with_for_update(read=True)

        def work(connection: Connection) -> bool:
            status = connection.scalar(wanted)
            _check_open(status)
            return status is not None

        return await tx.run(work)

    async def keep_statuses(self, tx: Transaction, task_ids: Sequence[str]) -> Mapping[str, str]:
        """The status of each task; nobody changes it before the transaction ends."""
        wanted = select(tasks.c.id, tasks.c.status).where(tasks.c.id.in_(task_ids))
        # In one order, so that two who do this do not wait for each other.
        wanted = wanted.order_by(tasks.c.id).with_for_update(read=True)
        return await tx.run(
            lambda connection: {row.id: row.status for row in connection.execute(wanted)}
        )

    async def project(self, viewer: Viewer, project_id: str | None, slug: str | None) -> Row | None:
        """One project, by its id or its slug."""
        one = projects.c.id == project_id if slug is None else projects.c.slug == slug
        return await self._first(select(projects).where(one, reached_projects(viewer)))

    async def projects(
        self,
        viewer: Viewer,
        text: str | None,
        after: str | None,
        limit: int,
        *,
        denied: DeniedProjects,
    ) -> ListPage:
        """Projects by slug, of those that contain a text."""
        shown = not_denied(denied, projects.c.id, projects.c.slug)
        wanted = select(projects).where(reached_projects(viewer), shown)
        if text:
            wanted = wanted.where(projects.c.folded.contains(folded(text), autoescape=True))
        if after is not None:
            wanted = wanted.where(projects.c.slug > after)
        wanted = wanted.order_by(projects.c.slug).limit(limit + 1)
        rows = await self._database.read(
            lambda connection: connection.execute(wanted).mappings().all(), quick=True
        )
        return ListPage([dict(row) for row in rows[:limit]], more=len(rows) > limit)

    async def reaches(self, viewer: Viewer, scope_type: ScopeType, scope_id: str) -> bool:
        """Whether a caller reaches a scope of records, and whether there is such a scope."""
        return await self._rights(viewer, scope_type, scope_id, writing=False) is not None

    async def changes(self, viewer: Viewer, scope_type: ScopeType, scope_id: str) -> bool:
        """Whether a caller reaches a scope to change its records; raises `Forbidden`."""
        rights = await self._rights(viewer, scope_type, scope_id, writing=True)
        if rights is not None and not rights.writable:
            raise read_only_role()
        return rights is not None

    async def _rights(
        self, viewer: Viewer, scope_type: ScopeType, scope_id: str, *, writing: bool
    ) -> Any:
        """A row with what the caller may do in a scope; None where it does not reach it."""
        kind = (writing, scope_type, *shape_of(viewer))
        statement = self._reaching.get(kind)
        if statement is None:
            named: Any = bindparam("scope_id", type_=Words)
            caller = with_parameters(viewer)
            writable = _written_scope(caller, scope_type, named) if writing else literal(1)
            reached = _reached_scope(caller, scope_type, named)
            statement = PreparedStatement(select(writable.label(WRITABLE)).where(reached))
            self._reaching[kind] = statement
        values = {**parameters_of(viewer), "scope_id": scope_id}
        return await self._database.look_up(statement, values, of_data=True)

    async def layers(self, viewer: Viewer, task_id: str, *, sources: bool) -> Layers | None:
        """The preferences that apply to a task, weakest first; None without such a task."""
        wanted = layers_of(viewer, task_id, sources=sources)
        rows = await self._database.read(lambda one: one.execute(wanted).all(), quick=True)
        return read_layers(rows) if rows else None

    async def _first(self, wanted: "Select[*tuple[Any, ...]]") -> Row | None:
        row = await self._database.read(
            lambda connection: connection.execute(wanted).mappings().first(), quick=True
        )
        return dict(row) if row is not None else None


def _job(viewer: Viewer, job_id: str) -> "Select[*tuple[Any, ...]]":
    wanted = select(jobs).join(tasks, tasks.c.id == jobs.c.task_id)
    return wanted.where(jobs.c.id == job_id, reached_tasks(viewer))


def _job_to_change(connection: Connection, viewer: Viewer, job_id: str) -> Row | None:
    """A job and the status of its task, locked; raises `Forbidden` where the caller only reads."""
    wanted = _job(viewer, job_id).add_columns(
        written_tasks(viewer).label(WRITABLE), tasks.c.status.label("task_status")
    )
    return _locked(connection, wanted.with_for_update(of=jobs))


def _job_move(row: Row, to: JobStatus, now: str) -> dict[str, Any]:
    """What a move changes of a job; raises `Conflict` for a move that there is not."""
    _check_move("job", row["status"], to, JOB_MOVES)
    if to not in ENDED:
        _check_open(row["task_status"])
    return {"status": to, "updated_at": now, **times_after(to, row, now)}


def _store_job(
    tx: Transaction, connection: Connection, found: Row, changed: dict[str, Any]
) -> dict[str, Any]:
    same = [jobs.c.status == found["status"]]
    if not update_record(tx, connection, jobs, found, changed, where=same):
        raise Conflict("The job was changed just now. Read it again.")
    return changed


def _task_to_change(viewer: Viewer, task_id: str) -> "Select[*tuple[Any, ...]]":
    wanted = select(tasks, written_tasks(viewer).label(WRITABLE))
    return wanted.where(tasks.c.id == task_id, reached_tasks(viewer))


def _locked(connection: Connection, wanted: "Select[*tuple[Any, ...]]") -> Row | None:
    """The row that is changed next."""
    row = connection.execute(wanted).mappings().first()
    return None if row is None else _changeable(dict(row))


def _changeable(row: Row | None) -> Row | None:
    """A row that its caller may change; raises `Forbidden` where the caller's role only reads."""
    if row is None:
        return None
    if not row[WRITABLE]:
        raise read_only_role()
    return {name: value for name, value in row.items() if name != WRITABLE}


def _check_move(what: str, old: Any, new: str, moves: Any) -> None:
    possible = moves[old]
    if new not in possible:
        then = f"It can become: {', '.join(possible)}." if possible else "It stays as it is."
        raise Conflict(f"A {what} that is {old} cannot become {new}. {then}", current_status=old)


def _check_open(status: str | None) -> None:
    if status in CLOSED:
        raise Conflict(
            f"The task is {status}, and a closed task gets no job and runs none. "
            "Create another task.",
            task_status=status,
        )


def _cancel_below(tx: Transaction, connection: Connection, task_id: str, now: str) -> None:
    """Cancel every open task that depends on one, however indirectly, and the jobs of all."""
    below = select(tasks.c.id).where(tasks.c.id == task_id).cte("below", recursive=True)
    next_ = select(dependencies.c.task_id).join(below, dependencies.c.depends_on == below.c.id)
    below = below.union(next_)  # each task once, also in a diamond
    ids = select(below.c.id)
    # Without an id: who reads this may not reach that task.
    reason = "a task that it depends on was canceled"
    open_task = and_(tasks.c.id.in_(ids), tasks.c.id != task_id, tasks.c.status.not_in(CLOSED))
    canceled = {"status": "canceled", "status_reason": reason, "updated_at": now}
    update_records(tx, connection, tasks, [open_task], canceled)
    canceled_tasks = and_(tasks.c.id.in_(ids), tasks.c.status == "canceled")
    _cancel_jobs(tx, connection, jobs.c.task_id.in_(select(tasks.c.id).where(canceled_tasks)), now)


def _cancel_jobs(
    tx: Transaction, connection: Connection, of_tasks: ColumnElement[bool], now: str
) -> None:
    open_job = and_(of_tasks, jobs.c.status.not_in(ENDED))
    ended = {"status": "canceled", "updated_at": now, "ended_at": now, "lease_expires_at": None}
    update_records(tx, connection, jobs, [open_job], ended)


def _reached_scope(viewer: Viewer, scope_type: ScopeType, scope_id: str) -> Any:
    match scope_type:
        case "system":
            return literal(True)
        case "task":
            return exists().where(tasks.c.id == scope_id, reached_tasks(viewer))
        case "project":
            return exists().where(projects.c.id == scope_id, reached_projects(viewer))
        case "user":
            there = exists().where(users.c.id == scope_id)
            return there if viewer.is_admin else there.where(users.c.id == viewer.user_id)
        case "group":
            there = exists().where(groups.c.id == scope_id)
            if viewer.is_admin:
                return there
            member = and_(members.c.group_id == scope_id, members.c.user_id == viewer.user_id)
            return and_(there, exists().where(member))


def _written_scope(viewer: Viewer, scope_type: ScopeType, scope_id: str) -> Any:
    """Whether a scope that is reached may be changed."""
    match scope_type:
        case "task":
            return exists().where(tasks.c.id == scope_id, written_tasks(viewer))
        case "project":
            return exists().where(projects.c.id == scope_id, written_projects(viewer))
        case _:
            return literal(True)

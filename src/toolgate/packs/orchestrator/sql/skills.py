"""Skills in the gate's database."""

import uuid
from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Connection,
    Select,
    and_,
    case,
    delete,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    tuple_,
    union_all,
    update,
)

from toolgate.db.engine import Database
from toolgate.db.records import delete_records, insert_record, update_record
from toolgate.db.transactions import Transaction
from toolgate.gate.audit_records import timestamp
from toolgate.gate.errors import QuotaExceeded
from toolgate.packs.orchestrator.access import Viewer
from toolgate.packs.orchestrator.access_rules import NONE_DENIED, DeniedProjects
from toolgate.packs.orchestrator.rows import ListPage, Row
from toolgate.packs.orchestrator.skills.store import (
    BY_OPERATOR,
    KEPT_OF_DELETED,
    KEPT_OF_SCOPE,
    KEPT_VERSIONS,
    MAX_SKILLS,
    SHARED_SCOPES,
    NewSkill,
    SkillChange,
)
from toolgate.packs.orchestrator.sql.advisory_locks import lock
from toolgate.packs.orchestrator.sql.denied_projects import not_denied
from toolgate.packs.orchestrator.sql.quarantined_texts import (
    add_text,
    check_text,
    find_texts,
    remove_text,
    remove_texts_of,
)
from toolgate.packs.orchestrator.sql.reach import reached_projects
from toolgate.packs.orchestrator.sql.tables import members, projects, skill_versions, skills
from toolgate.packs.orchestrator.vocabulary import SkillScope

LISTED = [column for column in skills.c if column.name != "content"]
VERSION_CHARACTERS = 1_000
"""What a version takes beside its text."""
VERSIONED = ("version", "name", "content", "scope", "scope_id")


class SqlSkills:
    """Reads and stores skills."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, viewer: Viewer, skill_id: str) -> Row | None:
        """One skill."""
        wanted = select(skills).where(skills.c.id == skill_id, _entitled(viewer))
        row = await self._database.read(
            lambda connection: connection.execute(wanted).mappings().first(), quick=True
        )
        return dict(row) if row is not None else None

    async def page(
        self,
        viewer: Viewer,
        scope: SkillScope | None,
        owner: str | None,
        after: tuple[str, str] | None,
        limit: int,
        *,
        denied: DeniedProjects,
    ) -> ListPage:
        """Skills without their content, the last changed first."""
        # The user's scopes first: only their skills are looked at.
        scopes = _scopes(viewer).cte("scopes")
        inside = and_(skills.c.scope == scopes.c.scope, skills.c.scope_id == scopes.c.scope_id)
        wanted = select(*LISTED).select_from(scopes.join(skills, inside))
        if denied != NONE_DENIED:
            shown = not_denied(denied, skills.c.scope_id, skills.c.id)
            wanted = wanted.where(or_(skills.c.scope != "project", shown))
        if scope is not None:
            wanted = wanted.where(skills.c.scope == scope)
        if owner is not None:
            wanted = wanted.where(skills.c.owner_id == owner)
        if after is not None:
            wanted = wanted.where(tuple_(skills.c.updated_at, skills.c.id) < after)
        wanted = wanted.order_by(skills.c.updated_at.desc(), skills.c.id.desc()).limit(limit + 1)
        rows = await self._database.read(
            lambda connection: connection.execute(wanted).mappings().all(), quick=True
        )
        return ListPage([dict(row) for row in rows[:limit]], more=len(rows) > limit)

    async def create(self, tx: Transaction, skill: NewSkill) -> Row:
        """Store a skill with its first version."""
        now = timestamp()
        row: dict[str, Any] = {
            "id": str(uuid.uuid4()),
            "version": 1,
            "name": skill.name,
            "content": skill.content,
            "scope": skill.scope,
            "scope_id": skill.scope_id,
            "owner_id": skill.owner_id,
            "created_at": now,
            "updated_at": now,
        }

        def work(connection: Connection) -> Row:
            check_text(connection, skill.digest)
            if skill.limited:
                _check_room(connection, row)
            insert_record(tx, connection, skills, row)
            _keep_version(connection, row, skill.by)
            return row

        return await tx.run(work)

    async def update(
        self, tx: Transaction, viewer: Viewer, skill_id: str, change: SkillChange
    ) -> Row | None:
        """Store the next version of a skill; another text lifts a quarantine by the audit."""

        def work(connection: Connection) -> Row | None:
            old = _locked(connection, viewer, skill_id)
            if old is None:
                return None
            if change.digest is not None:
                check_text(connection, change.digest)
            given = {
                name: value
                for name in ("name", "content", "scope", "scope_id")
                if (value := getattr(change, name)) is not None
            }
            new = {**old, **given, "version": old["version"] + 1, "updated_at": timestamp()}
            moves = (new["scope"], new["scope_id"]) != (old["scope"], old["scope_id"])
            if moves and change.limited:
                _check_room(connection, new)
            if _is_lifted(old, new):
                new["quarantine"] = None
            update_record(tx, connection, skills, old, new)
            _keep_version(connection, new, change.by)
            return new

        return await tx.run(work)

    async def delete(self, tx: Transaction, viewer: Viewer, skill_id: str) -> Row | None:
        """Delete a skill and keep its versions; None where there is none for this user."""

        def work(connection: Connection) -> Row | None:
            old = _locked(connection, viewer, skill_id)
            if old is not None:
                delete_skills(tx, connection, skills.c.id == skill_id)
            return old

        return await tx.run(work)

    async def forget_deleted(self, before: str, most: int) -> int:
        """Forget some versions of skills that were deleted before a moment; how many it were."""
        key = tuple_(skill_versions.c.skill_id, skill_versions.c.version)
        due = select(skill_versions.c.skill_id, skill_versions.c.version).where(
            skill_versions.c.deleted_at < before
        )
        due = due.order_by(skill_versions.c.deleted_at).limit(most)
        forgotten = delete(skill_versions).where(key.in_(due))
        return await self._database.write(lambda one: one.execute(forgotten).rowcount)

    async def quarantined_texts(self, digests: Collection[str]) -> Mapping[str, str]:
        """Of these texts, those that operators put into quarantine: as which skill, by digest."""
        return await self._database.read(lambda connection: find_texts(connection, digests))

    async def refuse_text(self, tx: Transaction, digest: str, skill_id: str) -> None:
        """Let a skill's text be stored no more, as whichever skill."""
        await tx.run(lambda connection: add_text(tx, connection, digest, skill_id))

    async def allow_text(self, tx: Transaction, digest: str) -> None:
        """Let a text be stored again."""
        await tx.run(lambda connection: remove_text(tx, connection, digest))

    async def allow_texts_of(self, tx: Transaction, skill_id: str) -> bool:
        """The same for the texts of a skill that was deleted; False where there are none."""
        return await tx.run(lambda connection: remove_texts_of(tx, connection, skill_id))


def delete_skills(tx: Transaction, connection: Connection, which: ColumnElement[bool]) -> None:
    """Delete skills; their last versions are kept for some time."""
    versions = skill_versions.c
    newest = select(skills.c.version).where(skills.c.id == versions.skill_id).scalar_subquery()
    of_these = versions.skill_id.in_(select(skills.c.id).where(which))
    older = and_(of_these, versions.version <= newest - KEPT_OF_DELETED)
    connection.execute(delete(skill_versions).where(older))
    scopes = select(versions.scope, versions.scope_id).where(of_these).distinct()
    touched = connection.execute(scopes).all()
    connection.execute(update(skill_versions).where(of_these).values(deleted_at=timestamp()))
    delete_records(tx, connection, skills, [which])
    for row in touched:
        _trim_deleted(connection, row.scope, row.scope_id)


def _trim_deleted(connection: Connection, scope: str, scope_id: str) -> None:
    """Forget the oldest versions of a scope's deleted skills where they are too large together."""
    versions = skill_versions.c
    taken = func.length(versions.content) + VERSION_CHARACTERS
    newest = (versions.deleted_at.desc(), versions.skill_id, versions.version.desc())
    held = func.sum(taken).over(order_by=newest)
    gone = (
        versions.scope == scope,
        versions.scope_id == scope_id,
        versions.deleted_at.is_not(None),
    )
    measured = select(versions.skill_id, versions.version, held.label("held")).where(*gone)
    among = measured.subquery()
    older = select(among.c.skill_id, among.c.version).where(among.c.held > KEPT_OF_SCOPE)
    which = tuple_(versions.skill_id, versions.version).in_(older)
    connection.execute(delete(skill_versions).where(which))


def _locked(connection: Connection, viewer: Viewer, skill_id: str) -> dict[str, Any] | None:
    wanted = select(skills).where(skills.c.id == skill_id, _entitled(viewer)).with_for_update()
    row = connection.execute(wanted).mappings().first()
    return dict(row) if row is not None else None


def _is_lifted(old: Row, new: Row) -> bool:
    quarantine = old["quarantine"]
    if quarantine is None or quarantine["category"] == BY_OPERATOR:
        return False
    is_of_name = quarantine.get("field") == "name"
    return old["content"] != new["content"] or (is_of_name and old["name"] != new["name"])


def _forget_versions(connection: Connection, skill_id: str, version: int) -> None:
    """Forget this version and older ones."""
    of_skill = (skill_versions.c.skill_id == skill_id, skill_versions.c.version <= version)
    connection.execute(delete(skill_versions).where(*of_skill))


def _check_room(connection: Connection, new: Row) -> None:
    """Raise where a scope has as many skills as it may have, or as its owner may have there.

    Nobody else adds one meanwhile.
    """
    scope, scope_id = new["scope"], new["scope_id"]
    lock(connection, skills.name, scope, scope_id)
    inside = (skills.c.scope == scope, skills.c.scope_id == scope_id)
    own = case((skills.c.owner_id == new["owner_id"], 1), else_=0)
    counted = select(func.count(), func.coalesce(func.sum(own), 0)).select_from(skills)
    held, own_held = connection.execute(counted.where(*inside)).one()
    if held >= MAX_SKILLS:
        raise QuotaExceeded(
            f"This scope has {held} skills, and may have {MAX_SKILLS}. Delete some first."
        )
    if scope in SHARED_SCOPES and own_held >= MAX_SKILLS // 2:
        raise QuotaExceeded(
            f"Others share this scope, so one user has at most half of its {MAX_SKILLS} skills, "
            f"and {own_held} are this user's. Delete some of them first."
        )


def _keep_version(connection: Connection, row: Row, by: str) -> None:
    kept = {name: row[name] for name in VERSIONED}
    more = {"skill_id": row["id"], "changed_by": by, "changed_at": row["updated_at"]}
    connection.execute(insert(skill_versions), {**kept, **more})
    _forget_versions(connection, row["id"], row["version"] - KEPT_VERSIONS)


def _entitled(viewer: Viewer) -> ColumnElement[bool]:
    """Whose skills a user reads; without one, everybody's and those of the bound task's project."""
    scopes = _scopes(viewer).subquery()
    inside = and_(scopes.c.scope == skills.c.scope, scopes.c.scope_id == skills.c.scope_id)
    return exists(select(literal(1)).select_from(scopes).where(inside))


def _scopes(viewer: Viewer) -> "CompoundSelect[str, str]":
    """The scopes whose skills a user reads, each with its id."""
    everybody = _scope("global", literal(""))
    of_projects = _scope("project", projects.c.id).where(reached_projects(viewer))
    user_id = viewer.user_id
    if user_id is None:
        return union_all(everybody, of_projects)
    return union_all(
        everybody,
        _scope("user", literal(user_id)),
        _scope("group", members.c.group_id).where(members.c.user_id == user_id),
        of_projects,
    )


def _scope(scope: SkillScope, scope_id: ColumnElement[str]) -> "Select[str, str]":
    return select(literal(scope).label("scope"), scope_id.label("scope_id"))

"""Access rules in the gate's database; those of a caller stay in memory until any is changed."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

import anyio
from sqlalchemy import Connection, Text, and_, cast, exists, literal, or_, select, union_all

from toolgate.db.engine import Database
from toolgate.db.transactions import Transaction
from toolgate.gate.epochs import Epoch
from toolgate.gate.live_switches import count_change
from toolgate.packs.orchestrator.access import Viewer
from toolgate.packs.orchestrator.access_rules import (
    SUBJECT_TYPES,
    AccessRule,
    Memberships,
    Subject,
    SubjectType,
    rule_of,
)
from toolgate.packs.orchestrator.sql.reach import reached_projects
from toolgate.packs.orchestrator.sql.tables import access_rules, bindings, members, projects

SOURCE = "orchestrator.access_rules"
"""Whose changes these are, in the gate's table of switches."""
MAX_CALLERS = 10_000
"""Whose rules are kept in memory."""
MAX_ABOUT_PROJECTS = 500
"""Rules about a caller's projects that are looked at one by one."""
NO_CONDITIONS = ("null", "{}")


@dataclass(frozen=True, slots=True)
class _Known:
    """What was read since the rules were last changed."""

    epoch: int | None
    types: frozenset[SubjectType] = frozenset()
    about: dict[frozenset[Subject], Sequence[AccessRule]] = field(
        default_factory=dict[frozenset[Subject], "Sequence[AccessRule]"]
    )
    about_projects: dict[Viewer, Sequence[AccessRule] | None] = field(
        default_factory=dict[Viewer, "Sequence[AccessRule] | None"]
    )
    memberships: dict[str, Memberships] = field(default_factory=dict[str, Memberships])


class SqlAccessRules:
    """The rules as this worker knows them; it learns of a change within a second."""

    def __init__(self, database: Database, epoch: Epoch) -> None:
        self._database = database
        self._epoch = epoch
        self._known = _Known(None)
        self._reading = anyio.Lock()

    async def subject_types(self) -> AbstractSet[SubjectType]:
        """The types of subjects that there are rules about."""
        if self._known.epoch != self._epoch.number:
            await self._read()
        return self._known.types

    async def about(self, subjects: frozenset[Subject]) -> Sequence[AccessRule]:
        """The rules about these subjects, in order of rank."""
        known = self._known
        rules = known.about.get(subjects)
        if rules is None:
            rows = await self._database.read(lambda one: _rows(one, subjects))
            rules = sorted((rule_of(row) for row in rows), key=lambda rule: rule.rank)
            if len(known.about) >= MAX_CALLERS:
                known.about.clear()
            known.about[subjects] = rules
        return rules

    async def about_projects(self, viewer: Viewer) -> Sequence[AccessRule] | None:
        """The rules that may deny something in a caller's projects; None where they are many."""
        known = self._known.about_projects
        if viewer not in known:
            rows = await self._database.read(lambda one: _rows_about_projects(one, viewer))
            if len(known) >= MAX_CALLERS:
                known.clear()
            many = len(rows) > MAX_ABOUT_PROJECTS
            known[viewer] = None if many else [rule_of(row) for row in rows]
        return known[viewer]

    async def groups_of(self, user_id: str) -> Sequence[str]:
        """The groups of a user, as they are now."""
        wanted = select(members.c.group_id).where(members.c.user_id == user_id)
        return await self._database.read(lambda one: one.scalars(wanted).all(), quick=True)

    async def memberships_of(self, user_id: str) -> Memberships:
        """The groups and roles of a user, as this worker knows them; kept in memory."""
        known = self._known.memberships
        found = known.get(user_id)
        if found is None:
            found = await self._database.read(lambda one: _memberships(one, user_id), quick=True)
            if len(known) >= MAX_CALLERS:
                known.clear()
            known[user_id] = found
        return found

    async def changed(self, tx: Transaction) -> None:
        """Let every worker read rules and memberships again, once this is committed."""
        await tx.run(_count)

    async def _read(self) -> None:
        async with self._reading:
            epoch = self._epoch.number
            if self._known.epoch != epoch:
                self._known = _Known(epoch, await self._database.read(_types))


def _types(connection: Connection) -> frozenset[SubjectType]:
    found = connection.execute(
        select(*(exists().where(access_rules.c.subject_type == one) for one in SUBJECT_TYPES))
    ).one()
    return frozenset(one for one, there in zip(SUBJECT_TYPES, found, strict=True) if there)


def _rows(connection: Connection, subjects: frozenset[Subject]) -> Sequence[Any]:
    of_type: dict[SubjectType, list[str]] = {}
    for type_, id_ in subjects:
        of_type.setdefault(type_, []).append(id_)
    columns = access_rules.c
    wanted = or_(
        *(
            and_(columns.subject_type == one, columns.subject_id.in_(ids))
            for one, ids in of_type.items()
        )
    )
    return connection.execute(select(access_rules).where(wanted)).mappings().all()


def _rows_about_projects(connection: Connection, viewer: Viewer) -> Sequence[Any]:
    """Those that deny; and those with conditions, since one that cannot be read denies."""
    columns = access_rules.c
    conditional = cast(columns.conditions, Text).not_in(NO_CONDITIONS)
    own = select(projects.c.id).where(reached_projects(viewer))
    wanted = select(access_rules).where(
        columns.subject_type == "project",
        columns.subject_id.in_(own),
        or_(columns.effect == "deny", conditional),
    )
    return connection.execute(wanted.limit(MAX_ABOUT_PROJECTS + 1)).mappings().all()


def _memberships(connection: Connection, user_id: str) -> Memberships:
    in_groups = select(members.c.group_id).where(members.c.user_id == user_id)
    columns = bindings.c
    held = or_(
        and_(columns.subject_type == "user", columns.subject_id == user_id),
        and_(columns.subject_type == "group", columns.subject_id.in_(in_groups)),
    )
    rows = connection.execute(
        union_all(
            select(literal(True), members.c.group_id).where(members.c.user_id == user_id),
            select(literal(False), columns.role).where(held).distinct(),
        )
    ).all()
    return Memberships(
        sorted(name for is_group, name in rows if is_group),
        sorted(name for is_group, name in rows if not is_group),
    )


def _count(connection: Connection) -> None:
    count_change(connection, SOURCE)

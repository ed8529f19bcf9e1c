"""Records of operators in the gate's database."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, and_, exists, select, tuple_

from toolgate.db.engine import Database
from toolgate.db.records import delete_records, insert_record, note_record, update_records
from toolgate.db.transactions import Transaction
from toolgate.gate.audit_records import timestamp
from toolgate.gate.errors import Conflict
from toolgate.packs.orchestrator.administration import Kind, RowPage, ScopeKind
from toolgate.packs.orchestrator.rows import Row
from toolgate.packs.orchestrator.sql import tables
from toolgate.packs.orchestrator.sql.skills import delete_skills
from toolgate.packs.orchestrator.sql.task_dependencies import waits_in_vain
from toolgate.ports.keys import PackKeys

PAGE_BYTES = 512 * 1024
"""A page ends before it is larger than this, but has one record at least."""
TABLES: Mapping[Kind, Table] = {
    "user": tables.users,
    "group": tables.groups,
    "member": tables.members,
    "project": tables.projects,
    "role_binding": tables.bindings,
    "task": tables.tasks,
    "dependency": tables.dependencies,
    "job": tables.jobs,
    "access_rule": tables.access_rules,
    "change": tables.history,
    "skill": tables.skills,
    "skill_version": tables.skill_versions,
}
ORDERS: Mapping[Kind, tuple[str, ...]] = {
    "project": ("slug",),
    "task": ("created_at", "id"),
    "job": ("created_at", "id"),
    "access_rule": ("created_at", "id"),
    "skill": ("created_at", "id"),
}
"""Where records are not in the order of their keys."""


STEPS = {
    "tasks": "Tasks are never deleted. End what its agents do: revoke their keys (`toolgate keys "
    "list`, `toolgate keys revoke ID`), or make the project inactive (operator.project.update with "
    "is_active=false).",
    "members": "Take its members out first (operator.group.remove_member).",
    "role bindings": "Take its roles away first (operator.role_binding.remove).",
    "skills": "Delete its skills first (skills.delete).",
}
"""What to do where others need a record, by who needs it."""


class SqlAdministration:
    """Reads and stores records of every kind."""

    def __init__(self, database: Database, keys: PackKeys) -> None:
        self._database = database
        self._keys = keys

    async def page(
        self, kind: Kind, where: Mapping[str, Any], after: Sequence[Any] | None, limit: int
    ) -> RowPage:
        """Records with these values, behind a position; fewer than `limit` if they are large."""
        table, order = TABLES[kind], _order(kind)
        wanted = select(table).where(*_equal(table, where)).order_by(*order).limit(limit + 1)
        if after is not None:
            wanted = wanted.where(tuple_(*order) > tuple_(*after))
        rows = await self._database.read(lambda one: one.execute(wanted).mappings().all())
        kept = list(_fitting([dict(row) for row in rows[:limit]]))
        more = len(rows) > len(kept)
        last = [kept[-1][column.name] for column in order] if more else None
        return RowPage(kept, last)

    async def find(self, tx: Transaction, kind: Kind, key: Mapping[str, Any]) -> Row | None:
        """One record, as the transaction sees it."""
        return await tx.run(lambda connection: _one(connection, TABLES[kind], key))

    async def create(self, tx: Transaction, kind: Kind, row: Mapping[str, Any]) -> Row | None:
        """Store a new record; None where there is one of its key."""
        table, now = TABLES[kind], timestamp()
        stamps = {name: now for name in ("created_at", "updated_at") if name in table.c}
        whole = {column.name: None for column in table.c} | stamps | dict(row)

        def work(connection: Connection) -> Row | None:
            if connection.dialect.name == "postgresql":
                from sqlalchemy.dialects.postgresql import insert as upsert  # noqa: PLC0415

                new = upsert(table).values(whole).on_conflict_do_nothing()
                if connection.execute(new.returning(*table.primary_key)).first() is None:
                    return None
                note_record(tx, connection, table, None, whole)
                return whole
            for names in _keys(table):
                key = {name: whole[name] for name in names}
                if None not in key.values() and _one(connection, table, key):
                    return None
            insert_record(tx, connection, table, whole)  # on SQLite, who writes is alone
            return whole

        return await tx.run(work)

    async def update(
        self, tx: Transaction, kind: Kind, key: Mapping[str, Any], values: Mapping[str, Any]
    ) -> Row | None:
        """Change a record; None where there is none."""
        table = TABLES[kind]
        stamp = {"updated_at": timestamp()} if "updated_at" in table.c else {}

        def work(connection: Connection) -> Row | None:
            own = _equal(table, key)
            update_records(tx, connection, table, own, {**stamp, **values})
            return _one(connection, table, key)

        return await tx.run(work)

    async def is_agents_key(self, tx: Transaction, key_id: str) -> bool:
        """Whether an agent holds the key of this id."""
        return await tx.run(lambda connection: self._keys.is_agents(connection, key_id))

    async def revoke_keys(self, tx: Transaction, user_id: str) -> None:
        """End the keys of agents that work for a user."""
        await tx.run(lambda connection: self._keys.revoke_agents(connection, user_id))

    async def forget_scope(self, tx: Transaction, kind: ScopeKind, scope_id: str) -> None:
        """Delete the access rules about a subject and the skills that are for it."""
        rules, skills = tables.access_rules, tables.skills
        about = _equal(rules, {"subject_type": kind, "subject_id": scope_id})
        meant = and_(*_equal(skills, {"scope": kind, "scope_id": scope_id}))

        def work(connection: Connection) -> None:
            delete_records(tx, connection, rules, about)
            delete_skills(tx, connection, meant)

        await tx.run(work)

    async def delete(self, tx: Transaction, kind: Kind, key: Mapping[str, Any]) -> bool:
        """Delete a record; False where there is none. Raises `Conflict` where others need it."""
        table = TABLES[kind]

        def work(connection: Connection) -> bool:
            for other, using in _users_of(table, key):
                if connection.scalar(select(exists().where(using))):
                    what = other.name.removeprefix("orchestrator_").replace("_", " ")
                    raise Conflict(_in_use(kind, key, what))
            return delete_records(tx, connection, table, _equal(table, key)) > 0

        return await tx.run(work)


def _in_use(kind: Kind, key: Mapping[str, Any], what: str) -> str:
    """Why a record stays, and what to do."""
    name = f"{kind.replace('_', ' ').capitalize()} {' and '.join(map(repr, key.values()))}"
    step = STEPS.get(what, f"{what.capitalize()} come first: delete or change them.")
    return f"{name} is in use by {what}, so it stays. {step}"


def _order(kind: Kind) -> list[Any]:
    table = TABLES[kind]
    names = ORDERS.get(kind)
    return [table.c[name] for name in names] if names else list(table.primary_key)


def _equal(table: Table, values: Mapping[str, Any]) -> list[ColumnElement[bool]]:
    given = dict(values)
    in_vain = [waits_in_vain()] if given.pop("in_vain", None) else []
    return [*(table.c[name] == value for name, value in given.items()), *in_vain]


def _one(connection: Connection, table: Table, key: Mapping[str, Any]) -> Row | None:
    row = connection.execute(select(table).where(*_equal(table, key))).mappings().first()
    return dict(row) if row is not None else None


def _keys(table: Table) -> Iterator[list[str]]:
    """The columns that no two rows have alike."""
    yield [column.name for column in table.primary_key]
    yield from ([column.name] for column in table.c if column.unique)


def _users_of(table: Table, key: Mapping[str, Any]) -> Iterator[tuple[Table, ColumnElement[bool]]]:
    """Rows of other tables that refer to a record."""
    for other in tables.metadata.tables.values():
        links = [link for link in other.foreign_keys if link.column.table is table]
        for link in links:
            yield other, link.parent == key[link.column.name]
    for subject_type, subjects in (("user", tables.users), ("group", tables.groups)):
        if table is subjects:
            named = {"subject_type": subject_type, "subject_id": key["id"]}
            yield tables.bindings, and_(*_equal(tables.bindings, named))


def _fitting(rows: Sequence[Row]) -> Iterator[Row]:
    size = 0
    for number, row in enumerate(rows):
        size += sum(len(str(value)) for value in row.values())
        if number and size > PAGE_BYTES:
            return
        yield row

"""API keys: made here, shown once, kept as hashes.

A key is `tg_ID_SECRET`. The id finds the row, so the time to check one does not depend on how
many there are; the secret has 256 random bits, so a plain SHA-256 of it is safe to store.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, bindparam, insert, select, text, update

from toolgate.db.engine import Database
from toolgate.db.prepared import PreparedStatement
from toolgate.db.tables import keys
from toolgate.gate.audit_records import timestamp
from toolgate.gate.principal import (
    BOUND,
    AgentType,
    Principal,
    Role,
    of_agent,
    of_node,
    of_role,
)
from toolgate.sections import SHORTEST_ADMIN_KEY

PREFIX = "tg"
FORM = re.compile(rf"{PREFIX}_[0-9a-f]{{16}}_[0-9a-f]{{64}}")
ONE = PreparedStatement(select(keys).where(keys.c.id == bindparam("id")))
SETTING_KEY_ID = "admin-key"
ROLES = {role.value: role for role in Role}
LOCK = 0x7001_6A7D

Note = Callable[[Connection, str], None]
"""Stores, beside a change, who made it; told the id of the key."""


class UnknownKey(ValueError):
    """There is no key with this id."""


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key just made; `key` is not kept anywhere."""

    id: str
    key: str
    role: str
    name: str | None = None


class Keys:
    """Makes, lists, revokes and checks API keys."""

    def __init__(self, database: Database, admin_key: str | None = None) -> None:
        self._database = database
        self._admin_hash = _hash(admin_key) if admin_key else None
        self.revocations = 0
        """How many keys were revoked here; who remembers keys forgets them when it grows."""

    @property
    def admin_mark(self) -> bytes | None:
        """Tells one configured admin key from another, without telling the key."""
        return hashlib.sha256(self._admin_hash).digest() if self._admin_hash else None

    async def look_up(self, credential: str) -> Principal | None:
        """Who holds this key now, asked of the database; None when nobody does."""
        digest = _hash(credential)
        if self.is_admin_key(digest):
            return of_role(Role.ADMIN, SETTING_KEY_ID)
        row = await self.row(credential, digest)
        return principal_of_key(row) if row and is_row_in_force(row) else None

    def is_admin_key(self, digest: bytes) -> bool:
        """Whether this is the digest of the configured admin key."""
        return self._admin_hash is not None and hmac.compare_digest(digest, self._admin_hash)

    def may_be_key(self, text: str) -> bool:
        """Whether a text has a key's form: one of ours, or as long as a configured one must be."""
        made_here = FORM.fullmatch(text) is not None
        return made_here or (self._admin_hash is not None and len(text) >= SHORTEST_ADMIN_KEY)

    async def audit_name(self, credential: str) -> str | None:
        """How the audit names a key, also one that has ended; None for what was never one."""
        digest = _hash(credential)
        if self.is_admin_key(digest):
            return SETTING_KEY_ID
        row = await self.row(credential, digest)
        return f"key:{row.id}" if row else None

    async def row(
        self, credential: str, digest: bytes, statement: PreparedStatement = ONE
    ) -> Row[Any] | None:
        """The row of a key whose secret is right; `statement` may ask for more than that."""
        parts = credential.split("_")
        if len(parts) != 3 or parts[0] != PREFIX or not parts[1].isalnum():
            return None
        row = await self._database.look_up(statement, {"id": parts[1]})
        # Compared also when there is no such key, so that time does not tell which ids exist.
        good = hmac.compare_digest(digest, row.hash if row else bytes(32))
        return row if good else None

    def is_in_force(self, connection: Connection, key_id: str | None, mark: bytes | None) -> bool:
        """Whether a key that somebody signed in with is still in force; True where it was none."""
        if key_id is None:
            return True
        if key_id == SETTING_KEY_ID:
            return mark is not None and mark == self.admin_mark
        row = connection.execute(select(keys).where(keys.c.id == key_id)).first()
        return row is not None and is_row_in_force(row)

    async def create(
        self,
        *,
        role: Role | None = None,
        agent_type: AgentType | None = None,
        user_id: str | None = None,
        days: float | None = None,
        name: str | None = None,
        bound: Mapping[str, str] | None = None,
        note: Note | None = None,
    ) -> NewKey:
        """Make a key for a role or an agent type; `name` is what people call it.

        `bound` has the ids, of those in `BOUND`, that its holder may name and no others.
        """
        key_id = secrets.token_hex(8)
        key = f"{PREFIX}_{key_id}_{secrets.token_hex(32)}"
        row = {
            "id": key_id,
            "hash": _hash(key),
            "role": role.value if role else None,
            "agent_type": agent_type.value if agent_type else None,
            "user_id": user_id,
            "created_at": timestamp(),
            "expires_at": timestamp(seconds=days * 86400) if days is not None else None,
            "name": name,
            **dict.fromkeys(BOUND),
            **(bound or {}),
        }

        def keep(connection: Connection) -> None:
            connection.execute(insert(keys), [row])
            if note:
                note(connection, key_id)

        await self._database.write(keep)
        return NewKey(key_id, key, str(role or agent_type), name)

    async def create_first(self, note: Note | None = None) -> NewKey | None:
        """Make an admin key unless one is in force; of many that start at once, one makes it."""
        key_id = secrets.token_hex(8)
        key = f"{PREFIX}_{key_id}_{secrets.token_hex(32)}"
        role = Role.ADMIN.value
        row = {"id": key_id, "hash": _hash(key), "role": role, "created_at": timestamp()}

        def keep(connection: Connection) -> bool:
            new_key = _insert_first(connection, row)
            if new_key and note:
                note(connection, key_id)
            return new_key

        return NewKey(key_id, key, role) if await self._database.write(keep) else None

    async def holder(self, key_id: str) -> Principal | None:
        """Who holds the key of this id, if it is in force."""
        row = await self._database.look_up(ONE, {"id": key_id})
        return principal_of_key(row) if row and is_row_in_force(row) else None

    async def list(self) -> list[dict[str, Any]]:
        """Every key's row without its hash, oldest first."""
        columns = [column for column in keys.c if column.name != "hash"]
        every = select(*columns).order_by(keys.c.created_at, keys.c.id)
        return await self._database.read(
            lambda connection: [dict(row) for row in connection.execute(every).mappings()]
        )

    async def revoke(self, key_id: str, note: Note | None = None) -> None:
        """End a key at once; raise `UnknownKey` when there is none."""
        statement = (
            update(keys)
            .where(keys.c.id == key_id, keys.c.revoked_at.is_(None))
            .values(revoked_at=timestamp())
        )

        def end(connection: Connection) -> None:
            if not connection.execute(statement).rowcount:
                raise UnknownKey(key_id)
            if note:
                note(connection, key_id)

        await self._database.write(end)
        self.revocations += 1


class KeysOfPacks:
    """Keys of nodes, and the end of agents' keys, with the records of nodes and users."""

    def issue(self, connection: Connection, node_slug: str) -> str:
        """A new key of this node; only its hash is stored."""
        key_id = secrets.token_hex(8)
        key = f"{PREFIX}_{key_id}_{secrets.token_hex(32)}"
        row = {"id": key_id, "hash": _hash(key), "node_id": node_slug, "created_at": timestamp()}
        connection.execute(insert(keys), [row])
        return key

    def revoke_all(self, connection: Connection, node_slug: str) -> None:
        """End every key of this node; running servers refuse it within a second."""
        self._revoke(connection, keys.c.node_id == node_slug)

    def is_agents(self, connection: Connection, key_id: str) -> bool:
        """Whether this is the id of an agent's key that nobody has revoked."""
        of_agent = and_(keys.c.agent_type.is_not(None), keys.c.revoked_at.is_(None))
        return connection.scalar(select(keys.c.id).where(keys.c.id == key_id, of_agent)) is not None

    def revoke_agents(self, connection: Connection, user_id: str) -> None:
        """End the key of every agent that works for this user."""
        self._revoke(connection, and_(keys.c.agent_type.is_not(None), keys.c.user_id == user_id))

    def _revoke(self, connection: Connection, which: ColumnElement[bool]) -> None:
        ended = update(keys).where(which, keys.c.revoked_at.is_(None))
        connection.execute(ended.values(revoked_at=timestamp()))


def _insert_first(connection: Connection, row: dict[str, Any]) -> bool:
    if connection.dialect.name == "postgresql":  # on SQLite, who writes is alone
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
    admins = select(keys).where(keys.c.role == row["role"], keys.c.revoked_at.is_(None))
    if any(is_row_in_force(one) for one in connection.execute(admins)):
        return False
    connection.execute(insert(keys), [row])
    return True


def _hash(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


def is_row_in_force(row: Row[Any]) -> bool:
    """Whether a key's row says that the key is good now."""
    return row.revoked_at is None and (row.expires_at is None or row.expires_at > timestamp())


def principal_of_key(row: Row[Any]) -> Principal:
    """The holder of a key."""
    if row.node_id is not None:
        return of_node(row.node_id, f"key:{row.id}")
    if row.agent_type:
        holder = of_agent(AgentType(row.agent_type), f"key:{row.id}", row.user_id)
    else:
        holder = of_role(ROLES[row.role], f"key:{row.id}", row.user_id)
    if row.project_id is row.task_id is row.job_id is None:  # as most are, and it is quick to see
        return holder
    bound = {name: value for name in BOUND if (value := getattr(row, name)) is not None}
    return replace(holder, bound=bound)

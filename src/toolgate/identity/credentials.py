"""Every credential at one door: API keys, the admin key, access tokens, users' private keys.

A good one is remembered for a second, so its end takes effect everywhere within that time.
"""

import time
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Row, and_, bindparam, cast, select

from toolgate.db.engine import Database
from toolgate.db.oauth_tables import grants, tokens
from toolgate.db.prepared import PreparedStatement
from toolgate.db.tables import BytewiseText, documents
from toolgate.db.tables import keys as key_table
from toolgate.gate.audit_records import timestamp
from toolgate.gate.principal import Actor, Principal, Role, of_person, of_role
from toolgate.identity.keys import ONE as KEY
from toolgate.identity.keys import SETTING_KEY_ID, Keys, is_row_in_force, principal_of_key
from toolgate.identity.oauth import opaque, scopes
from toolgate.identity.users import Users
from toolgate.ports import users as user_records
from toolgate.ports.private_keys import may_be_private_key

REMEMBERED_SECONDS = 1.0
MAX_REMEMBERED = 10_000
SCOPE = scopes.TOOLS
PRIVATE_KEY = "private-key"
"""How the audit names what acts for a user whose private key is used."""

OF_TOKEN: tuple[Any, ...] = (
    tokens.c.hash.label("token_hash"),
    tokens.c.expires_at.label("token_expires_at"),
    tokens.c.ended_at,
    tokens.c.grant_id,
    grants.c.ended_at.label("grant_ended_at"),
    grants.c.client_id,
    grants.c.scope,
    grants.c.resource,
    grants.c.user_id.label("grant_user_id"),
    grants.c.key_id,
    grants.c.key_mark,
)
TOKEN = PreparedStatement(
    select(*OF_TOKEN, *key_table.c)
    .join(grants, grants.c.id == tokens.c.grant_id)
    .outerjoin(key_table, key_table.c.id == grants.c.key_id)
    .where(tokens.c.id == bindparam("id"), tokens.c.kind == "access")
)

OF_ITS_USER = and_(
    documents.c.namespace == user_records.NAMESPACE,
    documents.c.collection == user_records.USERS,
    # PostgreSQL compares no texts that are ordered in different ways.
    documents.c.id == cast(key_table.c.user_id, BytewiseText),
)
KEY_AND_USER = PreparedStatement(
    select(*key_table.c, documents.c.fields.label("user_record"))
    .outerjoin(documents, OF_ITS_USER)
    .where(key_table.c.id == bindparam("id"))
)


class InsufficientScope(Exception):
    """The token is good, but was not given for tools."""


@dataclass(slots=True)
class ValidCredential:
    """A good credential. Not frozen, since one is made for every key that was not seen lately."""

    principal: Principal
    resource: str | None = None
    """What an access token was made for; None for a key, which is good for everything."""
    scoped: bool = True
    until: float = 0.0
    """How long it is remembered."""


class Credentials:
    """Says who holds a credential, in a time that does not depend on how many there are."""

    def __init__(self, database: Database, keys: Keys, users: Users) -> None:
        self.keys = keys
        self.users = users
        self._database = database
        self._remembered: dict[bytes, ValidCredential] = {}
        self._revocations = keys.revocations
        self.forgotten = 0
        """How often everything was forgotten, because a credential may have ended here."""

    async def identify(
        self,
        credential: str,
        resources: Collection[str],
        oldest: float | None = None,
        digest: bytes | None = None,
    ) -> ValidCredential | None:
        """What is known of it; None when nobody holds it, or when it is for another server.

        `oldest` is for who wants to know sooner than within a second: how many seconds ago the
        database may have been asked. `digest` is for who has it already. Raises `InsufficientScope`
        for a token that is good, but not for tools.
        """
        valid = await self._find(credential, oldest, digest)
        if valid is None or (valid.resource is not None and valid.resource not in resources):
            return None
        if not valid.scoped:
            raise InsufficientScope
        return valid

    async def holder(self, credential: str, oldest: float | None = None) -> Principal | None:
        """Who holds it, on the machine itself: a token of ours is good for any of our addresses."""
        valid = await self._find(credential, oldest)
        return valid.principal if valid and valid.scoped else None

    async def _find(
        self, credential: str, oldest: float | None = None, digest: bytes | None = None
    ) -> ValidCredential | None:
        """What is known of it from a moment ago, or else what the database says."""
        if self._revocations != self.keys.revocations:
            self.forget()
        digest, now = digest or opaque.digest(credential), time.monotonic()
        cached = self._remembered.get(digest)
        stale = 0.0 if oldest is None else REMEMBERED_SECONDS - oldest
        if cached and cached.until > now + stale:
            return cached
        before = (self.keys.revocations, self.forgotten)
        until = now + REMEMBERED_SECONDS
        token_id = opaque.id_of(credential, opaque.ACCESS)
        if token_id is None:
            valid = await self._key(credential, digest, until)
        else:
            valid = await self._token(credential, token_id, until)
        if valid is None:
            return None
        if before != (self.keys.revocations, self.forgotten):
            return replace(valid, until=0.0)  # it may have ended while it was looked up
        if len(self._remembered) >= MAX_REMEMBERED:
            self._remembered.clear()
        self._remembered[digest] = valid
        return valid

    def forget(self) -> None:
        """Ask the database again about every credential."""
        self._remembered.clear()
        self._revocations = self.keys.revocations
        self.forgotten += 1

    async def _key(self, credential: str, digest: bytes, until: float) -> ValidCredential | None:
        """The holder of a key, with its user's record in one look-up where they are together."""
        if self.keys.is_admin_key(digest):
            return ValidCredential(of_role(Role.ADMIN, SETTING_KEY_ID), until=until)
        together = self.users.in_database
        row: Any = await self.keys.row(credential, digest, KEY_AND_USER if together else KEY)
        if row is None:
            return await self._private_key(credential, until)
        if not is_row_in_force(row):
            return None
        principal = principal_of_key(row)
        if not together:
            principal = await self.with_admin_role(principal)
        elif row.user_record is not None and user_records.is_admin(row.user_record):
            principal = _promoted(principal)
        return ValidCredential(principal, until=until)

    async def _private_key(self, credential: str, until: float) -> ValidCredential | None:
        """The user whose record has this key; raises `StoreUnavailable` where nobody knows."""
        if not may_be_private_key(credential):
            return None
        user = await self.users.holder_of(credential)
        if user is None:
            return None
        principal = replace(of_person(user.id), client_id=PRIVATE_KEY)
        if user_records.is_admin(user.fields):
            principal = _promoted(principal)
        return ValidCredential(principal, until=until)

    async def origin(self, credential: str) -> Actor | None:
        """What a credential belongs to, also one that has ended; None for what was never one."""
        token_id = opaque.id_of(credential, opaque.ACCESS)
        if token_id is not None:
            row = await self._row(credential, token_id)
            return Actor(row.client_id, row.grant_id) if row else None
        name = await self.keys.audit_name(credential)
        return Actor(client_id=name) if name else None

    async def _row(self, credential: str, token_id: str) -> Row[Any] | None:
        """The row of a token whose secret is right."""
        row = await self._database.look_up(TOKEN, {"id": token_id})
        return row if opaque.matches(credential, row.token_hash if row else None) else None

    async def _token(self, credential: str, token_id: str, until: float) -> ValidCredential | None:
        row = await self._row(credential, token_id)
        if not row or row.ended_at or row.grant_ended_at or row.token_expires_at <= timestamp():
            return None
        principal = self._holder(row)
        if principal is None:
            return None
        principal = replace(
            await self.with_admin_role(principal),
            read_only=scopes.is_read_only(row.scope),
            client_id=row.client_id,
            grant_id=row.grant_id,
        )
        return ValidCredential(principal, row.resource, scopes.allows_tools(row.scope), until)

    def _holder(self, row: Row[Any]) -> Principal | None:
        """Who the grant is of; nobody any more when the key it was signed in with has ended."""
        if row.key_id is None:
            return of_person(row.grant_user_id)
        if row.key_id == SETTING_KEY_ID:
            same = row.key_mark == self.keys.admin_mark
            return of_role(Role.ADMIN, SETTING_KEY_ID) if same else None
        return principal_of_key(row) if row.id is not None and is_row_in_force(row) else None

    async def with_admin_role(self, principal: Principal) -> Principal:
        """A user whose record says admin is one everywhere."""
        user_id = principal.user_id
        if Role.USER not in principal.roles or user_id is None:
            return principal
        return _promoted(principal) if await self.users.is_admin(user_id) else principal


def _promoted(principal: Principal) -> Principal:
    """Whom the record of an admin makes one: a user, but no agent that works for it."""
    if Role.USER not in principal.roles:
        return principal
    return replace(principal, roles=principal.roles | {Role.ADMIN})

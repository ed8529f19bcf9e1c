"""Every credential at one door: API keys, the admin key, access tokens, users' private keys.

A good one is remembered for as long as nothing happens to it, and asked about again where that
could not be told for a second: so its end takes effect everywhere within that time.
"""

import time
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from math import inf
from typing import Any

from sqlalchemy import Row, and_, bindparam, cast, select

from toolgate.db.engine import Database
from toolgate.db.oauth_tables import grants, tokens
from toolgate.db.prepared import PreparedStatement
from toolgate.db.tables import BytewiseText, documents
from toolgate.db.tables import keys as key_table
from toolgate.gate.audit_records import timestamp
from toolgate.gate.principal import Actor, Principal, Role, of_person, of_role
from toolgate.identity.credential_changes import CredentialChanges
from toolgate.identity.keys import ONE as KEY
from toolgate.identity.keys import SETTING_KEY_ID, Keys, is_row_in_force, principal_of_key
from toolgate.identity.oauth import opaque, scopes
from toolgate.identity.users import Users
from toolgate.ports import users as user_records
from toolgate.ports.private_keys import may_be_private_key

REMEMBERED_SECONDS = 1.0
"""How old may be what is known of a credential."""
LONGEST_SECONDS = 60.0
"""After which one is asked about again, although nothing was told of it."""
MAX_REMEMBERED = 30_000
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
    """How long it is good without another look."""
    names: tuple[str, ...] = ()
    """What it is made of, as `KIND:ID`; empty where changes of that are not told."""
    since: int = -1
    """After which look at the changes it was read."""
    longest: float = 0.0
    """How long it may be remembered at most."""
    ends: float = inf
    """When it expires, in seconds since 1970."""


class Credentials:
    """Says who holds a credential, in a time that does not depend on how many there are."""

    def __init__(self, database: Database, keys: Keys, users: Users) -> None:
        self.keys = keys
        self.users = users
        self.changes = CredentialChanges(database)
        self._database = database
        self._remembered: OrderedDict[bytes, ValidCredential] = OrderedDict()
        """Those that were not asked for lately come first."""
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

    def recall(self, digest: bytes, resources: Collection[str]) -> ValidCredential | None:
        """A good credential that is remembered, by its digest; None says nothing."""
        now = time.monotonic()
        valid = self._known(digest, now, now)
        if valid is None or not valid.scoped:
            return None
        return valid if valid.resource is None or valid.resource in resources else None

    async def holder(self, credential: str, oldest: float | None = None) -> Principal | None:
        """Who holds it, on the machine itself: a token of ours is good for any of our addresses."""
        valid = await self._find(credential, oldest)
        return valid.principal if valid and valid.scoped else None

    async def _find(
        self, credential: str, oldest: float | None = None, digest: bytes | None = None
    ) -> ValidCredential | None:
        """What is known of it from a moment ago, or else what the database says."""
        digest, now = digest or opaque.digest(credential), time.monotonic()
        latest = now if oldest is None else now + REMEMBERED_SECONDS - oldest
        if cached := self._known(digest, now, latest):
            return cached
        before, looks = (self.keys.revocations, self.forgotten), self.changes.looks
        token_id = opaque.id_of(credential, opaque.ACCESS)
        if token_id is None:
            valid = await self._key(credential, digest)
        else:
            valid = await self._token(credential, token_id)
        if valid is None:
            return None
        if before != (self.keys.revocations, self.forgotten):
            return valid  # it may have ended while it was looked up
        if looks == self.changes.looks:  # or a change may have been told while it was looked up
            valid.since = looks
        valid.longest = now + LONGEST_SECONDS
        _set_end(valid, now, now + REMEMBERED_SECONDS)
        self._remember(digest, valid)
        return valid

    def _remember(self, digest: bytes, valid: ValidCredential) -> None:
        if digest not in self._remembered and len(self._remembered) >= MAX_REMEMBERED:
            self._remembered.popitem(last=False)
        self._remembered[digest] = valid
        self._remembered.move_to_end(digest)

    def _known(self, digest: bytes, now: float, latest: float) -> ValidCredential | None:
        """One that is good at least until `latest`, since nothing has happened to it."""
        if self._revocations != self.keys.revocations:
            self.forget()
        valid = self._remembered.get(digest)
        if valid is None or valid.until > latest:
            return valid
        until = self.changes.seen_at + REMEMBERED_SECONDS
        if until <= latest or valid.longest <= latest or not valid.names:
            return None
        if not self.changes.is_unchanged(valid.names, valid.since):
            return None
        _set_end(valid, now, until)
        self._remembered.move_to_end(digest)
        return valid if valid.until > latest else None

    def forget(self) -> None:
        """Ask the database again about every credential."""
        self._remembered.clear()
        self._revocations = self.keys.revocations
        self.forgotten += 1

    async def _key(self, credential: str, digest: bytes) -> ValidCredential | None:
        """The holder of a key, with its user's record in one look-up where they are together."""
        if self.keys.is_admin_key(digest):
            return ValidCredential(of_role(Role.ADMIN, SETTING_KEY_ID))
        together = self.users.in_database
        row: Any = await self.keys.row(credential, digest, KEY_AND_USER if together else KEY)
        if row is None:
            return await self._private_key(credential)
        if not is_row_in_force(row):
            return None
        valid = ValidCredential(principal_of_key(row), names=(f"key:{row.id}",))
        if row.expires_at is not None:
            valid.ends = _seconds(row.expires_at)
        if not together:
            return await self._with_record(valid)
        if row.user_id is not None:
            valid.names = (*valid.names, f"user:{row.user_id}")
        if row.user_record is not None and user_records.is_admin(row.user_record):
            valid.principal = _promoted(valid.principal)
        return valid

    async def _private_key(self, credential: str) -> ValidCredential | None:
        """The user whose record has this key; raises `StoreUnavailable` where nobody knows."""
        if not may_be_private_key(credential):
            return None
        user = await self.users.holder_of(credential)
        if user is None:
            return None
        principal = replace(of_person(user.id), client_id=PRIVATE_KEY)
        if user_records.is_admin(user.fields):
            principal = _promoted(principal)
        # Without names: it is good only if no other record has the same.
        return ValidCredential(principal)

    async def origin(self, credential: str) -> Actor | None:
        """What a credential belongs to, also one that has ended; None for what was never one."""
        token_id = opaque.id_of(credential, opaque.ACCESS)
        if token_id is not None:
            row = await self._row(credential, token_id)
            return Actor(row.client_id, row.grant_id) if row else None
        name = await self.keys.audit_name(credential)
        return Actor(client_id=name) if name else None

    async def has_expired(self, credential: str) -> bool:
        """Whether a credential was good until its time was over, and nobody ended it before."""
        token_id = opaque.id_of(credential, opaque.ACCESS)
        if token_id is None:
            row: Any = await self.keys.row(credential, opaque.digest(credential))
            expires = row.expires_at if row and row.revoked_at is None else None
        else:
            row = await self._row(credential, token_id)
            in_force = row and not row.ended_at and not row.grant_ended_at
            expires = row.token_expires_at if in_force else None
        return expires is not None and expires <= timestamp()

    async def _row(self, credential: str, token_id: str) -> Row[Any] | None:
        """The row of a token whose secret is right."""
        row = await self._database.look_up(TOKEN, {"id": token_id})
        return row if opaque.matches(credential, row.token_hash if row else None) else None

    async def _token(self, credential: str, token_id: str) -> ValidCredential | None:
        row = await self._row(credential, token_id)
        if not row or row.ended_at or row.grant_ended_at or row.token_expires_at <= timestamp():
            return None
        principal = self._holder(row)
        if principal is None:
            return None
        names = [f"token:{token_id}", f"grant:{row.grant_id}"]
        ends = [_seconds(row.token_expires_at)]
        if row.id is not None:
            names.append(f"key:{row.id}")
            ends += [_seconds(row.expires_at)] if row.expires_at is not None else []
        valid = ValidCredential(
            replace(
                principal,
                read_only=scopes.is_read_only(row.scope),
                client_id=row.client_id,
                grant_id=row.grant_id,
            ),
            row.resource,
            scopes.allows_tools(row.scope),
            names=tuple(names),
            ends=min(ends),
        )
        return await self._with_record(valid)

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

    async def _with_record(self, valid: ValidCredential) -> ValidCredential:
        """With the role that the user's record gives."""
        user_id = valid.principal.user_id
        if Role.USER not in valid.principal.roles or user_id is None:
            return valid
        admin = await self.users.is_admin(user_id)
        if admin:
            valid.principal = _promoted(valid.principal)
        # Nobody tells what changes outside of the database, nor when a record can be read again.
        told = admin is not None and self.users.in_database
        valid.names = (*valid.names, f"user:{user_id}") if told else ()
        return valid


def _set_end(valid: ValidCredential, now: float, until: float) -> None:
    """Good until then, but not after it has expired."""
    until = min(until, valid.longest)
    # Most never expire, and time matters here.
    valid.until = until if valid.ends == inf else min(until, now + valid.ends - time.time())


def _seconds(stored: str) -> float:
    """A stored time, in seconds since 1970."""
    return datetime.fromisoformat(stored).timestamp()


def _promoted(principal: Principal) -> Principal:
    """Whom the record of an admin makes one: a user, but no agent that works for it."""
    if Role.USER not in principal.roles:
        return principal
    return replace(principal, roles=principal.roles | {Role.ADMIN})

"""Grants: what a person allowed a client, the code for it, and the tokens that come of it.

Every step is one transaction that begins with the lock of the grant's row, so that of several
requests at once on several workers each sees what the one before it did.
"""

from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from toolgate.db.engine import Database
from toolgate.db.oauth_tables import grants, tokens
from toolgate.gate.audit_records import timestamp
from toolgate.identity.keys import Keys
from toolgate.identity.oauth import opaque, scopes
from toolgate.identity.oauth.audit_notes import (
    GRANTED,
    REFRESHED,
    REVOKED,
    TOKEN_ISSUED,
    Note,
    principal_of_grant,
)
from toolgate.identity.oauth.clients import extend_client
from toolgate.identity.oauth.expiry import delete_expired
from toolgate.identity.oauth.refusals import (
    ALREADY,
    KEY_ENDED,
    WRONG_CODE,
    WRONG_TOKEN,
    CodeRequest,
    RefreshRequest,
    Refusal,
    code_refusal,
    refresh_refusal,
)
from toolgate.identity.oauth.sign_ins import (
    AuthorizationRequest,
    SignIn,
    Subject,
    delete_sign_in,
    grant_of,
    set_grant,
)

CODE_SECONDS = 60
GRACE_SECONDS = 10
"""How long a refresh token may be sent again, for an answer that was lost."""

ENDED_SECONDS = 3600
"""How long an expired token is still known: who sends it does not guess."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """A pair just made; only hashes are kept."""

    access: str
    refresh: str
    seconds: int
    scope: str


class Grants:
    """Makes codes from consent, tokens from codes, and tokens from refresh tokens."""

    def __init__(
        self, database: Database, keys: Keys, *, access_seconds: float, refresh_seconds: float
    ) -> None:
        self._database = database
        self._keys = keys
        self._access_seconds = access_seconds
        self._refresh_seconds = refresh_seconds

    async def is_key_in_force(self, subject: Subject) -> bool:
        """Whether the key that somebody signed in with is still in force."""
        mark = _key_mark(subject)
        return await self._database.read(
            lambda connection: self._keys.is_in_force(connection, subject.key_id, mark), quick=True
        )

    async def allow(
        self, sign_in: SignIn, note: Note, *, reading_only: bool = False
    ) -> str | Refusal:
        """Answer the sign-in with a grant, once; the code for it."""
        code = opaque.new(opaque.CODE)
        assert sign_in.subject is not None
        authorization = sign_in.asked
        if reading_only:
            authorization = replace(authorization, scope=scopes.read_only(authorization.scope))
        row = _new_grant(authorization, sign_in.subject, code)

        def keep(connection: Connection) -> str | Refusal:
            if not self._keys.is_in_force(connection, row["key_id"], row["key_mark"]):
                return Refusal("access_denied", KEY_ENDED, "oauth-key-ended")
            if not set_grant(connection, sign_in, row["id"]):
                return Refusal("access_denied", ALREADY, "oauth-answered-twice")
            self._store(connection, row, note)
            return code.text

        return await self._database.write(keep)

    async def deny(self, sign_in: SignIn, note: Note) -> None:
        """End the sign-in, and the grant that came of it, if the person had allowed it before."""

        def end(connection: Connection) -> None:
            grant = _lock(connection, grant_of(connection, sign_in))
            if grant is not None and grant.ended_at is None:
                note(connection, REVOKED, principal_of_grant(connection, _audited_fields(grant)))
                _end(connection, grant.id)
            delete_sign_in(connection, sign_in)

        await self._database.write(end)

    async def allow_at_once(
        self, authorization: AuthorizationRequest, subject: Subject, note: Note
    ) -> str:
        """The code of a grant for somebody who has proved who they are with the request itself."""
        code = opaque.new(opaque.CODE)
        row = _new_grant(authorization, subject, code)
        await self._database.write(lambda connection: self._store(connection, row, note))
        return code.text

    def _store(self, connection: Connection, row: dict[str, Any], note: Note) -> None:
        delete_expired(connection, grants)
        connection.execute(insert(grants), [row])
        extend_client(connection, row["client_id"], self._refresh_seconds)
        note(connection, GRANTED, principal_of_grant(connection, row))

    async def exchange(self, use: CodeRequest, note: Note) -> Tokens | Refusal:
        """Tokens for a code, once."""
        # Looked at first: what cannot succeed must not take the database's write lock.
        refusal = await self._database.read(lambda c: _code_refusal(c, use.code), quick=True)
        return refusal or await self._database.write(
            lambda connection: self._exchange(connection, use, note)
        )

    def _exchange(self, connection: Connection, use: CodeRequest, note: Note) -> Tokens | Refusal:
        grant = _lock(connection, opaque.id_of(use.code, opaque.CODE))
        good = opaque.matches(use.code, grant.code if grant else None)
        if not grant or not good:
            return Refusal("invalid_grant", WRONG_CODE, "oauth-unknown-code")
        return _with_grant(grant, self._use_code(connection, grant, use, note))

    def _use_code(
        self, connection: Connection, grant: Row[Any], use: CodeRequest, note: Note
    ) -> Tokens | Refusal:
        if grant.code_used_at is not None or grant.ended_at is not None:
            _end(connection, grant.id)
            return Refusal("invalid_grant", WRONG_CODE, "oauth-code-reused")
        if refusal := code_refusal(grant, use):
            return refusal
        if refusal := self._key_ended(connection, grant):
            return refusal
        used = update(grants).where(grants.c.id == grant.id).values(code_used_at=timestamp())
        connection.execute(used)
        note(connection, TOKEN_ISSUED, principal_of_grant(connection, _audited_fields(grant)))
        return self._issue(connection, grant, None)

    async def refresh(self, use: RefreshRequest, note: Note) -> Tokens | Refusal:
        """A new pair for a refresh token, which is then used up."""
        refusal = await self._database.read(lambda c: _token_refusal(c, use.token), quick=True)
        return refusal or await self._database.write(
            lambda connection: self._refresh(connection, use, note)
        )

    def _refresh(self, connection: Connection, use: RefreshRequest, note: Note) -> Tokens | Refusal:
        token = _token(connection, opaque.id_of(use.token, opaque.REFRESH))
        good = opaque.matches(use.token, token.hash if token else None)
        grant = _lock(connection, token.grant_id if token else None)
        if not token or not good or not grant:
            return Refusal("invalid_grant", WRONG_TOKEN, "oauth-unknown-refresh-token")
        if refusal := refresh_refusal(grant, use):
            return refusal.with_grant(grant)
        # Read again, now that nobody else may change it.
        token = _token(connection, token.id)
        return _with_grant(grant, self._use_token(connection, grant, token, note))

    def _use_token(
        self, connection: Connection, grant: Row[Any], token: Row[Any] | None, note: Note
    ) -> Tokens | Refusal:
        if not token or token.expires_at <= timestamp():
            return Refusal("invalid_grant", WRONG_TOKEN, "oauth-refresh-expired")
        if _is_reuse(connection, token):
            _end(connection, grant.id)
            return Refusal("invalid_grant", WRONG_TOKEN, "oauth-refresh-reused")
        if refusal := self._key_ended(connection, grant):
            return refusal
        if token.used_at is None:
            used = update(tokens).where(tokens.c.id == token.id).values(used_at=timestamp())
            connection.execute(used)
        note(connection, REFRESHED, principal_of_grant(connection, _audited_fields(grant)))
        return self._issue(connection, grant, token.id)

    def _key_ended(self, connection: Connection, grant: Row[Any]) -> Refusal | None:
        """End a grant of which the key was revoked or changed: it does not come back with it."""
        if self._keys.is_in_force(connection, grant.key_id, grant.key_mark):
            return None
        _end(connection, grant.id)
        return Refusal("invalid_grant", f"{KEY_ENDED} Sign in again.", "oauth-key-ended")

    def _issue(self, connection: Connection, grant: Row[Any], parent: str | None) -> Tokens:
        """Store a new pair; an earlier one from the same refresh token ends."""
        if parent is not None:
            earlier = update(tokens).where(
                tokens.c.grant_id == grant.id,
                tokens.c.parent_id == parent,
                tokens.c.ended_at.is_(None),
            )
            connection.execute(earlier.values(ended_at=timestamp()))
        until = timestamp(seconds=self._refresh_seconds)
        delete_expired(connection, tokens, kept_seconds=ENDED_SECONDS)
        delete_expired(connection, grants)
        connection.execute(update(grants).where(grants.c.id == grant.id).values(expires_at=until))
        access, refresh = opaque.new(opaque.ACCESS), opaque.new(opaque.REFRESH)
        of_grant = {"grant_id": grant.id, "parent_id": parent, "created_at": timestamp()}
        soon = timestamp(seconds=self._access_seconds)
        rows = [
            {"id": access.id, "hash": access.hash, "kind": "access", "expires_at": soon},
            {"id": refresh.id, "hash": refresh.hash, "kind": "refresh", "expires_at": until},
        ]
        connection.execute(insert(tokens), [row | of_grant for row in rows])
        extend_client(connection, grant.client_id, self._refresh_seconds)
        return Tokens(access.text, refresh.text, round(self._access_seconds), grant.scope)

    async def revoke(self, text: str, client_id: str | None, note: Note) -> Refusal | None:
        """End a token: a refresh token with its whole grant, an access token alone."""
        if not await self._database.read(lambda c: _is_token(c, text), quick=True):
            return None
        return await self._database.write(lambda c: _revoke(c, text, client_id, note))


def _code_refusal(connection: Connection, text: str) -> Refusal | None:
    """Why this is no code that could be exchanged; one that was used is looked at under a lock."""
    code_id = opaque.id_of(text, opaque.CODE)
    grant = connection.execute(select(grants).where(grants.c.id == (code_id or ""))).first()
    if not opaque.matches(text, grant.code if grant else None) or not grant:
        return Refusal("invalid_grant", WRONG_CODE, "oauth-unknown-code")
    if grant.ended_at is not None:
        return Refusal("invalid_grant", WRONG_CODE, "oauth-code-reused").with_grant(grant)
    return None


def _token_refusal(connection: Connection, text: str) -> Refusal | None:
    """Why this is no refresh token that could be exchanged; the rest is looked at under a lock."""
    token = _token(connection, opaque.id_of(text, opaque.REFRESH))
    if not opaque.matches(text, token.hash if token else None) or not token:
        return Refusal("invalid_grant", WRONG_TOKEN, "oauth-unknown-refresh-token")
    grant = connection.execute(select(grants).where(grants.c.id == token.grant_id)).first()
    if grant is None or grant.ended_at is not None:
        refusal = Refusal("invalid_grant", WRONG_TOKEN, "oauth-grant-ended")
        return refusal.with_grant(grant) if grant else refusal
    return None


def _with_grant(grant: Row[Any], outcome: Tokens | Refusal) -> Tokens | Refusal:
    return outcome.with_grant(grant) if isinstance(outcome, Refusal) else outcome


def _is_token(connection: Connection, text: str) -> bool:
    token_id = opaque.id_of(text, opaque.REFRESH) or opaque.id_of(text, opaque.ACCESS)
    token = _token(connection, token_id)
    return opaque.matches(text, token.hash if token else None)


def _new_grant(
    authorization: AuthorizationRequest, subject: Subject, code: opaque.Secret
) -> dict[str, Any]:
    return {
        "id": code.id,
        "client_id": authorization.client_id,
        "user_id": subject.user_id,
        "key_id": subject.key_id,
        "key_mark": _key_mark(subject),
        "scope": authorization.scope,
        "resource": authorization.resource,
        "redirect_uri": authorization.redirect_uri,
        "challenge": authorization.challenge,
        "code": code.hash,
        "code_expires_at": timestamp(seconds=CODE_SECONDS),
        "created_at": timestamp(),
        "expires_at": timestamp(seconds=2 * CODE_SECONDS),
    }


def _key_mark(subject: Subject) -> bytes | None:
    return bytes.fromhex(subject.key_mark) if subject.key_mark else None


def _is_reuse(connection: Connection, token: Row[Any]) -> bool:
    """Whether a refresh token comes a second time, and not just after an answer that was lost.

    A token whose pair was replaced (`ended_at`) is in two hands: the lost answer was not lost.
    """
    if token.ended_at is not None:
        return True
    if token.used_at is None:
        return False
    if token.used_at < timestamp(seconds=-GRACE_SECONDS):
        return True
    successors = select(tokens.c.id).where(
        tokens.c.grant_id == token.grant_id,
        tokens.c.parent_id == token.id,
        tokens.c.used_at.is_not(None),
    )
    return connection.execute(successors).first() is not None


def _revoke(connection: Connection, text: str, client_id: str | None, note: Note) -> Refusal | None:
    token_id = opaque.id_of(text, opaque.REFRESH) or opaque.id_of(text, opaque.ACCESS)
    token = _token(connection, token_id)
    good = opaque.matches(text, token.hash if token else None)
    if not token or not good:
        return None
    grant = _lock(connection, token.grant_id)
    if grant is None:
        return None
    if client_id is not None and grant.client_id != client_id:
        message = "The token was given to another client."
        return Refusal("invalid_client", message, "oauth-revoke-by-another-client").with_grant(
            grant
        )
    ends_grant = token.kind == "refresh"
    if grant.ended_at is None and (ends_grant or token.ended_at is None):
        note(connection, REVOKED, principal_of_grant(connection, _audited_fields(grant)))
    if ends_grant:
        _end(connection, token.grant_id)
    else:
        statement = update(tokens).where(tokens.c.id == token.id).values(ended_at=timestamp())
        connection.execute(statement)
    return None


def _lock(connection: Connection, grant_id: str | None) -> Row[Any] | None:
    one = select(grants).where(grants.c.id == (grant_id or "")).with_for_update()
    return connection.execute(one).first()


def _token(connection: Connection, token_id: str | None) -> Row[Any] | None:
    return connection.execute(select(tokens).where(tokens.c.id == (token_id or ""))).first()


def _end(connection: Connection, grant_id: str) -> None:
    statement = update(grants).where(grants.c.id == grant_id, grants.c.ended_at.is_(None))
    connection.execute(statement.values(ended_at=timestamp()))


def _audited_fields(grant: Row[Any]) -> dict[str, Any]:
    return {name: getattr(grant, name) for name in ("id", "client_id", "user_id", "key_id")}

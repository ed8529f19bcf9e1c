"""Sign-ins on their way: what a client asked for, until the person has answered.

Each is bound to the browser it began in, by a secret in a cookie of which the hash is kept. The
cookie alone decides nothing: browsers send it to every port of a host, so another server on this
machine may hold it. Consent needs a token, which is told once, to the browser that signs in.
"""

import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from sqlalchemy import Connection, Row, Text, cast, delete, insert, select, update

from toolgate.db.engine import Database
from toolgate.db.oauth_tables import sign_ins
from toolgate.gate.audit_records import timestamp
from toolgate.identity.oauth import opaque
from toolgate.identity.oauth.audit_notes import SIGNED_IN, Note, principal_of
from toolgate.identity.oauth.eviction import make_room, network_of
from toolgate.identity.oauth.expiry import delete_expired

SECONDS = 600
MAX_MISSES = 5
CONSENT = "consent"
"""What is remembered of the token of the consent page: its hash."""
GRANT = "grant"
"""What is remembered of an answer: the grant that came of it."""
MAX_AT_ONCE = 5000
"""Without anybody having signed in, of everybody: past it some go. Each peer is limited before."""
NOBODY_YET = cast(sign_ins.c.subject, Text) == "null"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationRequest:
    """An authorization request that was found good."""

    client_id: str
    client_name: str
    client_uri: str | None
    redirect_uri: str
    state: str | None
    challenge: str
    resource: str
    scope: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Who signed in: a user, or the holder of a key."""

    shown: str
    """How a page calls them."""
    user_id: str | None = None
    key_id: str | None = None
    key_mark: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """One sign-in on its way."""

    id: str
    secret: str
    """What the browser's cookie holds."""
    asked: AuthorizationRequest
    remembered: Mapping[str, str]
    subject: Subject | None

    @property
    def form_token(self) -> str:
        """Proves that a form was shown to the browser that sends it."""
        return opaque.derive(self.secret, f"form:{self.id}")

    @property
    def allowed(self) -> bool:
        """Whether the person has answered with Allow."""
        return self.subject is not None and GRANT in self.remembered

    def may_decide(self, token: str) -> bool:
        """Whether this token was given to the browser in which the person signed in."""
        token_digest = self.remembered.get(CONSENT) if self.subject else None
        return opaque.matches(token, bytes.fromhex(token_digest) if token_digest else None)

    @property
    def state(self) -> str:
        """What a provider hands back: which sign-in, and that this browser began it."""
        return f"{self.id}.{opaque.derive(self.secret, f'state:{self.id}')}"


class SignIns:
    """Keeps sign-ins, for ten minutes each, where every worker finds them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, authorization: AuthorizationRequest, peer: str = "") -> SignIn:
        """Keep a new one."""
        sign_in = SignIn(
            id=secrets.token_hex(16),
            secret=secrets.token_hex(32),
            asked=authorization,
            remembered={},
            subject=None,
        )
        row: dict[str, Any] = {
            "id": sign_in.id,
            "browser": opaque.digest(sign_in.secret),
            "asked": asdict(authorization),
            "client_id": authorization.client_id,
            "network": network_of(peer),
            "remembered": {},
            "subject": None,
            "misses": 0,
            "created_at": timestamp(),
            "expires_at": timestamp(seconds=SECONDS),
        }

        def keep(connection: Connection) -> None:
            delete_expired(connection, sign_ins)
            make_room(connection, sign_ins, NOBODY_YET, MAX_AT_ONCE)
            connection.execute(insert(sign_ins), [row])

        await self._database.write(keep)
        return sign_in

    async def find(self, sign_in_id: str, secret: str) -> SignIn | None:
        """The sign-in, if this browser began it and it is not over."""
        if not sign_in_id.isalnum() or not sign_in_id.isascii():
            return None
        one = select(sign_ins).where(sign_ins.c.id == sign_in_id)
        row = await self._database.read(lambda c: c.execute(one).first(), quick=True)
        good = opaque.matches(secret, row.browser if row else None)
        if not row or not good or row.expires_at <= timestamp() or row.misses >= MAX_MISSES:
            return None
        return _sign_in(row, secret)

    async def remember(self, sign_in: SignIn, what: Mapping[str, str]) -> None:
        """Keep what a provider wants to be told again."""
        await self._change(sign_in, remembered=dict(what))

    async def set_subject(self, sign_in: SignIn, subject: Subject, note: Note) -> str:
        """The person has proved who they are; the token with which they may decide."""
        token = secrets.token_hex(32)
        changed = update(sign_ins).where(sign_ins.c.id == sign_in.id)
        remembered = {CONSENT: opaque.digest(token).hex()}
        statement = changed.values(subject=asdict(subject), remembered=remembered)

        def keep(connection: Connection) -> None:
            if grant_of(connection, sign_in):
                return  # the token decides nothing: the answer stays
            connection.execute(statement)
            who = principal_of(connection, subject.user_id, subject.key_id)
            note(connection, SIGNED_IN, replace(who, client_id=sign_in.asked.client_id))

        await self._database.write(keep)
        return token

    async def count_wrong_key(self, sign_in: SignIn) -> None:
        """Count a wrong key; after a few the sign-in is over."""
        await self._change(sign_in, misses=sign_ins.c.misses + 1)

    async def end(self, sign_in: SignIn) -> None:
        """End it."""
        await self._database.write(lambda c: delete_sign_in(c, sign_in))

    async def _change(self, sign_in: SignIn, **values: Any) -> None:
        changed = update(sign_ins).where(sign_ins.c.id == sign_in.id).values(**values)
        await self._database.write(lambda c: c.execute(changed))


def _lock(connection: Connection, sign_in: SignIn) -> Row[Any] | None:
    one = select(sign_ins).where(sign_ins.c.id == sign_in.id).with_for_update()
    return connection.execute(one).first()


def grant_of(connection: Connection, sign_in: SignIn) -> str | None:
    """The grant that came of a sign-in, if one did; until the transaction ends, none can."""
    row = _lock(connection, sign_in)
    return row.remembered.get(GRANT) if row and row.subject else None


def set_grant(connection: Connection, sign_in: SignIn, grant_id: str) -> bool:
    """Keep which grant comes of a sign-in: of two answers at once, one succeeds."""
    row = _lock(connection, sign_in)
    if row is None or GRANT in row.remembered:
        return False
    remembered = {**row.remembered, GRANT: grant_id}
    statement = update(sign_ins).where(sign_ins.c.id == sign_in.id).values(remembered=remembered)
    connection.execute(statement)
    return True


def delete_sign_in(connection: Connection, sign_in: SignIn) -> None:
    """Take a sign-in out of the table."""
    connection.execute(delete(sign_ins).where(sign_ins.c.id == sign_in.id))


def _sign_in(row: Row[Any], secret: str) -> SignIn:
    return SignIn(
        id=row.id,
        secret=secret,
        asked=AuthorizationRequest(**row.asked),
        remembered=row.remembered,
        subject=Subject(**row.subject) if row.subject else None,
    )

"""The application's record of a person: made at the first sign-in, asked for the admin role."""

import logging
from collections.abc import Callable

from sqlalchemy import Connection

from toolgate.db.engine import Database
from toolgate.identity.providers import Profile, SignInFailed
from toolgate.ports import private_keys
from toolgate.ports.documents import (
    Create,
    DocumentExists,
    DocumentStore,
    DocumentTransaction,
    Filter,
    Merge,
    Operator,
    Query,
    StoredDocument,
    StoreUnavailable,
)
from toolgate.ports.rules import broken_id_rule
from toolgate.ports.users import USERS, Record
from toolgate.ports.users import first_record as new_user
from toolgate.ports.users import is_admin as says_admin

logger = logging.getLogger(__name__)

Note = Callable[[Connection], None]
"""Stores, beside a change, who made it."""


class NoSuchUser(ValueError):
    """There is no such record, or none with a private key."""


class HasPrivateKey(ValueError):
    """The user has a private key already."""


class Users:
    """Reads and begins the records of users."""

    def __init__(self, documents: DocumentStore, database: Database) -> None:
        self._documents = documents
        self._database = database
        self.in_database = documents.joins_transaction
        """Whether the records are in the database of the keys: then one look-up finds both."""

    async def ensure_record(self, profile: Profile) -> None:
        """Make the person's record if there is none yet; an existing one stays as it is."""
        if not profile.uid or broken_id_rule(profile.uid):
            raise SignInFailed("Your account has an id that cannot be used here.")
        if await self._documents.get(USERS, profile.uid) is not None:
            return
        try:
            async with self._database.transaction() as tx:
                new = Create(USERS, profile.uid, first_record(profile))
                await self._documents.write(tx, new)
        except DocumentExists:
            pass  # another sign-in of the same person was quicker

    async def is_admin(self, uid: str) -> bool | None:
        """Whether the person's record says so; None, as good as no, where it cannot be read."""
        if broken_id_rule(uid):
            return False
        try:
            record = await self._documents.get(USERS, uid)
        except StoreUnavailable:
            logger.warning("the record of user %s cannot be read: no admin role", uid)
            return None
        return says_admin(record)

    async def holder_of(self, private_key: str) -> StoredDocument | None:
        """The one user whose private key this is, found by the index.

        Raises `StoreUnavailable` where the store does not answer: nobody is let in on a guess.
        """
        kept = [private_keys.stored_form(private_key), private_key]
        holds = Filter(private_keys.FIELD, Operator.IN, kept)
        found = await self._documents.query(Query(USERS, [holds], limit=2))
        holders = [one for one in found if private_keys.holds(one.fields, private_key)]
        return holders[0] if len(holders) == 1 else None

    async def give_private_key(self, uid: str, note: Note, *, replacing: bool) -> str:
        """A new private key of this user; an older one is good no more.

        Raises `NoSuchUser`, or `HasPrivateKey` where there is one that is not to be replaced.
        """
        key = private_keys.new_private_key()
        await self._set_private_key(uid, private_keys.stored_form(key), note, replacing=replacing)
        return key

    async def end_private_key(self, uid: str, note: Note) -> None:
        """The user has no private key any more; raises `NoSuchUser` where there was none."""
        await self._set_private_key(uid, None, note, replacing=True)

    async def _set_private_key(
        self, uid: str, stored: str | None, note: Note, *, replacing: bool
    ) -> None:
        if not uid or broken_id_rule(uid):
            raise NoSuchUser(uid)

        async def work(documents: DocumentTransaction) -> None:
            record = await documents.get(USERS, uid)
            before = private_keys.stored_key(record)
            if record is None or (stored is None and before is None):
                raise NoSuchUser(uid)
            if before is not None and not replacing:
                raise HasPrivateKey(uid)
            documents.write(Merge(USERS, uid, {"api": {"privateKey": stored}}))

        async with self._database.transaction() as tx:
            await self._documents.transact(tx, work)
            await tx.run(note)


def first_record(profile: Profile) -> Record:
    """A person's record as it begins.

    It has no `api.privateKey`: toolgate keeps no key in plain text, so one is made when somebody is
    there to see it (`toolgate users key UID`).
    """
    return new_user(profile.uid, profile.email, profile.name)

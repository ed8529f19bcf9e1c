"""The application's record of a person: made at the first sign-in, asked for the admin role."""

import logging
import secrets

from toolgate.db.engine import Database
from toolgate.identity.providers import Profile, SignInFailed
from toolgate.ports.documents import Create, DocumentExists, DocumentStore, StoreUnavailable
from toolgate.ports.rules import broken_id_rule
from toolgate.ports.users import USERS, Record, new_record
from toolgate.ports.users import is_admin as says_admin

logger = logging.getLogger(__name__)


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

    async def is_admin(self, uid: str) -> bool:
        """Whether the person's record says so; a record that cannot be read says nothing."""
        if broken_id_rule(uid):
            return False
        try:
            record = await self._documents.get(USERS, uid)
        except StoreUnavailable:
            logger.warning("the record of user %s cannot be read: no admin role", uid)
            return False
        return says_admin(record)


def first_record(profile: Profile) -> Record:
    """A person's record as it begins.

    It has no `api.privateKey`: toolgate keeps no key in plain text. `toolgate keys create
    --role user --user UID` makes one that is kept as a hash.
    """
    record = new_record(profile.uid, profile.email, profile.name)
    return record | {"api": {"clientId": secrets.token_hex(16)}}

"""Who may be sent marketing: the one place that says so, for contacts, campaigns and mail.

No means no, whoever says it: the user's record (`consent.marketing.status` is `revoked`), an
unsubscribe from everything (a deleted contact), or one from the group that a mail belongs to.
Nothing said is no refusal. It is asked again right before sending: a campaign that runs for an
hour heeds what was revoked in that hour.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from toolgate.db.transactions import Transaction
from toolgate.packs.backend.mail.addresses import normalised, spellings
from toolgate.packs.backend.mail.senders import MARKETING_GROUPS, is_marketing
from toolgate.ports.documents import (
    MAX_IN_VALUES,
    DocumentReader,
    DocumentStore,
    DocumentTransaction,
    Fields,
    Filter,
    Operator,
    Query,
    Update,
)
from toolgate.ports.users import USERS, timestamp_record

EVERYTHING = "*"
"""The topic of somebody who wants no marketing at all."""
REVOKED = "revoked"
EMAIL_FIELDS = ("auth.email", "email")
"""Where a user's record has the address; applications without `auth` keep it at the top."""


@dataclass(frozen=True, slots=True)
class Recipient:
    """Who is to be mailed; with the user's id, their record is found at once."""

    email: str
    uid: str | None = None


class Unsubscribes(Protocol):
    """Addresses that want no mail of a topic: an unsubscribe group, or `EVERYTHING`.

    Addresses are given as `normalised` makes them.
    """

    async def among(self, emails: Sequence[str], topics: Sequence[str]) -> set[str]:
        """Those of the addresses that unsubscribed from one of the topics."""
        ...

    async def add(self, tx: Transaction, email: str, topic: str, source: str) -> bool:
        """Note that an address wants no mail of a topic; False where that was known."""
        ...

    async def remove(self, tx: Transaction, email: str, topic: str) -> bool:
        """An address wants mail of a topic again; False where it always did."""
        ...


@dataclass(frozen=True, slots=True)
class Consent:
    """Who may be sent marketing."""

    documents: DocumentStore
    unsubscribes: Unsubscribes

    async def allows(self, email: str, group: str | None = None) -> bool:
        """Whether one address may be sent mail of an unsubscribe group."""
        return not await self.refused([Recipient(email)], group)

    async def refused(self, recipients: Iterable[Recipient], group: str | None = None) -> set[str]:
        """The addresses, normalised, that must not be mailed: a few hundred at a time."""
        by_email = {normalised(one.email): one for one in recipients}
        topics = [EVERYTHING] if group is None else [EVERYTHING, group]
        refused = await self.unsubscribes.among(list(by_email), topics)
        left = {email: one for email, one in by_email.items() if email not in refused}
        return refused | await self._revoked(left)

    async def unwilling(self, emails: Sequence[str], group: str) -> set[str]:
        """The addresses, normalised, that do not want mail of a group, marketing or not."""
        if is_marketing(group):
            return await self.refused([Recipient(one) for one in emails], group)
        return await self.unsubscribes.among([normalised(one) for one in emails], [group])

    async def _revoked(self, by_email: dict[str, Recipient]) -> set[str]:
        known = {one.uid: email for email, one in by_email.items() if one.uid is not None}
        records = await self.documents.get_many([(USERS, uid) for uid in known])
        found = zip(known.values(), records, strict=True)
        revoked = {email for email, record in found if is_revoked(record)}
        strangers = [one.email for one in by_email.values() if one.uid is None]
        for _, record in await users_of(self.documents, strangers):
            if is_revoked(record):
                revoked |= {normalised(email) for email in emails_of(record)} & by_email.keys()
        return revoked

    async def wants_none(self, email: str) -> bool:
        """Whether this address took consent back, for all marketing or for a part of it."""
        for group in MARKETING_GROUPS:
            if not await self.allows(email, group):
                return True
        return False

    async def revoke(self, tx: Transaction, email: str, source: str) -> int:
        """Nothing more to this address: in the list, and in the records of its users.

        Returns how many users have it.
        """
        await self.unsubscribes.add(tx, normalised(email), EVERYTHING, source)
        return await self._note(tx, email, REVOKED, source)

    async def unsubscribe(self, tx: Transaction, email: str, group: str, source: str) -> bool:
        """No more mail of this group; False where that was known."""
        return await self.unsubscribes.add(tx, normalised(email), group, source)

    async def restore(self, tx: Transaction, email: str, source: str) -> int:
        """This address agreed to marketing again; returns how many users have it."""
        for topic in (EVERYTHING, *MARKETING_GROUPS):
            await self.unsubscribes.remove(tx, normalised(email), topic)
        return await self._note(tx, email, "granted", source)

    async def _note(self, tx: Transaction, email: str, status: str, source: str) -> int:
        said = {"status": status, "source": source, "updated": timestamp_record()}
        changes = {f"consent.marketing.{name}": value for name, value in said.items()}

        async def work(documents: DocumentTransaction) -> int:
            users = await users_of(documents, [email])
            for uid, _ in users:
                documents.write(Update(USERS, uid, changes))
            return len(users)

        return await self.documents.transact(tx, work)


def is_revoked(record: Fields | None) -> bool:
    """Whether a user's record says that they want no marketing."""
    return _map(_map(record, "consent"), "marketing").get("status") == REVOKED


def emails_of(record: Fields | None) -> list[str]:
    """The addresses in a user's record."""
    found = [_map(record, "auth").get("email"), (record or {}).get("email")]
    return [one for one in found if isinstance(one, str) and one]


async def users_of(documents: DocumentReader, emails: Sequence[str]) -> list[tuple[str, Fields]]:
    """The ids and records of the users with these addresses, in each spelling to ask for."""
    forms = list(dict.fromkeys(form for one in emails for form in spellings(one)))
    found: dict[str, Fields] = {}
    for first in range(0, len(forms), MAX_IN_VALUES):
        wanted = forms[first : first + MAX_IN_VALUES]
        for field in EMAIL_FIELDS:
            query = Query(USERS, [Filter(field, Operator.IN, wanted)])
            found |= {one.id: one.fields for one in await documents.query(query)}
    return sorted(found.items())


def _map(record: Fields | None, name: str) -> dict[str, Any]:
    value = (record or {}).get(name)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}

"""Contacts: people who may be sent marketing, in the embedded list and at a provider.

The list is the record; a provider has a copy. What is to reach the provider is noted in the list
first, so that nothing is forgotten where it fails or the server stops: the row waits (`pending`)
until the provider took it, and `sync-contacts` tries again. Both ways can be repeated at will.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from toolgate.db.engine import Database
from toolgate.db.transactions import Transaction
from toolgate.packs.backend.marketing.consent import Consent

ADMIN = "admin"
"""Who revokes the consent of a contact that is deleted."""
PAGE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Contact:
    """Somebody who may be sent marketing."""

    email: str
    """Lower-cased."""
    first_name: str | None = None
    last_name: str | None = None
    source: str | None = None
    tags: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptContact:
    """A row of the list."""

    contact: Contact
    removed: bool
    pending: bool
    """Whether the provider has yet to be told."""
    updated_at: str


@dataclass(frozen=True, slots=True)
class Stored:
    """What was stored in the list."""

    changed: bool
    """Whether a contact came, or went."""
    updated_at: str


class ProviderFailed(Exception):
    """A provider did not take it; the message is fit for a caller."""


class ContactProvider(Protocol):
    """A service that has a copy of the list."""

    @property
    def name(self) -> str:
        """As answers call it."""
        ...

    async def add(self, contact: Contact) -> dict[str, Any]:
        """Add or change a contact; what the provider says. Raises `ProviderFailed`."""
        ...

    async def remove(self, email: str) -> bool:
        """Remove a contact; False where there was none. Raises `ProviderFailed`."""
        ...


class ContactList(Protocol):
    """The embedded list."""

    async def get(self, email: str) -> KeptContact | None:
        """One contact, also one that was removed."""
        ...

    async def page(self, after: str | None, limit: int) -> list[KeptContact]:
        """Contacts that are not removed, by address."""
        ...

    async def put(self, tx: Transaction, contact: Contact, *, pending: bool) -> Stored:
        """Add or change a contact; what is not given stays."""
        ...

    async def remove(self, tx: Transaction, email: str, *, pending: bool) -> Stored:
        """Remove a contact; with `pending`, noted also where the list has none."""
        ...

    async def settle(self, tx: Transaction, email: str, updated_at: str) -> None:
        """The provider has been told of the row as it was then."""
        ...

    async def waiting(self, after: str | None, limit: int) -> list[KeptContact]:
        """Rows that the provider has yet to be told of, by address."""
        ...


@dataclass(frozen=True, slots=True)
class Contacts:
    """Adds and removes contacts, here and at the provider."""

    database: Database
    list: ContactList
    consent: Consent
    provider: ContactProvider | None = None

    async def add(self, call: str | None, contact: Contact) -> tuple[Stored, dict[str, Any] | None]:
        """Store a contact, then tell the provider; what it says, None without one."""
        async with self.database.transaction() as tx:
            tx.call = call
            stored = await self.list.put(tx, contact, pending=self.provider is not None)
        return stored, await self._tell_added(contact)

    async def remove(self, call: str | None, email: str) -> tuple[Stored, dict[str, Any] | None]:
        """Revoke consent and remove a contact, then tell the provider; what it says.

        Consent first: a campaign that runs right now heeds it, whatever the provider does.
        """
        async with self.database.transaction() as tx:
            tx.call = call
            await self.consent.revoke(tx, email, ADMIN)
            stored = await self.list.remove(tx, email, pending=self.provider is not None)
        return stored, await self._tell_removed(email)

    async def has_work(self) -> bool:
        """Whether the provider is to be told something."""
        return bool(self.provider and await self.list.waiting(None, 1))

    async def sync(self) -> dict[str, int]:
        """Tell the provider of all that it does not know yet; how much it took, and did not."""
        told = failed = 0
        after: str | None = None
        while self.provider and (rows := await self.list.waiting(after, PAGE)):
            for row in rows:
                answer = await self._tell(row)
                told, failed = told + answer["success"], failed + (not answer["success"])
                if answer["success"]:
                    async with self.database.transaction() as tx:
                        await self.list.settle(tx, row.contact.email, row.updated_at)
            after = rows[-1].contact.email
        return {"told": told, "failed": failed}

    async def _tell(self, row: KeptContact) -> dict[str, Any]:
        if row.removed:
            return await self._tell_removed(row.contact.email) or {}
        return await self._tell_added(row.contact) or {}

    async def _tell_added(self, contact: Contact) -> dict[str, Any] | None:
        if self.provider is None:
            return None
        try:
            return {"success": True, **await self.provider.add(contact)}
        except ProviderFailed as problem:
            return {"success": False, "error": str(problem)}

    async def _tell_removed(self, email: str) -> dict[str, Any] | None:
        if self.provider is None:
            return None
        try:
            return {"success": True, "removed": await self.provider.remove(email)}
        except ProviderFailed as problem:
            return {"success": False, "error": str(problem)}

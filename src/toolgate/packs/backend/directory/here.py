"""The directory of this server: who has a record, holds a key, or let a client act for them."""

from typing import Protocol

from toolgate.packs.backend.directory.port import PAGE, Account, AccountPage
from toolgate.ports.documents import DOCUMENT_ID, Cursor, DocumentStore, Order, Query
from toolgate.ports.rules import broken_id_rule
from toolgate.ports.users import USERS


class CredentialHolders(Protocol):
    """Users with credentials of ours."""

    async def after(self, uid: str, limit: int) -> list[str]:
        """The next of them by uid."""
        ...


class DirectoryHere:
    """Everyone known here, by uid; its tokens are uids. A first sign-in makes a record."""

    def __init__(self, documents: DocumentStore, holders: CredentialHolders) -> None:
        self._documents = documents
        self._holders = holders

    async def page(self, token: str | None) -> AccountPage:
        """The accounts after this uid."""
        start = Cursor((token,), inclusive=False) if token else None
        query = Query(USERS, order=[Order(DOCUMENT_ID)], limit=PAGE, start=start)
        records = [one.id for one in await self._documents.query(query)]
        holders = await self._holders.after(token or "", PAGE)
        uids = sorted({*records, *holders})[:PAGE]
        more = PAGE in (len(records), len(holders)) or len({*records, *holders}) > PAGE
        accounts = [Account(one) for one in uids if not broken_id_rule(one)]
        return AccountPage(accounts, uids[-1] if uids and more else None)

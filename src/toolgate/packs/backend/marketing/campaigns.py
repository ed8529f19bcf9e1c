"""Campaigns as they are kept: the documents `marketing-campaigns/ID`.

A campaign is pending until it is due, processing while it is sent, then sent or failed. What
changes its status reads it in the same transaction, so that an edit comes either before the
sending begins, or too late.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, cast

from toolgate.db.transactions import Transaction
from toolgate.gate.errors import InvalidArguments, NotFound
from toolgate.ports.documents import (
    DOCUMENT_ID,
    Create,
    Delete,
    DocumentReader,
    DocumentStore,
    DocumentTransaction,
    Fields,
    Filter,
    Operator,
    Order,
    Query,
    Set,
)
from toolgate.ports.rules import broken_id_rule
from toolgate.ports.users import timestamp_record

COLLECTION = "marketing-campaigns"
NOT_FOUND = "Campaign not found"


class Status(StrEnum):
    """Where a campaign stands."""

    PENDING = "pending"
    PROCESSING = "processing"
    SENT = "sent"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignFilter:
    """Which campaigns are asked for."""

    status: str | None = None
    type: str | None = None
    start: int | None = None
    """Unix seconds: sent at this time or later."""
    end: int | None = None
    limit: int


def new_campaign(
    settings: Fields, *, type: str, send_at: datetime, now: datetime, **more: Any
) -> Fields:
    """The document of a campaign that waits until it is due."""
    made = timestamp_record(now)
    return {
        "settings": settings,
        "sendAt": int(send_at.timestamp()),
        "type": type,
        "status": Status.PENDING.value,
        "metadata": {"created": made, "updated": made},
        **more,
    }


def changed(campaign: Fields, now: datetime, **fields: Any) -> Fields:
    """The campaign with other fields, and the time at which they changed."""
    before: Any = campaign.get("metadata")
    kept = cast("Fields", before) if isinstance(before, dict) else {}
    metadata: Fields = {**kept, "updated": timestamp_record(now)}
    return {**campaign, **fields, "metadata": metadata}


class Campaigns:
    """Reads and stores campaigns."""

    def __init__(self, documents: DocumentStore) -> None:
        self._documents = documents

    async def get(self, id: str) -> Fields:
        """One campaign; raises `NotFound`."""
        return await _existing(self._documents, id)

    async def list(self, wanted: CampaignFilter) -> Sequence[tuple[str, Fields]]:
        """The campaigns of a kind, the earliest first."""
        filters = [
            Filter(field, operator, value)
            for field, operator, value in (
                ("status", Operator.EQUAL, wanted.status),
                ("type", Operator.EQUAL, wanted.type),
                ("sendAt", Operator.GREATER_OR_EQUAL, wanted.start),
                ("sendAt", Operator.LESS_OR_EQUAL, wanted.end),
            )
            if value is not None
        ]
        order = [Order("sendAt"), Order(DOCUMENT_ID)]
        query = Query(COLLECTION, filters, order, limit=wanted.limit)
        return [(one.id, one.fields) for one in await self._documents.query(query)]

    async def create(self, tx: Transaction, id: str, campaign: Fields) -> None:
        """Store a new campaign."""
        await self._documents.write(tx, Create(COLLECTION, id, campaign))

    async def edit(self, tx: Transaction, id: str, edit: Callable[[Fields], Fields]) -> Fields:
        """Change a campaign that is pending; the changed one."""

        async def work(documents: DocumentTransaction) -> Fields:
            campaign = await _pending(documents, id, "edit")
            edited = edit(campaign)
            documents.write(Set(COLLECTION, id, edited))
            return edited

        return await self._documents.transact(tx, work)

    async def delete(self, tx: Transaction, id: str) -> None:
        """Delete a campaign that is pending."""

        async def work(documents: DocumentTransaction) -> None:
            await _pending(documents, id, "delete")
            documents.write(Delete(COLLECTION, id))

        await self._documents.transact(tx, work)

    async def change(
        self,
        tx: Transaction,
        id: str,
        work: Callable[[Fields], Awaitable[Sequence[tuple[str, Fields]]]],
    ) -> None:
        """Read a campaign, and store what follows from it: campaigns by their ids."""

        async def transact(documents: DocumentTransaction) -> None:
            campaign = await documents.get(COLLECTION, id)
            for other, fields in await work(campaign) if campaign else ():
                documents.write(Set(COLLECTION, other, fields))

        await self._documents.transact(tx, transact)


async def _existing(documents: DocumentReader, id: str) -> Fields:
    campaign = None if broken_id_rule(id) else await documents.get(COLLECTION, id)
    if campaign is None:
        raise NotFound(NOT_FOUND)
    return campaign


async def _pending(documents: DocumentTransaction, id: str, verb: str) -> Fields:
    campaign = await _existing(documents, id)
    if campaign.get("status") != Status.PENDING:
        raise InvalidArguments(f'Cannot {verb} campaign with status "{campaign.get("status")}"')
    return campaign

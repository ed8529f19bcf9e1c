"""The two ways of a campaign to people: mail and push."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, cast

import anyio.to_thread

from toolgate.db.transactions import Transaction
from toolgate.packs.backend.mail.addresses import (
    MAX_NAME,
    BadAddress,
    checked_address,
    normalised,
)
from toolgate.packs.backend.mail.composing import Wish
from toolgate.packs.backend.mail.message import Message, Recipient
from toolgate.packs.backend.mail.port import Outcome
from toolgate.packs.backend.mail.recipients import Recipients
from toolgate.packs.backend.mail.rendering import DEFAULT
from toolgate.packs.backend.marketing import consent
from toolgate.packs.backend.marketing.deliveries import Addressee, Queued, Settled, State
from toolgate.packs.backend.marketing.marketing import PUSH, Marketing
from toolgate.packs.backend.marketing.segments import PAGE, addresses_in, is_wanted, users_after
from toolgate.packs.backend.marketing.sending import Channel, Page, ServerAway, fill_in
from toolgate.packs.backend.push.delivery import TOKENS, delete_tokens, token_of
from toolgate.packs.backend.push.fcm_answers import UNREACHABLE
from toolgate.packs.backend.push.port import Delivery, Notification, PushUnavailable
from toolgate.ports.documents import (
    DOCUMENT_ID,
    MAX_IN_VALUES,
    Cursor,
    Fields,
    Filter,
    Operator,
    Order,
    Query,
    StoredDocument,
)
from toolgate.ports.users import USERS

OUTBOX = "outbox"
CONTACTS = "contacts"
"""Where a campaign is after the users: in the list of contacts."""
AT_ONCE = 64
"""Messages under way; the mailer bounds its connections itself."""
STATES = {
    Outcome.ACCEPTED: State.ACCEPTED,
    Outcome.KEPT: State.KEPT,
    Outcome.REFUSED: State.REFUSED,
    Outcome.SKIPPED: State.SKIPPED,
    Outcome.UNKNOWN: State.UNKNOWN,
}
PUSHED = {
    Delivery.SENT: State.ACCEPTED,
    Delivery.GONE: State.REFUSED,
    Delivery.FAILED: State.REFUSED,
    Delivery.UNKNOWN: State.UNKNOWN,
}


async def channel_of(marketing: Marketing, id: str, campaign: Fields) -> Channel:
    """How a campaign gets to people."""
    settings = campaign["settings"]
    if campaign["type"] == PUSH:
        return PushChannel(marketing, settings).channel()
    now = marketing.clock()
    message = await anyio.to_thread.run_sync(_message, marketing, id, settings, now)
    return MailChannel(marketing, settings, message, now).channel()


class MailChannel:
    """One mail a person, with a link of their own to unsubscribe."""

    def __init__(
        self, marketing: Marketing, settings: Fields, message: Message, now: datetime
    ) -> None:
        self._marketing = marketing
        self._settings = settings
        self._group: str = settings["sender"]
        self._now = now
        self._message = message
        self._excluded: set[str] | None = None
        """Addresses of users in excluded segments, once contacts are looked through."""

    def channel(self) -> Channel:
        """What the sending needs."""
        return Channel(self._page, self._refused, self._send, AT_ONCE)

    async def _page(self, after: Any) -> Page:
        tester = self._settings.get("test")
        if tester:
            return Page([Addressee(normalised(tester["email"]))], None)
        if isinstance(after, dict):
            return await self._contacts(cast("Fields", after)[CONTACTS])
        users = await users_after(self._marketing.documents, after or None)
        wanted = [
            Addressee(normalised(emails[0]), one.id, _first_name(one.fields))
            for one in users
            if _is_wanted(self._settings, one.fields, self._now)
            and (emails := consent.emails_of(one.fields))
        ]
        if len(users) == PAGE:
            return Page(wanted, users[-1].id)
        return Page(wanted, {CONTACTS: None} if self._settings.get("all") else None)

    async def _contacts(self, after: str | None) -> Page:
        """Everybody is also who is no user: segments are of users, so contacts are in none."""
        if self._excluded is None:
            # Records have an address as others spelled it, which no query finds.
            segments: list[str] = self._settings.get("excludeSegments") or []
            documents = self._marketing.documents
            self._excluded = await addresses_in(documents, self._now, segments)
        found = [one.contact for one in await self._marketing.contacts.page(after, PAGE)]
        wanted = [
            Addressee(normalised(one.email), None, one.first_name)
            for one in found
            if normalised(one.email) not in self._excluded
        ]
        last = {CONTACTS: found[-1].email} if len(found) == PAGE else None
        return Page(wanted, last)

    async def _refused(self, addressees: Sequence[Addressee]) -> set[str]:
        if self._settings.get("test"):
            return set()
        people = [consent.Recipient(one.address, one.uid) for one in addressees]
        return await self._marketing.consent.refused(people, self._group)

    async def _send(self, one: Queued, handing_over: Callable[[], None]) -> Settled:
        try:
            address = checked_address(one.to.address, one.to.name)
        except BadAddress as problem:
            return one.number, State.REFUSED, f"{problem}"
        link = self._marketing.mail.links.link(one.to.address, self._group)
        message = replace(self._message, id=f"{self._message.id}.{one.number}", to=(address,))
        recipient = Recipient(address, unsubscribe=link)
        (done,) = await self._marketing.mail.mailer.send(
            message, [recipient], handing_over=handing_over
        )
        if done.outcome is Outcome.REFUSED and done.unreachable:
            raise ServerAway(done.words)
        if not self._marketing.mail.mailer.delivers:
            return one.number, State.KEPT, None
        return one.number, STATES[done.outcome], done.words


class PushChannel:
    """One notification to each device of a person."""

    def __init__(self, marketing: Marketing, settings: Fields) -> None:
        self._marketing = marketing
        self._settings = settings
        self._now = marketing.clock()
        brand = marketing.mail.brand.name
        self._notification = Notification(
            title=fill_in(settings["name"], brand, settings, self._now),
            body=fill_in(settings["subject"], brand, settings, self._now),
        )
        self._gone: list[str] = []
        """Documents of tokens that nobody has any more."""

    def channel(self) -> Channel:
        """What the sending needs."""
        return Channel(self._page, self._refused, self._send, AT_ONCE, self._tidy)

    async def _page(self, after: Any) -> Page:
        settings, tester = self._settings, self._settings.get("test")
        if tester:
            return Page(await self._devices([tester["uid"]]), None)
        if settings.get("all") and not settings.get("excludeSegments"):
            return await self._every_device(after or None)
        users = await users_after(self._marketing.documents, after or None)
        wanted = [one.id for one in users if _is_wanted(settings, one.fields, self._now)]
        return Page(await self._devices(wanted), users[-1].id if len(users) == PAGE else None)

    async def _every_device(self, after: str | None) -> Page:
        """Also those of people who are no users."""
        start = Cursor((after,), inclusive=False) if after else None
        query = Query(TOKENS, order=[Order(DOCUMENT_ID)], limit=PAGE, start=start)
        found = await self._marketing.documents.query(query)
        return Page([_device(one) for one in found], found[-1].id if len(found) == PAGE else None)

    async def _devices(self, uids: Sequence[str]) -> list[Addressee]:
        found: list[Addressee] = []
        for first in range(0, len(uids), MAX_IN_VALUES):
            owners = list(uids[first : first + MAX_IN_VALUES])
            query = Query(TOKENS, [Filter("owner", Operator.IN, owners)])
            found += [_device(one) for one in await self._marketing.documents.query(query)]
        return found

    async def _refused(self, addressees: Sequence[Addressee]) -> set[str]:
        if self._settings.get("test"):
            return set()
        owners = sorted({one.uid for one in addressees if one.uid})
        records = await self._marketing.documents.get_many([(USERS, uid) for uid in owners])
        revoked = {
            uid for uid, record in zip(owners, records, strict=True) if consent.is_revoked(record)
        }
        return {one.address for one in addressees if one.uid in revoked}

    async def _send(self, one: Queued, handing_over: Callable[[], None]) -> Settled:
        if self._marketing.push_provider == OUTBOX:
            return one.number, State.KEPT, None
        handing_over()
        try:
            (done,) = await self._marketing.push.send(self._notification, [one.to.address])
        except PushUnavailable as problem:  # it has surely not taken this one
            raise ServerAway(problem.message) from problem
        if done.delivery is Delivery.FAILED and done.reason == UNREACHABLE:
            raise ServerAway("Firebase Cloud Messaging cannot be reached.")
        if done.delivery is Delivery.GONE:
            self._gone.append(one.to.name or one.to.address)
        return one.number, PUSHED[done.delivery], done.reason

    async def _tidy(self, tx: Transaction) -> None:
        """Delete the tokens that nobody has any more."""
        gone, self._gone = self._gone, []
        await delete_tokens(tx, self._marketing.documents, gone)


def _device(one: StoredDocument) -> Addressee:
    """Its token is the address; its name, the document where that is named otherwise."""
    token, owner = token_of(one), one.fields.get("owner")
    return Addressee(token, owner, one.id if one.id != token else None)


def _is_wanted(settings: Fields, record: Fields, now: datetime) -> bool:
    excluded = settings.get("excludeSegments") or ()
    every = bool(settings.get("all"))
    return is_wanted(record, now, settings.get("segments") or (), excluded, all=every)


def _first_name(record: Fields) -> str | None:
    personal: Any = record.get("personal")
    name: Any = cast("Fields", personal).get("name") if isinstance(personal, dict) else None
    if isinstance(name, dict):
        name = cast("Fields", name).get("first")
    return name[:MAX_NAME] if isinstance(name, str) and name else None


def _message(marketing: Marketing, id: str, settings: Fields, now: datetime) -> Message:
    """What everybody gets; a recipient's own address and link are filled in later."""
    brand = marketing.mail.brand

    def filled(value: Any) -> Any:
        if isinstance(value, str):
            return fill_in(value, brand.name, settings, now)
        if isinstance(value, dict):
            return {name: filled(one) for name, one in cast("Fields", value).items()}
        if isinstance(value, list):
            return [filled(one) for one in cast("list[Any]", value)]
        return value

    wish = Wish(
        id=id,
        subject=" ".join(filled(settings["subject"]).split()),  # a header is one line
        sender=settings["sender"],
        group=settings["sender"],
        template=settings.get("template", DEFAULT),
        data={"preheader": settings.get("preheader"), **filled(settings.get("data") or {})},
        categories=("campaign",),
    )
    return marketing.mail.composer.compose(wish, Recipients(), now).message

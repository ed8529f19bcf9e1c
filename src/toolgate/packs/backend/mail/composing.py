"""From what a caller asks for to a mail that can be handed over."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from toolgate.packs.backend.brand import BrandSettings
from toolgate.packs.backend.mail.addresses import Address
from toolgate.packs.backend.mail.content import read_content
from toolgate.packs.backend.mail.html_text import text_of_html
from toolgate.packs.backend.mail.message import Message, Recipient
from toolgate.packs.backend.mail.queue import QueuedMail, QueuedRecipient
from toolgate.packs.backend.mail.recipients import Recipients
from toolgate.packs.backend.mail.rendering import DEFAULT, TEMPLATES, render
from toolgate.packs.backend.mail.senders import sender_address
from toolgate.packs.backend.mail.unsubscribing import UnsubscribeLinks


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a mail is to be."""

    id: str
    """Made by the caller: the same id is the same mail."""
    subject: str
    sender: str
    group: str | int
    template: str = DEFAULT
    html: str | None = None
    data: dict[str, Any] | None = None
    categories: tuple[str, ...] = ()
    send_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Composer:
    """Makes mails in the name of the brand."""

    brand: BrandSettings
    domain: str | None
    links: UnsubscribeLinks

    @property
    def contact(self) -> Address | None:
        """Where replies go."""
        return Address(self.brand.contact, self.brand.name) if self.brand.contact else None

    def compose(self, wish: Wish, recipients: Recipients, now: datetime) -> QueuedMail:
        """The mail, with a link of their own for each recipient; raises `BadContent`."""
        html, text = self._texts(wish)
        message = Message(
            id=wish.id,
            sender=sender_address(wish.sender, self.brand, self.domain),
            to=tuple(recipients.to),
            cc=tuple(recipients.cc),
            reply_to=self.contact,
            subject=wish.subject,
            html=html,
            text=text,
            headers=_labels(wish.categories),
            categories=wish.categories,
            group=wish.group,
            date=now,
            unsubscribe_page=self.links.page(),
            send_at=wish.send_at,
        )
        people = tuple(
            QueuedRecipient(Recipient(one, name, self.links.link(one.email, wish.group)))
            for name, one in recipients.every()
        )
        return QueuedMail(
            message=message,
            recipients=people,
            options=_options(wish, message, recipients),
            due_at=wish.send_at or now,
        )

    def _texts(self, wish: Wish) -> tuple[str, str]:
        if wish.html is not None:
            return wish.html, text_of_html(wish.html)
        return render(wish.template, read_content(wish.data, wish.subject), self.brand)


def _labels(categories: Sequence[str]) -> dict[str, str]:
    """Categories as a header, for who sorts mail by them."""
    plain = [one for one in categories if one.isascii()]
    return {"X-Categories": ",\r\n ".join(plain)} if plain else {}


def _options(wish: Wish, message: Message, recipients: Recipients) -> dict[str, Any]:
    """What was asked for, as answers and records tell it; without the texts."""
    template = wish.template if wish.template in TEMPLATES else DEFAULT
    return {
        "to": [_person(one) for one in recipients.to],
        "cc": [_person(one) for one in recipients.cc],
        "bcc": [_person(one) for one in recipients.bcc],
        "from": _person(message.sender),
        "replyTo": _person(message.reply_to) if message.reply_to else None,
        "subject": wish.subject,
        "template": "html" if wish.html is not None else template,
        "sender": wish.sender,
        "group": wish.group,
        "categories": list(wish.categories),
        "sendAt": int(wish.send_at.timestamp()) if wish.send_at else None,
        "skipped": list(recipients.skipped),
    }


def _person(address: Address) -> dict[str, Any]:
    return {"email": address.email, "name": address.name}

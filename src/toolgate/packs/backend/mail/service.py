"""Mail, as tools, pages, campaigns and workflows use it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

from toolgate.gate.offer import Site
from toolgate.packs.backend.brand import BrandSettings
from toolgate.packs.backend.mail.composing import Composer
from toolgate.packs.backend.mail.opening import mailer_of
from toolgate.packs.backend.mail.port import Mailer
from toolgate.packs.backend.mail.queue import MailQueue
from toolgate.packs.backend.mail.sending import LEASE, Sending, Unwilling
from toolgate.packs.backend.mail.settings import MailSettings
from toolgate.packs.backend.mail.unsubscribing import UnsubscribeLinks
from toolgate.packs.backend.sql.mail_queue import SqlMailQueue

ANSWERS_A_RECIPIENT = 8
"""Of the mail server, at most, for one recipient."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """All that has to do with mail."""

    mailer: Mailer
    queue: MailQueue
    sending: Sending
    composer: Composer
    links: UnsubscribeLinks
    brand: BrandSettings


@asynccontextmanager
async def opened_mail(site: Site, unwilling: Unwilling) -> AsyncGenerator[Mail]:
    """Mail as the settings `mail.*` and `brand.*` say; connections are closed at the end."""
    settings = site.section("mail", MailSettings)
    brand = site.section("brand", BrandSettings)
    mailer = mailer_of(settings, site.outbound)
    queue = SqlMailQueue(site.database)
    links = UnsubscribeLinks(site.base_url, site.cursors)
    try:
        yield Mail(
            mailer=mailer,
            queue=queue,
            sending=Sending(
                mailer,
                queue,
                site.documents,
                site.database,
                lease=max(LEASE, timedelta(seconds=settings.seconds * ANSWERS_A_RECIPIENT)),
                unwilling=unwilling,
            ),
            composer=Composer(brand, settings.domain, links),
            links=links,
            brand=brand,
        )
    finally:
        await mailer.close()

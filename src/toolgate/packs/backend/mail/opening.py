"""The mailer that the settings ask for; what it needs is imported only then."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from toolgate.gate.offer import ServiceWarning
from toolgate.outbound.client import Outbound
from toolgate.packs.backend.brand import BrandSettings
from toolgate.packs.backend.mail.outbox import OutboxMailer
from toolgate.packs.backend.mail.port import Mailer, MailUnavailable
from toolgate.packs.backend.mail.senders import NO_DOMAIN
from toolgate.packs.backend.mail.settings import LOOPBACK, OUTBOX, SENDGRID, MailSettings
from toolgate.sections import Settings
from toolgate.setting_types import BadSettings

EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 (what is listened on; links then say localhost)


def mailer_of(settings: MailSettings, outbound: Outbound) -> Mailer:
    """The mailer; nothing is connected yet."""
    if settings.url == OUTBOX:
        return OutboxMailer()
    if settings.url == SENDGRID:
        from toolgate.packs.backend.mail.sendgrid import SendGridMailer  # noqa: PLC0415

        return SendGridMailer(
            outbound,
            settings.sendgrid_url,
            settings.sendgrid_key,
            groups=settings.groups,
            seconds=settings.seconds,
        )
    try:
        from toolgate.packs.backend.mail.smtp import SmtpMailer, SmtpServer  # noqa: PLC0415
    except ModuleNotFoundError as missing:
        raise BadSettings("mail.url needs aiosmtplib. Install toolgate[mail].") from missing
    host, port, username, password = settings.server
    server = SmtpServer(
        host=host,
        port=port,
        username=username,
        password=password,
        tls=settings.url.startswith("smtps:"),
        starttls=settings.requires_starttls,
        ca_file=settings.ca_file,
        seconds=settings.seconds,
    )
    return SmtpMailer(server, settings.connections)


async def examine(settings: Settings, outbound: Outbound) -> str:
    """For `toolgate doctor`: where mail goes, and whether the server takes it; none is sent."""
    section = settings.section("mail")
    assert isinstance(section, MailSettings)
    mailer = mailer_of(section, outbound)
    try:
        found = f"{await mailer.check()}."
    except MailUnavailable as problem:
        raise BadSettings(f"{problem} Check the settings mail.*.") from None
    finally:
        await mailer.close()
    if mailer.delivers and (lacks := list(_lacks(settings, section))):
        raise ServiceWarning(" ".join([found, *lacks]))
    return found


def _lacks(settings: Settings, mail: MailSettings) -> Iterator[str]:
    """What recipients would stumble over: made-up names, and a link that opens nothing."""
    brand = settings.section("brand")
    assert isinstance(brand, BrandSettings)
    if not mail.domain and not brand.contact:
        yield f"Senders are at {NO_DOMAIN}, which is no domain: set mail.domain."
    if "name" not in brand.model_fields_set:
        yield f"Mails come from {brand.name!r}: set brand.name."
    server = settings.server
    host = urlsplit(server.public_url).hostname if server.public_url else server.host
    if host in (*LOOPBACK, *EVERYWHERE) and mail.leaves_machine:
        yield "The link to unsubscribe opens on this machine only: set server.public_url."

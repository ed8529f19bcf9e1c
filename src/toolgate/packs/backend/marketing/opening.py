"""Contacts by the settings: which checks, and which provider."""

from toolgate.gate.offer import Site
from toolgate.packs.backend.mail.settings import MailSettings
from toolgate.packs.backend.marketing.consent import Consent
from toolgate.packs.backend.marketing.contacts import Contacts
from toolgate.packs.backend.marketing.lookups import MailboxLookup, MailServerLookup
from toolgate.packs.backend.marketing.sendgrid import SendGridContacts
from toolgate.packs.backend.marketing.settings import SENDGRID, ContactSettings
from toolgate.packs.backend.marketing.validation import Validator
from toolgate.packs.backend.sql.contacts import SqlContacts
from toolgate.setting_types import BadSettings

NO_KEY = (
    "contacts.url is sendgrid: and there is no key. Set SENDGRID_API_KEY or contacts.sendgrid_key."
)


def validator_of(site: Site) -> Validator:
    """The checks; those that ask the network only where they are switched on."""
    settings, outbound = site.section("contacts", ContactSettings), site.outbound
    key = settings.mailbox_key
    return Validator(
        dns=MailServerLookup(outbound, settings.dns_url) if settings.dns_url else None,
        mailbox=MailboxLookup(outbound, settings.mailbox_url, key) if key else None,
    )


def contacts_of(site: Site, consent: Consent) -> Contacts:
    """The list, and its provider; raises `BadSettings` where that has no key."""
    settings = site.section("contacts", ContactSettings)
    provider = None
    if settings.url == SENDGRID:
        key = settings.sendgrid_key or site.section("mail", MailSettings).sendgrid_key
        if not key:
            raise BadSettings(NO_KEY)
        provider = SendGridContacts(site.outbound, settings.sendgrid_url, key)
    return Contacts(site.database, SqlContacts(site.database), consent, provider)

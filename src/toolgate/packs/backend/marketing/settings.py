"""Settings of contacts."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from toolgate.setting_types import Section

SENDGRID = "sendgrid:"


class ContactSettings(Section):
    """Where marketing contacts are kept, and how far their addresses are checked."""

    borrowed: ClassVar[Mapping[str, str]] = {"ZEROBOUNCE_API_KEY": "mailbox_key"}

    url: str = Field(
        default="list:",
        pattern=r"^(list:|sendgrid:)$",
        examples=["sendgrid:", "list:"],
        description="`list:` keeps contacts in the database; `sendgrid:` copies them to SendGrid's "
        "marketing contacts.",
    )
    sendgrid_key: str | None = Field(
        default=None,
        repr=False,
        description="With `sendgrid:`: a key with the permission Marketing; if unset, that of "
        "`mail.sendgrid_key`.",
    )
    sendgrid_url: str = Field(
        default="https://api.sendgrid.com",
        pattern=r"^https?://[^/]+/?$",
        examples=["https://api.eu.sendgrid.com"],
        description="With `sendgrid:`: URL of the server.",
    )
    dns_url: str | None = Field(
        default=None,
        pattern=r"^https?://[^?#]+$",
        examples=["https://dns.google/resolve"],
        description="Address of a resolver that answers DNS over HTTPS in JSON. If set, a new "
        "contact's domain must have a mail server.",
    )
    mailbox_key: str | None = Field(
        default=None,
        repr=False,
        description="Key of ZeroBounce, also ZEROBOUNCE_API_KEY. If set, it is asked whether a new "
        "contact's mailbox is there.",
    )
    mailbox_url: str = Field(
        default="https://api.zerobounce.net",
        pattern=r"^https?://[^/]+/?$",
        examples=["https://HOST"],
        description="With `contacts.mailbox_key`: URL of the server.",
    )

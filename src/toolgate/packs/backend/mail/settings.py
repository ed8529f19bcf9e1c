"""Settings of mail."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, Field

from toolgate.setting_types import Numbers, Section

OUTBOX, SENDGRID = "outbox:", "sendgrid:"
PORTS = {"smtp": 587, "smtps": 465}
LOOPBACK = {"localhost", "127.0.0.1", "::1"}


def _url(value: str) -> str:
    if value in (OUTBOX, SENDGRID):
        return value
    parts = urlsplit(value)  # a port that is no number is told when it is read
    if parts.scheme not in PORTS or not parts.hostname or parts.port == 0:
        raise ValueError("not a mail server")
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError("not a mail server")
    if bool(parts.username) != bool(parts.password):
        raise ValueError("user and password come together")
    return value


class MailSettings(Section):
    """How mail leaves; by default it does not, and waits in the outbox, where you look at it."""

    borrowed: ClassVar[Mapping[str, str]] = {"SENDGRID_API_KEY": "sendgrid_key"}

    url: Annotated[str, AfterValidator(_url)] = Field(
        default=OUTBOX,
        repr=False,
        examples=["smtp://USER:PASSWORD@HOST:587", "smtps://USER:PASSWORD@HOST", "sendgrid:"],
        description="`outbox:` keeps mails in the database; `smtp://[USER:PASSWORD@]HOST[:PORT]`, "
        "`smtps://…` (TLS from the start) and `sendgrid:` deliver them. Special characters of "
        "user and password are written as in any URL: `@` is `%40`.",
    )
    starttls: Literal["required", "never"] | None = Field(
        default=None,
        description="With `smtp://`: `required` (nothing is sent without TLS and a certificate "
        "that can be verified) or `never`; if unset, required unless the host is this machine.",
    )
    ca_file: Path | None = Field(
        default=None,
        description="PEM file of a certificate authority to trust besides the machine's own.",
    )
    domain: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$",
        examples=["example.com"],
        description="Domain of the senders, such as orders@DOMAIN; if unset, that of "
        "`brand.contact`.",
    )
    connections: int = Field(
        default=4, ge=1, le=64, description="Connections to the SMTP server at once, kept open."
    )
    seconds: float = Field(
        default=20.0,
        gt=0,
        le=300,
        description="How long the mail server may take for one answer.",
    )
    sendgrid_key: str | None = Field(
        default=None, repr=False, description="With `sendgrid:`: also SENDGRID_API_KEY."
    )
    sendgrid_url: str = Field(
        default="https://api.sendgrid.com",
        pattern=r"^https?://[^/\s]+/?$",
        examples=["https://api.eu.sendgrid.com"],
        description="With `sendgrid:`: address of the API.",
    )
    groups: Numbers = Field(
        default_factory=dict[str, int],
        examples=['{"marketing": 24933}'],
        description="With `sendgrid:`: numbers of unsubscribe groups, by the name of the sender "
        "(orders, hello, account, marketing, security, newsletter, internal).",
    )

    @property
    def leaves_machine(self) -> bool:
        """Whether mails go to a server that is not this machine."""
        return self.url != OUTBOX and urlsplit(self.url).hostname not in LOOPBACK

    @property
    def requires_starttls(self) -> bool:
        """Whether a plain connection is turned into TLS before anything is said."""
        if self.starttls is not None:
            return self.starttls == "required"
        return urlsplit(self.url).hostname not in LOOPBACK

    @property
    def server(self) -> tuple[str, int, str | None, str | None]:
        """Host, port, user and password of an SMTP server."""
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        user = unquote(parts.username) if parts.username else None
        password = unquote(parts.password) if parts.password else None
        return parts.hostname, parts.port or PORTS[parts.scheme], user, password

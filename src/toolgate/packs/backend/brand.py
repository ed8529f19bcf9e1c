"""Who the application is to the people it writes to."""

from typing import Annotated

from pydantic import AfterValidator, Field

from toolgate.packs.backend.mail.addresses import checked_address
from toolgate.setting_types import Section


def _email(value: str) -> str:
    return checked_address(value).email


class BrandSettings(Section):
    """Who the application is to its users: in mails and on pages."""

    name: str = Field(default="toolgate", min_length=1, max_length=100, description="Its name.")
    url: str | None = Field(
        default=None,
        pattern=r"^https?://[^\s\"<>]+$",
        examples=["https://HOST"],
        description="Its web site.",
    )
    contact: Annotated[str, AfterValidator(_email)] | None = Field(
        default=None,
        examples=["hello@example.com"],
        description="Email address for replies; gets a copy of mails unless told otherwise.",
    )
    address: str | None = Field(
        default=None,
        max_length=300,
        description="Postal address, which the law of many countries wants at the end of mails.",
    )
    logo: str | None = Field(
        default=None,
        pattern=r"^https://[^\s\"<>]+$",
        examples=["https://HOST/logo.png"],
        description="URL of an image, shown 40 pixels high at the top of mails.",
    )

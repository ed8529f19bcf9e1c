"""Checks of an address that ask somebody else; only settings switch them on."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from toolgate.outbound.client import AddressPolicy, Outbound
from toolgate.outbound.responses import FetchFailed, ResponseLimits
from toolgate.outbound.service_accounts import json_object
from toolgate.packs.backend.marketing.addresses import Address

LIMITS = ResponseLimits(seconds=10.0)
NO_SUCH_NAME = 3
MAIL_OR_ADDRESS = ("MX", "A", "AAAA")
"""A domain without an entry for mail takes it at its own address."""
REFUSED = frozenset({"invalid", "spamtrap", "abuse", "do_not_mail"})


async def _ask(outbound: Outbound, url: str, parameters: dict[str, str]) -> dict[str, Any]:
    answer = await outbound.fetch(
        f"{url}?{urlencode(parameters)}",
        LIMITS,
        address_policy=AddressPolicy.PROXIED,
        headers={"Accept": "application/dns-json, application/json"},
    )
    return json_object(answer.body)


@dataclass(frozen=True, slots=True)
class MailServerLookup:
    """Whether a domain takes mail, from a resolver that speaks DNS over HTTPS in JSON."""

    outbound: Outbound
    url: str

    async def __call__(self, address: Address) -> str | None:
        """What is wrong; None where nothing is."""
        for kind in MAIL_OR_ADDRESS:
            found = await _ask(self.outbound, self.url, {"name": address.domain, "type": kind})
            status = found.get("Status")
            if status == 0 and found.get("Answer"):
                return None
            if status == NO_SUCH_NAME:
                break
            if status != 0:
                raise FetchFailed("The resolver of contacts.dns_url gave no answer of use.")
        return f"Email domain has no mail server: {address.domain}"


@dataclass(frozen=True, slots=True)
class MailboxLookup:
    """Whether a mailbox is there, as far as ZeroBounce knows."""

    outbound: Outbound
    url: str
    key: str

    async def __call__(self, address: Address) -> str | None:
        """What is wrong; None where nothing is, or nobody knows."""
        url = f"{self.url.rstrip('/')}/v2/validate"
        found = await _ask(self.outbound, url, {"api_key": self.key, "email": str(address)})
        status = found.get("status")
        if not isinstance(status, str):
            raise FetchFailed("The server of contacts.mailbox_url gave no answer of use.")
        return f"Mailbox does not take mail: {address}" if status in REFUSED else None

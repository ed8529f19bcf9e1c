"""Who mails come from: presets, each with the group that a recipient can unsubscribe from."""

from dataclasses import dataclass

from toolgate.packs.backend.brand import BrandSettings
from toolgate.packs.backend.mail.addresses import Address

NO_DOMAIN = "toolgate.invalid"
"""Where no setting names a domain: an address that surely is nobody's."""


@dataclass(frozen=True, slots=True)
class Preset:
    """A sender."""

    local: str
    """What stands before the @."""
    title: str = ""
    """What follows the brand's name."""
    marketing: bool = False
    """Whether its mails need the recipient's consent."""


PRESETS = {
    "orders": Preset("orders", "Orders"),
    "hello": Preset("hello"),
    "account": Preset("account", "Account"),
    "marketing": Preset("offers", "Offers", marketing=True),
    "security": Preset("security", "Security"),
    "newsletter": Preset("newsletter", "Newsletter", marketing=True),
    "internal": Preset("alerts", "Alerts"),
}
DEFAULT = "hello"
MARKETING_GROUPS = tuple(name for name, preset in PRESETS.items() if preset.marketing)


def sender_address(name: str, brand: BrandSettings, domain: str | None) -> Address:
    """The address of a preset."""
    preset = PRESETS[name]
    of_contact = brand.contact.rpartition("@")[2] if brand.contact else NO_DOMAIN
    words = f"{brand.name} {preset.title}".strip()
    return Address(f"{preset.local}@{domain or of_contact}", words)


def is_marketing(group: str) -> bool:
    """Whether leaving this group also takes back the consent to marketing."""
    preset = PRESETS.get(group)
    return preset is not None and preset.marketing

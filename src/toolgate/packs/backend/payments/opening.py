"""Opens payments as the settings say; what Stripe needs is imported only where it is used."""

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from toolgate.gate.offer import Site
from toolgate.outbound.client import Outbound
from toolgate.packs.backend.brand import BrandSettings
from toolgate.packs.backend.payments.payments import Payments
from toolgate.packs.backend.payments.portal_links import PortalLinks
from toolgate.packs.backend.payments.processor import Processor, ProcessorBusy, ProcessorRefused
from toolgate.packs.backend.payments.return_urls import ReturnUrls
from toolgate.packs.backend.payments.settings import PaymentsSettings
from toolgate.packs.backend.products import Products
from toolgate.packs.backend.sql.ledger import SqlLedger
from toolgate.packs.backend.sql.payment_intents import SqlIntents
from toolgate.sections import Settings
from toolgate.setting_types import BadSettings

if TYPE_CHECKING:
    from toolgate.packs.backend.payments.stripe_processor import StripeProcessor

EMBEDDED = (
    "The embedded ledger keeps the books; no money moves. payments.url = stripe: uses Stripe."
)
OF_THE_LEDGER = ("ledger", "test")
"""What a record calls the embedded ledger; `test` is the name for users who pay nothing."""


def payments_of(site: Site, products: Products) -> Payments:
    """Payments with the ledger, and with Stripe where the settings say so."""
    settings = site.section("payments", PaymentsSettings)
    links = PortalLinks(site.base_url, site.cursors, settings.portal_minutes)
    ledger = SqlLedger(site.database, links, products.default.currency)
    processors: dict[str, Processor] = dict.fromkeys(OF_THE_LEDGER, ledger)
    stripe = stripe_of(settings, site.outbound, products)
    if stripe is not None:
        processors[stripe.name] = stripe
    return Payments(
        database=site.database,
        documents=site.documents,
        intents=SqlIntents(site.database),
        processors=processors,
        products=products,
        return_urls=ReturnUrls(site.base_url, _return_hosts(site, settings)),
        ledger=ledger,
        events=stripe,
        keep_days=settings.keep_days,
        webhook_secret=settings.stripe_webhook_secret,
    )


def _return_hosts(site: Site, settings: PaymentsSettings) -> frozenset[str]:
    """Hosts that a portal may lead back to: those of the setting, and the web site's own."""
    brand = site.section("brand", BrandSettings).url
    own = urlsplit(brand).hostname if brand else None
    return frozenset(one.lower() for one in (*settings.return_hosts, own or "") if one)


def stripe_of(
    settings: PaymentsSettings, outbound: Outbound, products: Products
) -> "StripeProcessor | None":
    """Stripe, where the settings say so; raises `BadSettings` without a key."""
    if settings.url != "stripe:":
        return None
    if not settings.stripe_secret_key:
        raise BadSettings("payments.url is stripe:, which needs STRIPE_SECRET_KEY. Set it.")
    try:
        from toolgate.packs.backend.payments.stripe_processor import (  # noqa: PLC0415
            StripeProcessor,
        )
    except ImportError:
        message = "payments.url is stripe:, which needs the package stripe"
        raise BadSettings(f"{message}. Install toolgate[stripe].") from None
    return StripeProcessor(settings, settings.stripe_secret_key, outbound, products)


async def examine(settings: Settings, outbound: Outbound) -> str:
    """For `toolgate doctor`: who takes the money, and whether that works."""
    section = settings.section("payments")
    assert isinstance(section, PaymentsSettings)
    stripe = stripe_of(section, outbound, Products({}))
    if stripe is None:
        return EMBEDDED
    try:
        mode = await stripe.check()
    except (ProcessorRefused, ProcessorBusy) as problem:
        raise BadSettings(str(problem)) from problem
    if not section.stripe_webhook_secret:
        raise BadSettings(
            f"Stripe answers ({mode} mode), but STRIPE_WEBHOOK_SECRET is not set: no event is "
            "taken in."
        )
    return f"Stripe answers, in {mode} mode."

"""Opens payments as the settings say; what Stripe needs is imported only where it is used."""

from toolgate.gate.offer import Site
from toolgate.packs.backend.payments.payments import Payments
from toolgate.packs.backend.payments.portal_links import PortalLinks
from toolgate.packs.backend.payments.processor import Processor
from toolgate.packs.backend.payments.return_urls import ReturnUrls
from toolgate.packs.backend.payments.settings import PaymentsSettings
from toolgate.packs.backend.products import Products
from toolgate.packs.backend.sql.ledger import SqlLedger
from toolgate.packs.backend.sql.payment_intents import SqlIntents

OF_THE_LEDGER = ("ledger", "test")
"""What a record calls the embedded ledger; `test` is the name for users who pay nothing."""


def payments_of(site: Site, products: Products) -> Payments:
    """Payments with the ledger, and with Stripe where the settings say so."""
    settings = site.section("payments", PaymentsSettings)
    links = PortalLinks(site.base_url, site.cursors, settings.portal_minutes)
    ledger = SqlLedger(site.database, links, products.default.currency)
    processors: dict[str, Processor] = dict.fromkeys(OF_THE_LEDGER, ledger)
    return Payments(
        database=site.database,
        documents=site.documents,
        intents=SqlIntents(site.database),
        processors=processors,
        products=products,
        return_urls=ReturnUrls(site.base_url, frozenset(settings.return_hosts)),
        ledger=ledger,
    )

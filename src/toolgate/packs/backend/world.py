"""What the pack's handlers may ask."""

from dataclasses import dataclass
from uuid import UUID

from toolgate.packs.backend.marketing.consent import Consent
from toolgate.packs.backend.products import Products
from toolgate.ports.documents import DocumentStore


@dataclass(frozen=True, slots=True)
class BackendWorld:
    """The pack's documents, the records of users among them."""

    documents: DocumentStore
    uuid_namespace: UUID
    """Of names whose UUID is asked for without one."""
    consent: Consent
    """Who may be sent marketing."""
    products: Products
    """What is sold, and how much of it each product allows."""

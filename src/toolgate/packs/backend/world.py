"""What the pack's handlers may ask."""

from dataclasses import dataclass
from uuid import UUID

from toolgate.gate.cursors import Cursors
from toolgate.gate.tool_directory import ToolDirectory
from toolgate.packs.backend.backup.backups import Backups
from toolgate.packs.backend.brand import BrandSettings
from toolgate.packs.backend.directory.port import Directory
from toolgate.packs.backend.hooks.running import HookRunner
from toolgate.packs.backend.mail.service import Mail
from toolgate.packs.backend.marketing.consent import Consent
from toolgate.packs.backend.marketing.contacts import Contacts
from toolgate.packs.backend.marketing.marketing import Marketing
from toolgate.packs.backend.marketing.validation import Validator
from toolgate.packs.backend.payments.payments import Payments
from toolgate.packs.backend.products import Products
from toolgate.packs.backend.publishing.posts import Posts
from toolgate.packs.backend.push.delivery import Deliveries
from toolgate.packs.backend.push.outbox import PushOutbox
from toolgate.packs.backend.settings import BackendSettings
from toolgate.packs.backend.stats.counters import Counters
from toolgate.packs.backend.usage import Usage
from toolgate.ports.documents import DocumentStore
from toolgate.workflows.runs import Workflows


@dataclass(frozen=True, slots=True)
class BackendWorld:
    """The pack's documents, the records of users among them."""

    documents: DocumentStore
    uuid_namespace: UUID
    """Of names whose UUID is asked for without one."""
    consent: Consent
    """Who may be sent marketing."""
    contacts: Contacts
    validator: Validator
    """Checks the addresses of new contacts."""
    backups: Backups
    products: Products
    """What is sold, and how much of it each product allows."""
    deliveries: Deliveries
    """Push notifications, sent or kept; `deliveries.push` sends to tokens."""
    push_outbox: PushOutbox
    cursors: Cursors
    workflows: Workflows
    payments: Payments
    """Who pays for what, and through whom."""
    mail: Mail
    """Sends mail."""
    marketing: Marketing
    """Campaigns."""
    posts: Posts
    """The posts of the application's site."""
    counters: Counters
    """How many users, subscriptions and notifications there are."""
    hooks: HookRunner
    """What operators registered to be run by name."""
    settings: BackendSettings
    brand: BrandSettings
    directory: Directory
    """Who has an account."""
    usage: Usage
    """How often users may use what they pay for."""
    tools: ToolDirectory
    """Who may call what."""

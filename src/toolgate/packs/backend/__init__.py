"""Pack `backend`: an application's users, and what runs beside them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from toolgate.background import run_in_background
from toolgate.db.schemas import Schema
from toolgate.gate.offer import Offer, Site
from toolgate.packs.backend import demo, scheduled
from toolgate.packs.backend.backup import backups
from toolgate.packs.backend.backup.settings import BackupSettings
from toolgate.packs.backend.brand import BrandSettings
from toolgate.packs.backend.data_requests import DATA_REQUESTS
from toolgate.packs.backend.directory.opening import directory_of
from toolgate.packs.backend.hooks.registry import read_hooks
from toolgate.packs.backend.hooks.running import HookRunner
from toolgate.packs.backend.hooks.workflow import WORKFLOW as CALL_WEBHOOK
from toolgate.packs.backend.mail.opening import examine as examine_mail
from toolgate.packs.backend.mail.page import UNSUBSCRIBE_PAGE
from toolgate.packs.backend.mail.service import opened_mail
from toolgate.packs.backend.mail.settings import MailSettings
from toolgate.packs.backend.mail.workflow import EMAIL_QUEUE
from toolgate.packs.backend.marketing.campaigns import Campaigns
from toolgate.packs.backend.marketing.carts import ABANDONED_CARTS
from toolgate.packs.backend.marketing.consent import Consent
from toolgate.packs.backend.marketing.contact_workflow import SYNC_CONTACTS
from toolgate.packs.backend.marketing.marketing import Marketing
from toolgate.packs.backend.marketing.opening import contacts_of, validator_of
from toolgate.packs.backend.marketing.pruning import MARKETING_PRUNE
from toolgate.packs.backend.marketing.settings import ContactSettings
from toolgate.packs.backend.marketing.workflows import WORKFLOWS as OF_MARKETING
from toolgate.packs.backend.pack import BACKEND
from toolgate.packs.backend.payments.expiry import EXPIRE_PAYPAL
from toolgate.packs.backend.payments.opening import examine as examine_payments
from toolgate.packs.backend.payments.opening import payments_of
from toolgate.packs.backend.payments.pages import PAGES as PAYMENT_PAGES
from toolgate.packs.backend.payments.settings import PaymentsSettings
from toolgate.packs.backend.payments.workflow import RECONCILE_PAYMENTS
from toolgate.packs.backend.products import read_products
from toolgate.packs.backend.publishing.opening import posts_of, repository_of
from toolgate.packs.backend.publishing.queue import BLOG_AUTO_PUBLISHER
from toolgate.packs.backend.publishing.settings import PostSettings
from toolgate.packs.backend.publishing.workflow import RECONCILE_POSTS
from toolgate.packs.backend.push.delivery import Deliveries
from toolgate.packs.backend.push.opening import examine as examine_push
from toolgate.packs.backend.push.opening import push_of
from toolgate.packs.backend.push.settings import PushSettings
from toolgate.packs.backend.push.workflow import SEND_NOTIFICATION
from toolgate.packs.backend.settings import BackendSettings
from toolgate.packs.backend.sql.counts import SqlCounters
from toolgate.packs.backend.sql.deliveries import SqlDeliveries
from toolgate.packs.backend.sql.post_intents import SqlPostIntents
from toolgate.packs.backend.sql.push_outbox import SqlPushOutbox
from toolgate.packs.backend.sql.tables import metadata
from toolgate.packs.backend.sql.unsubscribes import SqlUnsubscribes
from toolgate.packs.backend.stats.counters import CountedDocuments
from toolgate.packs.backend.sync import SYNC_USERS
from toolgate.packs.backend.tools import backups as backup_tools
from toolgate.packs.backend.tools import (
    campaigns,
    contacts,
    cron,
    email,
    firestore,
    hooks,
    notifications,
    operations,
    operator_consent,
    operator_email,
    payments,
    publishing,
    stats,
    subscriptions,
    users,
)
from toolgate.packs.backend.usage import RESET_USAGE, Usage, check_usage
from toolgate.packs.backend.world import BackendWorld
from toolgate.storage_sections import GoogleSettings

FAMILIES = (
    firestore.family,
    email.family,
    notifications.family,
    users.family,
    subscriptions.family,
    payments.family,
    campaigns.family,
    contacts.family,
    operations.family,
    stats.family,
    cron.family,
    hooks.family,
    backup_tools.family,
    publishing.family,
    operator_consent.family,
    operator_email.family,
)


@asynccontextmanager
async def open_world(site: Site, settings: BackendSettings) -> AsyncGenerator[BackendWorld]:
    """The pack's ports."""
    outbox = SqlPushOutbox(site.database)
    google = site.section("google", GoogleSettings)
    push = push_of(site.section("push", PushSettings), google, site.outbound) or outbox
    products = read_products(settings.products)
    consent = Consent(site.documents, SqlUnsubscribes(site.database))
    listed = contacts_of(site, consent)
    in_database = site.documents.joins_transaction
    counters = SqlCounters(site.database) if in_database else CountedDocuments(site.documents)
    async with opened_mail(site, consent.unwilling) as mail, run_in_background(counters.follow):
        yield BackendWorld(
            site.documents,
            settings.namespace,
            consent=consent,
            contacts=listed,
            validator=validator_of(site),
            cursors=site.cursors,
            deliveries=Deliveries(push, site.documents, site.database),
            push_outbox=outbox,
            workflows=site.workflows,
            backups=backups.Backups(site, site.section("backups", BackupSettings)),
            products=products,
            payments=payments_of(site, products),
            directory=directory_of(site, settings),
            usage=Usage(site.documents, site.database, products, settings.metered),
            mail=mail,
            marketing=Marketing(
                documents=site.documents,
                campaigns=Campaigns(site.documents),
                deliveries=SqlDeliveries(site.database),
                consent=consent,
                contacts=listed.list,
                mail=mail,
                push=push,
                push_provider="outbox" if push is outbox else "fcm",
                workflows=site.workflows,
                journals=site.data / "campaigns",
            ),
            posts=posts_of(site, SqlPostIntents(site.database)),
            counters=counters,
            hooks=HookRunner(read_hooks(settings.hooks), site.outbound),
            settings=settings,
            brand=site.section("brand", BrandSettings),
            tools=site.tools,
        )


OFFER = Offer(
    pack=BACKEND,
    tools=tuple(tool for family in FAMILIES for tool in family.tools),
    settings=BackendSettings,
    sections={
        "backups": BackupSettings,
        "brand": BrandSettings,
        "contacts": ContactSettings,
        "mail": MailSettings,
        "push": PushSettings,
        "payments": PaymentsSettings,
        "posts": PostSettings,
    },
    pages=(
        UNSUBSCRIBE_PAGE,
        *PAYMENT_PAGES,
    ),
    open=open_world,
    schema=Schema(metadata, "toolgate.packs.backend.migrations", version_table="backend_version"),
    documents=True,
    checks={
        "mail": examine_mail,
        "push": examine_push,
        "payments": examine_payments,
    },
    repositories={"posts": repository_of},
    access=check_usage,
    workflows=(
        SYNC_USERS,
        RESET_USAGE,
        EMAIL_QUEUE,
        SEND_NOTIFICATION,
        SYNC_CONTACTS,
        RECONCILE_POSTS,
        CALL_WEBHOOK,
        backups.WORKFLOW,
        *OF_MARKETING,
        *scheduled.WORKFLOWS,
        RECONCILE_PAYMENTS,
        MARKETING_PRUNE,
        DATA_REQUESTS,
        EXPIRE_PAYPAL,
        BLOG_AUTO_PUBLISHER,
        ABANDONED_CARTS,
    ),
    demo=demo.load_demo,
)

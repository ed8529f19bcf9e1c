"""The composition root: settings in, a gate out."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from toolgate import packs
from toolgate.background import run_in_background
from toolgate.blob_stores import BlobStores
from toolgate.data_folder import make_ready
from toolgate.db.engine import Database
from toolgate.db.health import DatabaseHealth
from toolgate.db.schemas import Schema
from toolgate.document_stores import DocumentStores
from toolgate.forges import Forges
from toolgate.gate.audit import AuditLog
from toolgate.gate.catalogue import Catalogue, OpenPack
from toolgate.gate.changes import Retention
from toolgate.gate.cursors import cursors_of
from toolgate.gate.epochs import Epoch
from toolgate.gate.live_switches import LiveSwitches
from toolgate.gate.metrics import Metrics
from toolgate.gate.offer import AnyOffer, Site, opening
from toolgate.gate.pipeline import Gate
from toolgate.gate.seals import Sealer
from toolgate.gate.tool import Target
from toolgate.gate.tool_directory import ToolDirectory
from toolgate.identity.credentials import Credentials
from toolgate.identity.keys import Keys, KeysOfPacks
from toolgate.identity.upstreams import check as check_sign_in
from toolgate.identity.users import Users
from toolgate.outbound.client import Outbound
from toolgate.readiness import Readiness, ReadinessCheck
from toolgate.sections import Settings
from toolgate.tool_settings import RuleWarnings, limits_of, policy_of
from toolgate.transports.address import Addresses, base_url
from toolgate.tree_stores import TreeStores
from toolgate.workflows.declarations import Workflow
from toolgate.workflows.runs import Runs

if TYPE_CHECKING:
    from toolgate.extend.own_tools import OwnTools
    from toolgate.workflows.worker import Worker

CLOSE_SECONDS = 3.0
"""How long the last audit rows may take; a database that is silent must not hold up the end."""

WRITTEN_SECONDS = 5.0
"""How long a write that succeeded, or an answer of a store that may cost money, is believed."""
GOOGLE = "google"
Work = Callable[[], Coroutine[Any, Any, None]]
SiteOf = Callable[[str], Site]
"""What a pack of this name is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """A gate, ready to be called, and what belongs to it."""

    settings: Settings
    gate: Gate
    keys: Keys
    credentials: Credentials
    sealer: Sealer
    documents: DocumentStores
    trees: TreeStores
    blobs: BlobStores
    outbound: Outbound
    site_of: SiteOf
    worlds: Mapping[str, OpenPack]
    """The open ports of each pack."""
    own: "OwnTools | None" = None
    """The user's own tools, where there are files of them."""

    def readiness(self) -> Readiness:
        """Tells whether calls would be answered."""
        gate, database = self.gate, DatabaseHealth(self.gate.database)
        return Readiness(
            [
                ReadinessCheck("database", database.check),
                ReadinessCheck("database", database.check_writing, good_for=WRITTEN_SECONDS),
                ReadinessCheck("audit", gate.audit.check),
                ReadinessCheck("counters", gate.limits.check),
                ReadinessCheck("documents", self.documents.check, good_for=WRITTEN_SECONDS),
                ReadinessCheck("trees", self.trees.check, good_for=WRITTEN_SECONDS),
                ReadinessCheck("blobs", self.blobs.check, good_for=WRITTEN_SECONDS),
            ]
        )

    async def store_pending(self) -> None:
        """Store and seal the last audit rows, unless the database does not answer."""
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self.gate.audit.flush(last=True)
                await self.sealer.seal()
        except Exception as problem:
            self.gate.audit.log_lost(problem)


def offers_of(settings: Settings) -> tuple[AnyOffer, ...]:
    """What the enabled packs bring in."""
    return packs.offers(settings.packs.enabled)


def schemas_of(offers: Iterable[AnyOffer]) -> list[Schema]:
    """The tables that packs bring along."""
    return [offer.schema for offer in offers if offer.schema is not None]


@asynccontextmanager
async def opened(
    settings: Settings,
    plugins: Sequence[AnyOffer] = (),
    *,
    existing: bool = False,
) -> AsyncGenerator[App, None]:
    """Open everything, with `existing` no new data; on leaving, store what waits and close."""
    offers = (*offers_of(settings), *plugins)
    stack = AsyncExitStack()
    try:
        database = Database(
            settings.database_url,
            seconds=settings.limits.seconds,
            prepared=settings.database.prepared_statements,
        )
        stack.push_async_callback(database.close)
        await make_ready(database, settings.data, schemas_of(offers), existing=existing)
        documents = DocumentStores(settings, database)
        await documents.complete_index_at_start()
        stack.push_async_callback(documents.close)
        outbound = Outbound(settings.outbound.allow)
        stack.push_async_callback(outbound.close)
        trees = TreeStores(settings, database, outbound)
        stack.push_async_callback(trees.close)
        own = _own(settings)
        tools = ToolDirectory()
        epoch = Epoch()
        shared = {
            "cursors": await cursors_of(database),
            "tools": tools,
            "epoch": epoch,
            "keys": KeysOfPacks(),
        }
        runs = Runs(database, workflows_of(offers))
        blobs = BlobStores(settings, existing=existing)
        sections = _section_names(offers)
        site_of = partial(
            _site, settings, documents, trees, blobs, outbound, sections, runs, shared
        )
        worlds = await _worlds(stack, settings, site_of, offers, own, trees)
        app = _assemble(
            settings, documents, trees, blobs, outbound, site_of, offers, worlds, own, epoch
        )
        tools.fill(app.gate.visible, app.gate.is_off, app.gate.refusal_of)
        stack.push_async_callback(_close, app)
        await app.gate.switches.read()
        work = _work(app)
        if runs.declared:
            runs.why_waiting = _why_runs_wait(offers, app)
            worker = _worker(runs, app)
            stack.push_async_callback(worker.close)
            work.append(worker.run)
        async with run_in_background(*work):
            yield app
    finally:
        with anyio.CancelScope(shield=True):
            await stack.aclose()


async def _worlds(  # noqa: PLR0917 (each is a part of the whole)
    stack: AsyncExitStack,
    settings: Settings,
    site_of: SiteOf,
    offers: Iterable[AnyOffer],
    own: "OwnTools | None",
    trees: TreeStores,
) -> dict[str, OpenPack]:
    """The ports of each pack; they are closed in the opposite order."""
    sites = [(offer, site_of(offer.pack.name)) for offer in offers]
    if own:
        sites.append((own.offer, site_of(packs.READ_BY_OWN_TOOLS)))
    worlds: dict[str, OpenPack] = {}
    for offer, site in sites:
        if offer.open is not None:
            section = settings.section(offer.pack.name)
            with packs.attribute_errors(offer.pack.name, "be opened"):
                world = await stack.enter_async_context(opening(offer, site, section))
            worlds[offer.pack.name] = OpenPack(world, _separate_targets(site, trees))
    return worlds


def _separate_targets(site: Site, trees: TreeStores) -> frozenset[Target]:
    """What a pack writes that cannot join a transaction of the database."""
    joining = {
        Target.OUTSIDE: False,
        Target.DOCUMENTS: site.documents.joins_transaction,
        Target.TREE: trees.join_transactions,
    }
    return frozenset(target for target, joins in joining.items() if not joins)


def _assemble(  # noqa: PLR0917 (each is a part of the whole)
    settings: Settings,
    documents: DocumentStores,
    trees: TreeStores,
    blobs: BlobStores,
    outbound: Outbound,
    site_of: SiteOf,
    offers: Sequence[AnyOffer],
    worlds: Mapping[str, OpenPack],
    own: "OwnTools | None",
    epoch: Epoch,
) -> App:
    # Both say at once what is wrong with settings that are used later.
    Addresses(settings.server)
    check_sign_in(settings.sign_in)
    catalogue = Catalogue(
        offers,
        own.offer if own else None,
        opened=worlds,
        changing=own is not None and settings.extend.reload,
    )
    database = documents.database
    policy = policy_of(settings, catalogue)
    gate = Gate(
        catalogue=catalogue,
        policy=policy,
        limits=limits_of(settings, catalogue),
        audit=AuditLog(database),
        database=database,
        metrics=Metrics(),
        switches=LiveSwitches(database, policy, catalogue, epoch=epoch),
        log_requests=settings.log.requests,
    )
    RuleWarnings(settings, catalogue).watch()
    keys = Keys(database, settings.admin_key)
    return App(
        settings=settings,
        gate=gate,
        keys=keys,
        credentials=Credentials(database, keys, Users(documents.of_users(), database)),
        sealer=Sealer(database),
        documents=documents,
        trees=trees,
        blobs=blobs,
        outbound=outbound,
        site_of=site_of,
        worlds=worlds,
        own=own,
    )


def workflows_of(offers: Iterable[AnyOffer]) -> dict[str, Workflow[Any]]:
    """The background work of the packs, by name."""
    return {f"{offer.pack.name}/{one.name}": one for offer in offers for one in offer.workflows}


def _own(settings: Settings) -> "OwnTools | None":
    if not settings.extend.tools:
        return None
    # Only who has tools of their own pays for what reads them.
    from toolgate.extend.own_tools import OwnTools  # noqa: PLC0415

    return OwnTools(settings.extend, settings.limits)


def _section_names(offers: Iterable[AnyOffer]) -> dict[str, list[str]]:
    """The further sections of settings of each pack; one may come in several offers."""
    names: dict[str, list[str]] = {}
    for offer in offers:
        names.setdefault(offer.pack.name, []).extend(offer.sections)
    return names


def _work(app: App) -> list[Work]:
    """What runs beside the calls."""
    retention = Retention(app.gate.database, app.settings.changes.days)
    work: list[Work] = [
        app.gate.audit.run,
        app.sealer.run,
        app.gate.switches.run,
        app.credentials.changes.run,
        retention.run,
    ]
    if app.gate.database.dialect == "sqlite":
        work.append(app.gate.database.keep_wal_small)
    if app.own and app.gate.catalogue.changing:
        work.append(app.own.reloader(app.gate.catalogue).run)
    return work


def _why_runs_wait(offers: Iterable[AnyOffer], app: App) -> Callable[[str], str | None]:
    from toolgate.gate.run_writes import why_runs_wait  # noqa: PLC0415 (as for the worker)

    workflows = {
        f"{offer.pack.name}/{one.name}": (offer.pack, one)
        for offer in offers
        for one in offer.workflows
    }
    gate, read_only = app.gate, app.settings.policy.read_only
    return why_runs_wait(workflows, gate.catalogue, gate.policy, gate.switches, read_only=read_only)


def _worker(runs: Runs, app: App) -> "Worker":
    # Only who has background work pays for it.
    from toolgate.gate.run_audit import note_run, words_of  # noqa: PLC0415
    from toolgate.workflows.executor import WorkerOptions  # noqa: PLC0415
    from toolgate.workflows.worker import Worker  # noqa: PLC0415

    settings = app.settings.workflows
    options = WorkerOptions(
        concurrency=settings.concurrency,
        lease=timedelta(seconds=settings.lease_seconds),
        keep=timedelta(days=settings.days),
        note=note_run,
        describe=words_of,
    )
    return Worker(runs, {name: one.world for name, one in app.worlds.items()}, options)


async def _close(app: App) -> None:
    await app.store_pending()
    await app.gate.limits.close()


def _site(  # noqa: PLR0917 (each is a part of the whole)
    settings: Settings,
    documents: DocumentStores,
    trees: TreeStores,
    blobs: BlobStores,
    outbound: Outbound,
    sections: Mapping[str, Iterable[str]],
    runs: Runs,
    shared: Mapping[str, Any],
    pack: str,
) -> Site:
    return Site(
        database=documents.database,
        documents=documents.of(pack),
        tree=partial(trees.of, pack),
        blobs=partial(blobs.of, pack),
        data=settings.data,
        outbound=outbound,
        base_url=base_url(settings.server),
        sections={name: settings.section(name) for name in (GOOGLE, *sections.get(pack, ()))},
        workflows=runs.of(pack),
        forge=Forges(settings, outbound).of,
        **shared,
    )

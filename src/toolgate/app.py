"""The composition root: settings in, a gate out."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
from limits.errors import ConfigurationError

from toolgate import packs
from toolgate.background import run_in_background
from toolgate.data_folder import make_ready
from toolgate.db.engine import Database
from toolgate.db.health import DatabaseHealth
from toolgate.db.schemas import Schema
from toolgate.document_stores import DocumentStores
from toolgate.gate.arguments import nearest
from toolgate.gate.audit import AuditLog
from toolgate.gate.catalogue import Catalogue, OpenPack
from toolgate.gate.cursors import cursors_of
from toolgate.gate.epochs import Epoch
from toolgate.gate.limits import Limits
from toolgate.gate.live_switches import LiveSwitches
from toolgate.gate.metrics import Metrics
from toolgate.gate.offer import AnyOffer, Site
from toolgate.gate.pipeline import Gate
from toolgate.gate.policy import Policy
from toolgate.gate.rule_schema import Switch, switches_of, vocabulary
from toolgate.gate.rules import (
    built_in_rules,
    pack_rules,
    refuse,
    rules_in,
    rules_of,
    skipped_in,
    unknown_names,
)
from toolgate.gate.seals import Sealer
from toolgate.gate.tool import Target
from toolgate.gate.tool_directory import ToolDirectory
from toolgate.identity.credentials import Credentials
from toolgate.identity.keys import Keys
from toolgate.identity.upstreams import check as check_sign_in
from toolgate.identity.users import Users
from toolgate.outbound.client import Outbound
from toolgate.ports import users
from toolgate.readiness import Readiness, ReadinessCheck
from toolgate.sections import Settings
from toolgate.setting_types import BadSettings
from toolgate.transports.address import Addresses

if TYPE_CHECKING:
    from toolgate.extend.own_tools import OwnTools

CLOSE_SECONDS = 3.0
"""How long the last audit rows may take; a database that is silent must not hold up the end."""

logger = logging.getLogger(__name__)

WRITTEN_SECONDS = 5.0
"""How long a write that succeeded, or an answer of a store that may cost money, is believed."""
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
        database = Database(settings.database_url, seconds=settings.limits.seconds)
        stack.push_async_callback(database.close)
        await make_ready(database, settings.data, schemas_of(offers), existing=existing)
        documents = DocumentStores(settings, database)
        stack.push_async_callback(documents.close)
        outbound = Outbound(settings.outbound.allow)
        stack.push_async_callback(outbound.close)
        own = _own(settings)
        tools = ToolDirectory()
        epoch = Epoch()
        shared = {"cursors": await cursors_of(database), "tools": tools, "epoch": epoch}
        site_of = partial(_site, settings, documents, outbound, shared)
        worlds = await _worlds(stack, settings, site_of, offers, own)
        app = _assemble(settings, documents, outbound, site_of, offers, worlds, own, epoch)
        tools.fill(app.gate.visible)
        stack.push_async_callback(_close, app)
        await app.gate.switches.read()
        async with run_in_background(*_work(app)):
            yield app
    finally:
        with anyio.CancelScope(shield=True):
            await stack.aclose()


async def _worlds(
    stack: AsyncExitStack,
    settings: Settings,
    site_of: SiteOf,
    offers: Iterable[AnyOffer],
    own: "OwnTools | None",
) -> dict[str, OpenPack]:
    """The ports of each pack; they are closed in the opposite order."""
    sites = [(offer, site_of(offer.pack.name)) for offer in offers]
    if own:
        sites.append((own.offer, site_of(packs.READ_BY_OWN_TOOLS)))
    worlds: dict[str, OpenPack] = {}
    for offer, site in sites:
        if offer.open is not None:
            section = settings.section(offer.pack.name)
            world = await stack.enter_async_context(offer.open(site, section))
            worlds[offer.pack.name] = OpenPack(world, _apart(site))
    return worlds


def _apart(site: Site) -> frozenset[Target]:
    """What a pack writes that cannot join a transaction of the database."""
    joins = (
        {Target.TABLES, Target.DOCUMENTS} if site.documents.joins_transaction else {Target.TABLES}
    )
    return frozenset(Target) - joins


def _assemble(  # noqa: PLR0917 (each is a part of the whole)
    settings: Settings,
    documents: DocumentStores,
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
        limits=_limits(settings, catalogue),
        audit=AuditLog(database),
        database=database,
        metrics=Metrics(),
        switches=LiveSwitches(database, policy, catalogue, epoch=epoch),
        log_requests=settings.log.requests,
    )
    _watch_rules(settings, catalogue)
    keys = Keys(database, settings.admin_key)
    return App(
        settings=settings,
        gate=gate,
        keys=keys,
        credentials=Credentials(database, keys, Users(documents.of(users.NAMESPACE), database)),
        sealer=Sealer(database),
        documents=documents,
        outbound=outbound,
        site_of=site_of,
        worlds=worlds,
        own=own,
    )


def _own(settings: Settings) -> "OwnTools | None":
    if not settings.extend.tools:
        return None
    # Only who has tools of their own pays for what reads them.
    from toolgate.extend.own_tools import OwnTools  # noqa: PLC0415

    return OwnTools(settings.extend, settings.limits)


def _work(app: App) -> list[Work]:
    """What runs beside the calls."""
    work: list[Work] = [app.gate.audit.run, app.sealer.run, app.gate.switches.run]
    if app.gate.database.dialect == "sqlite":
        work.append(app.gate.database.keep_wal_small)
    if app.own and app.gate.catalogue.changing:
        work.append(app.own.reloader(app.gate.catalogue).run)
    return work


async def _close(app: App) -> None:
    await app.store_pending()
    await app.gate.limits.close()


def _site(
    settings: Settings,
    documents: DocumentStores,
    outbound: Outbound,
    shared: Mapping[str, Any],
    pack: str,
) -> Site:
    return Site(
        database=documents.database,
        documents=documents.of(pack),
        data=settings.data,
        outbound=outbound,
        **shared,
    )


def _tool_names(
    names: Iterable[str], setting: str, catalogue: Catalogue, pack_names: Iterable[str] = ()
) -> list[str]:
    """The tools' own names; a name that is no tool's would silently do nothing."""
    tools = {name: catalogue.find(name) for name in names}
    if unknown := [name for name, tool in tools.items() if tool is None]:
        near = nearest(unknown[0], [*(tool.name for tool in catalogue), *pack_names])
        hint = f"Did you mean {near}?" if near else "`toolgate tools` lists them."
        no_pack = ", and no pack's" if pack_names else ""
        raise BadSettings(
            f"Setting {setting} names {unknown[0]}, which is no tool's name{no_pack}. {hint}"
        )
    return [tool.name for tool in tools.values() if tool]


def _disabled(settings: Settings, catalogue: Catalogue) -> frozenset[str]:
    """The packs, and the tools by their own names, that the settings switch off."""
    named = frozenset(settings.policy.disabled)
    pack_names = {tool.pack.name for tool in catalogue}
    tools = _tool_names(named - pack_names, "policy.disabled", catalogue, pack_names)
    return (named & pack_names).union(tools)


def policy_of(settings: Settings, catalogue: Catalogue) -> Policy:
    """The rules that ship and the operator's own, checked."""
    own = rules_in(settings.policy.folder) if settings.policy.folder else {}
    switches = switches_of(settings)
    switches["disabled"] = Switch(_disabled(settings, catalogue), switches["disabled"].meaning)
    of_packs = [(offer, pack_rules(offer)) for offer in catalogue.offers]
    confined = [rule for _, rules in of_packs for rule in rules]
    policy = Policy([*rules_of(built_in_rules()), *confined, *rules_of(own)], switches)
    for offer, rules in of_packs:
        refuse(unknown_names(rules, policy.vocabulary, offer.tools))
    if not catalogue.changing:
        refuse(unknown_names(rules_of(own), policy.vocabulary, catalogue))
    return policy


def warnings_of_rules(settings: Settings, catalogue: Catalogue) -> list[str]:
    """What is odd about the operator's own rules, but may be meant so."""
    folder = settings.policy.folder
    if folder is None:
        return []
    warnings = [
        f"{file} is not read: rules are files *.cedar in {folder}." for file in skipped_in(folder)
    ]
    if catalogue.changing:  # a tool that is not there may come with the next load of the file
        words = vocabulary(switches_of(settings))
        warnings += unknown_names(rules_of(rules_in(folder)), words, catalogue)
    return warnings


def _watch_rules(settings: Settings, catalogue: Catalogue) -> None:
    """Log what is odd about the rules, now and whenever the tools have changed."""

    async def tell() -> None:
        _log_rules(settings, catalogue)

    _log_rules(settings, catalogue)
    catalogue.listeners.append(tell)


def _log_rules(settings: Settings, catalogue: Catalogue) -> None:
    for warning in warnings_of_rules(settings, catalogue):
        logger.warning("%s", warning)


def _limits(settings: Settings, catalogue: Catalogue) -> Limits:
    limits = settings.limits
    single = limits.tool_calls_per_minute
    names = _tool_names(single, "limits.tool_calls_per_minute", catalogue)
    single = dict(zip(names, single.values(), strict=True))
    try:
        return Limits(limits.model_copy(update={"tool_calls_per_minute": single}))
    except ConfigurationError as problem:
        raise BadSettings(
            "Setting limits.store cannot be used. Write async+memory:// or "
            "async+redis://HOST:PORT (with the extra toolgate[redis])."
        ) from problem

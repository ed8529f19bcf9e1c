"""Pack `network`: two databases, their live changes, and the agents that share them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from toolgate.db.schemas import Schema
from toolgate.gate.offer import Offer, Site
from toolgate.packs.network import demo
from toolgate.packs.network.pack import NETWORK
from toolgate.packs.network.records.store import Records
from toolgate.packs.network.settings import NetworkSettings
from toolgate.packs.network.sql.tables import metadata
from toolgate.packs.network.tools import firebase
from toolgate.packs.network.world import NetworkWorld

FAMILIES = (firebase.family,)


@asynccontextmanager
async def opened(site: Site, section: NetworkSettings) -> AsyncGenerator[NetworkWorld]:
    """The pack's ports."""
    yield NetworkWorld(
        documents=site.documents,
        tree=site.tree(),
        records=Records(site.documents),
        settings=section,
    )


OFFER = Offer(
    pack=NETWORK,
    tools=tuple(tool for family in FAMILIES for tool in family.tools),
    settings=NetworkSettings,
    open=opened,
    schema=Schema(metadata, "toolgate.packs.network.migrations", version_table="network_version"),
    documents=True,
    demo=demo.load,
    complete=False,
)

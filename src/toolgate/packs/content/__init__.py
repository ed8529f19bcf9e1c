"""Pack `content`: what a site has published, project by project, to be read only."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from toolgate.db.schemas import Schema
from toolgate.gate.offer import Offer, Site
from toolgate.packs.content import demo
from toolgate.packs.content.from_request import PROJECT
from toolgate.packs.content.pack import CONTENT
from toolgate.packs.content.settings import ContentSettings
from toolgate.packs.content.sql.store import SqlContent
from toolgate.packs.content.sql.tables import metadata
from toolgate.packs.content.tools import blocks, entities, graph, performance, projects
from toolgate.packs.content.world import ContentWorld

FAMILIES = (projects, entities, graph, performance, blocks)


@asynccontextmanager
async def open_world(site: Site, settings: ContentSettings) -> AsyncGenerator[ContentWorld]:
    """The pack's ports."""
    yield ContentWorld(SqlContent(site.database), settings.default_project)


OFFER = Offer(
    pack=CONTENT,
    tools=tuple(tool for module in FAMILIES for tool in module.family.tools),
    settings=ContentSettings,
    open=open_world,
    schema=Schema(
        metadata,
        "toolgate.packs.content.migrations",
        version_table="content_version",
        shared=("0002", "0003", "0005", "0006"),
    ),
    demo=demo.load_demo,
    commands="toolgate.packs.content.commands:group",
    from_request=PROJECT,
)

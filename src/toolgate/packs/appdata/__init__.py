"""Pack `appdata`: an application's documents, permissions and data model."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib import resources

from toolgate.gate.offer import Offer, Site
from toolgate.packs.appdata import demo, prompts
from toolgate.packs.appdata.collections import BUILT_IN, read_file
from toolgate.packs.appdata.pack import APPDATA
from toolgate.packs.appdata.settings import AppDataSettings
from toolgate.packs.appdata.tools import documents, permissions, schema
from toolgate.packs.appdata.world import AppDataWorld


@asynccontextmanager
async def open_world(site: Site, settings: AppDataSettings) -> AsyncGenerator[AppDataWorld]:
    """The pack's ports."""
    collections = read_file(settings.collections) if settings.collections else BUILT_IN
    yield AppDataWorld(site.documents, collections)


def in_world(world: AppDataWorld) -> Offer[AppDataWorld, AppDataSettings]:
    """The pack with the resources and prompts of the collections in use."""
    return replace(
        OFFER,
        resources=schema.resources(world.collections),
        prompts=prompts.prompts(world.collections),
    )


OFFER = Offer(
    pack=APPDATA,
    tools=(*documents.family.tools, *permissions.family.tools, *schema.family.tools),
    resources=schema.resources(BUILT_IN),
    prompts=prompts.prompts(BUILT_IN),
    in_world=in_world,
    settings=AppDataSettings,
    open=open_world,
    documents=True,
    rules=(resources.files(__name__) / "rules.cedar").read_text(encoding="utf-8"),
    demo=demo.load_demo,
    commands="toolgate.packs.appdata.commands:group",
)

"""Pack `appdata`: an application's documents, permissions and data model."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib import resources

from toolgate.gate.offer import Offer, Site
from toolgate.packs.appdata import demo, prompts
from toolgate.packs.appdata.pack import APPDATA
from toolgate.packs.appdata.settings import AppDataSettings
from toolgate.packs.appdata.tools import documents, permissions, schema
from toolgate.packs.appdata.world import AppDataWorld


@asynccontextmanager
async def opened(site: Site, settings: AppDataSettings) -> AsyncGenerator[AppDataWorld]:
    """The pack's ports."""
    yield AppDataWorld(site.documents)


OFFER = Offer(
    pack=APPDATA,
    tools=(*documents.family.tools, *permissions.family.tools, *schema.family.tools),
    resources=schema.RESOURCES,
    prompts=prompts.PROMPTS,
    settings=AppDataSettings,
    open=opened,
    rules=(resources.files(__name__) / "rules.cedar").read_text(encoding="utf-8"),
    demo=demo.load,
)

"""Pack `backend`: an application's users, and what runs beside them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from toolgate.gate.offer import Offer, Site
from toolgate.packs.backend import demo
from toolgate.packs.backend.pack import BACKEND
from toolgate.packs.backend.settings import BackendSettings
from toolgate.packs.backend.tools import operations, users
from toolgate.packs.backend.world import BackendWorld


@asynccontextmanager
async def open_world(site: Site, settings: BackendSettings) -> AsyncGenerator[BackendWorld]:
    """The pack's ports."""
    yield BackendWorld(site.documents, settings.namespace)


OFFER = Offer(
    pack=BACKEND,
    tools=(*users.family.tools, *operations.family.tools),
    settings=BackendSettings,
    open=open_world,
    documents=True,
    demo=demo.load_demo,
)

"""The pack's page for links to unsubscribe."""

from toolgate.gate.pages import Page, PageAnswer, PageRequest
from toolgate.packs.backend.mail.unsubscribing import PATH, answer_unsubscribe
from toolgate.packs.backend.world import BackendWorld


async def unsubscribe(world: BackendWorld, request: PageRequest) -> PageAnswer:
    """Ask, or do it."""
    mail = world.mail
    return await answer_unsubscribe(mail.links, world.consent, mail.brand, request)


UNSUBSCRIBE_PAGE = Page(path=PATH, methods=("GET", "POST"), handler=unsubscribe)

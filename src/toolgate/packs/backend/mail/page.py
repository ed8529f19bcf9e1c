"""The pack's page for links to unsubscribe."""

from toolgate.gate.errors import GateError
from toolgate.gate.pages import Page, PageAnswer, PageRequest
from toolgate.packs.backend.mail.unsubscribing import PATH, answer_unsubscribe, problem_page
from toolgate.packs.backend.world import BackendWorld


async def unsubscribe(world: BackendWorld, request: PageRequest) -> PageAnswer:
    """Ask, or do it."""
    mail = world.mail
    return await answer_unsubscribe(mail.links, world.consent, mail.brand, request)


def tell(world: BackendWorld, problem: GateError) -> PageAnswer:
    """Say why nothing was changed."""
    return problem_page(world.mail.brand, problem)


# It acts as no tool: `delete_contact` off keeps agents from it, not people from their own wish.
UNSUBSCRIBE_PAGE = Page(path=PATH, methods=("GET", "POST"), handler=unsubscribe, tell=tell)

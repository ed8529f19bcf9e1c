"""Addresses of payments that are no tools: Stripe's events, and the portal page of the ledger."""

from toolgate.gate.errors import GateError, NotFound
from toolgate.gate.pages import HTML, Page, PageAnswer, PageRequest, outside_caller
from toolgate.packs.backend.payments import cancelling, portal_links, webhook
from toolgate.packs.backend.payments.payments import Payments
from toolgate.packs.backend.payments.portal_page import page_of, sentence_page
from toolgate.packs.backend.world import BackendWorld

RULE = "portal-link"
EXPIRED = "This link has expired, or is not complete. Ask for a new one."


async def receive_event(world: BackendWorld, request: PageRequest) -> PageAnswer:
    """Take in an event of Stripe."""
    payments = world.payments
    if payments.events is None or not payments.webhook_secret:
        raise NotFound(
            "No events are taken in here. Set payments.url to stripe: and STRIPE_WEBHOOK_SECRET."
        )
    return await webhook.Webhook(payments, payments.events, payments.webhook_secret).receive(
        request
    )


async def show_portal(world: BackendWorld, request: PageRequest) -> PageAnswer:
    """The portal page of the ledger; its form cancels. The link is what allows it."""
    payments = world.payments
    link = payments.ledger.links.read(request.parameters["link"])
    if link is None:
        return _html(404, sentence_page(EXPIRED))
    if request.method == "POST":
        try:
            await _cancel(payments, request, link.uid)
        except GateError as refused:
            return _html(refused.status, sentence_page(refused.message, again=request.path))
        return PageAnswer(status=303, headers={"location": request.path})
    try:
        account = await payments.account(link.uid)
    except NotFound:
        return _html(404, sentence_page(EXPIRED))
    payment = await payments.ledger.payment(account)
    return _html(200, page_of(account, payment, link, request.path))


async def _cancel(payments: Payments, request: PageRequest, uid: str) -> None:
    said = {"reason": "cancelled by the user on the portal page", "feedback": None}
    async with request.transaction(RULE, outside_caller(f"portal:{uid}")) as tx:
        await cancelling.cancel(payments, tx, uid, said)


def _html(status: int, text: str) -> PageAnswer:
    return PageAnswer(status=status, body=text.encode(), content_type=HTML)


PAGES = (
    Page(
        path=webhook.PATH,
        methods=("POST",),
        handler=receive_event,
        body_bytes=webhook.MAX_BODY,
        calls_per_minute=6000,
    ),
    Page(path=portal_links.PATH, methods=("GET", "POST"), handler=show_portal),
)

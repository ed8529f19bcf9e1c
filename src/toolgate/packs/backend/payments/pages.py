"""Addresses of payments that are no tools: Stripe's events, and the portal page of the ledger."""

from toolgate.gate.errors import Forbidden, GateError, NotFound, Unavailable, WritesOff
from toolgate.gate.pages import HTML, Page, PageAnswer, PageRequest, outside_caller
from toolgate.packs.backend.payments import cancelling, portal_links, webhook
from toolgate.packs.backend.payments.payments import Payments
from toolgate.packs.backend.payments.portal_links import PortalLink
from toolgate.packs.backend.payments.portal_page import page_of, sentence_page
from toolgate.packs.backend.world import BackendWorld

RULE = "portal-link"
EXPIRED = "This link has expired, or is not complete. Ask for a new one."
ONLY_SHOWS = "This link shows the subscription. Nothing can be cancelled with it."
SWITCHED_OFF = "Nothing can be changed here now: changes are switched off. Try again later."


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
        raise NotFound(EXPIRED)
    if request.method == "POST":
        if not link.may_cancel:
            raise Forbidden(ONLY_SHOWS, rule=RULE)
        await _cancel(payments, request, link.uid)
        return PageAnswer(status=303, content_type=HTML, headers={"location": request.path})
    try:
        account = await payments.account(link.uid)
    except NotFound:
        raise NotFound(EXPIRED) from None
    payment = await payments.ledger.payment(account)
    note = await _why_not(request, link)
    return _html(200, page_of(account, payment, link, request.path, note))


async def _why_not(request: PageRequest, link: PortalLink) -> str | None:
    """Why nothing can be cancelled with this link now; None where it can."""
    if not link.may_cancel:
        return ONLY_SHOWS
    try:
        await request.check_writes()
    except Unavailable:  # `WritesOff` is one
        return SWITCHED_OFF
    return None


async def _cancel(payments: Payments, request: PageRequest, uid: str) -> None:
    said = {"reason": "cancelled by the user on the portal page", "feedback": None}
    async with request.transaction(RULE, outside_caller(f"portal:{uid}")) as tx:
        await cancelling.cancel(payments, tx, uid, said)


def tell(_world: BackendWorld, problem: GateError) -> PageAnswer:
    """Say on the page why nothing was done."""
    sentence = SWITCHED_OFF if isinstance(problem, WritesOff) else problem.message
    return _html(problem.status, sentence_page(sentence, back=problem.status != 404))


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
    Page(
        path=portal_links.PATH,
        methods=("GET", "POST"),
        handler=show_portal,
        acts_as=("cancel_subscription",),
        tell=tell,
    ),
)
